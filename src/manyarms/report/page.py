"""Static pages: SVG figures and tables in a single HTML file without scripts."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyarms.core.files import replace_file
from manyarms.core.tabular import TextTable
from manyarms.core.theme import MARK, css
from manyarms.report.drawing import Figure, rendered
from manyarms.report.figures import figures_of
from manyarms.report.style import policy_titles
from manyarms.report.text import count_of
from manyarms.simulation.results import Result
from manyarms.simulation.tables import ResultsFolder, read_results

REPORT = "_report.html"  # pandas.read_parquet(folder) skips names that begin with an underscore

_STYLES = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem clamp(1rem, 3vw, 2.5rem) 3rem;
  background: var(--paper); color: var(--ink); font: 16px/1.55 var(--letters);
  overflow-wrap: anywhere; }
.mark { display: flex; align-items: center; gap: .5rem; margin: 0; color: var(--accent);
  font-weight: 650; }
.mark svg { width: 2rem; fill: none; stroke: currentColor; stroke-width: 2.2;
  stroke-linecap: round; }
h1 { font-size: clamp(1.6rem, 4.6vw, 2.4rem); line-height: 1.15; margin: .3rem 0 .6rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .3rem; }
p { max-width: 72ch; margin: .3rem 0 .8rem; }
.lead { color: var(--soft); font-size: 1.08rem; }
img { display: block; max-width: 100%; margin: .8rem 0; padding: .8rem;
  background: white; border: 1px solid var(--rule); border-radius: 8px; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th { color: var(--soft); font-weight: 550; text-align: left; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: normal; }
td.number { white-space: nowrap; }
td.wordy { min-width: 14rem; }
@media print { body { max-width: none; padding: 0; } h2 { break-after: avoid; }
  img, tr { break-inside: avoid; } }
"""
# The file loads nothing, so it can be archived and sent.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_REM = 9.5  # per inch of a figure
_WORDY = 40  # characters: longer cells are wrapped


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, paragraphs, figures and tables, in this order."""

    title: str
    text: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[TextTable] = ()


def write_page(
    path: str | os.PathLike[str], *, title: str, lead: Sequence[str], sections: Sequence[Section]
) -> Path:
    """Write a page with a title, a lead and sections, and return its path.

    Parameters
    ----------
    path
        The file to write. Its folder is created if it does not exist.
    title, lead, sections
        The title, the paragraphs below it, and the sections. HTML in texts is escaped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sections = [Section("Arms", tables=[TextTable(["arm", "mean"], [["<7>", "0.9"]])])]
    ...     page = write_page(f"{folder}/page.html", title="A page", lead=[], sections=sections)
    ...     "<td>&lt;7&gt;</td>" in page.read_text()
    True
    """
    body = [f"<h1>{html.escape(title)}</h1>"]
    body += [f'<p class="lead">{html.escape(text)}</p>' for text in lead]
    for section in sections:
        body.append(f"<section><h2>{html.escape(section.title)}</h2>")
        body += [f"<p>{html.escape(text)}</p>" for text in section.text]
        body += [_image(figure, section.title) for figure in section.figures]
        body += [_table(table) for table in section.tables]
        body.append("</section>")
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{html.escape(title)} · manyarms</title>",
        f"<style>\n{css()}{_STYLES}</style>",
        f'<p class="mark">{MARK} manyarms</p>',
        "<main>",
        *body,
        "</main>",
        "</html>",
    ]
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, ("\n".join(lines) + "\n").encode())
    return target


def _image(figure: Figure, title: str) -> str:
    """Return a figure as an image, so that its ids cannot clash with those of other figures."""
    data = base64.b64encode(rendered(figure, "svg")).decode()
    size = f"width: {_REM * figure.get_size_inches()[0]:.1f}rem"
    return f'<img alt="{html.escape(title)}" style="{size}" src="data:image/svg+xml;base64,{data}">'


def _table(table: TextTable) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.head)
    rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    caption = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(text: str) -> str:
    lines = "<br>".join(map(html.escape, text.split("\n")))
    if len(text) > _WORDY:
        return f'<td class="wordy">{lines}</td>'
    return f'<td class="number">{lines}</td>' if text[:1].isdigit() else f"<td>{lines}</td>"


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write `_report.html` to a folder of results, and return its path.

    The page has SVG figures and a table for each problem. The same results give the same page.

    Parameters
    ----------
    folder
        A folder that `simulation.run` wrote.

    Examples
    --------
    >>> write_report("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must contain results of manyarms, got 'no such folder'...
    """
    results = read_results(folder)
    figures, left_out = figures_of(results)
    sections = [Section(title, figures=[figure]) for title, figure in figures]
    tables = [_summary(each) for each in results.cells]
    note = [f"{count_of(left_out, 'further problem')}: tables only."] if left_out else []
    sections.append(Section("Numbers", note, tables=tables))
    name = str(results.provenance["name"])
    return write_page(results.folder / REPORT, title=name, lead=[_lead(results)], sections=sections)


def _lead(results: ResultsFolder) -> str:
    """Return a sentence about what was simulated."""
    cells = results.cells
    policies = count_of(len({p for each in cells for p in each.policies}), "policy", "policies")
    runs = count_of(max(each.replications for each in cells), "run")
    seed = results.provenance["seed"]
    problems = count_of(len(cells), "problem")
    stand_in = " Some data are synthetic stand-ins." if any(c.is_stand_in for c in cells) else ""
    return f"{policies} on {problems}, up to {runs} of each, seed {seed}.{stand_in}"


def _summary(result: Result) -> TextTable:
    """Return the summary of a cell as a table."""
    table = result.summary().table()
    titles = policy_titles(result.policies)
    rows = [[titles[row[0]], *row[1:]] for row in table.rows]
    return TextTable(table.head, rows, table.title)
