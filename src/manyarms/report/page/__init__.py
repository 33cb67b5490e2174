"""The page `report.html`: from tables to plain data, and from data to one file of HTML.

`settings` reads tables and summarises them; `of_run` and `of_paper` say what a page shows of the
two kinds of folders; `assemble` puts data, styles and scripts into one file. The scripts draw
everything: `data.js` reads, `plot.js` draws, `figure.js` and the others fill the page.
"""
