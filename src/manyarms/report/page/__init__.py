"""The page `report.html`: from folders of results to plain data, which its scripts draw.

`contents` says what a page shows, of one folder or of several; `figures` has its numbers and
figures; `presentation` is what a study adds. Of the scripts, `data.js` reads, `plot.js` draws, and
`sections.js` fills the page.
"""
