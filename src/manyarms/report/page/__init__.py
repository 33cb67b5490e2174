"""The page `report.html`: from folders of results to plain data, and from data to one file of HTML.

`contents` says what a page shows, of one folder or of several; `presentation` is what a study adds
to it; `summary`, `figures` and `words` are its parts; `assemble` puts data, styles and scripts into
one file. The scripts draw everything: `data.js` reads, `plot.js` draws, `figure.js` and the others
fill the page.
"""
