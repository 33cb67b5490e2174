"""Pages of text and tables, written once and rendered twice: as Markdown and as HTML.

A page is a list of blocks: Markdown (a heading, a picture or a paragraph with `**strong**` and
`` `code` ``), or a table. A table with a title is folded away in HTML, and left out of Markdown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from manyarms.report.markdown import Table

__all__ = ["Block", "Warm", "as_html", "as_markdown"]

Block = str | Table


class Warm(str):
    """A cell of a table with a warmth from 0 to 1, its colour in HTML.

    >>> as_html([Table(["regret"], [[Warm("12", 0.5)]])], title="A page").count("hsl")
    1
    """

    warmth: float

    def __new__(cls, text: str, warmth: float) -> Warm:
        """Make a cell."""
        self = super().__new__(cls, text)
        self.warmth = warmth
        return self


def as_markdown(blocks: Sequence[Block]) -> str:
    r"""Render a page as Markdown.

    >>> as_markdown(["# A page", Table(["arm"], [["7"]]), Table(["arm"], [["8"]], "folded")])
    '# A page\n\n| arm |\n| --- |\n| 7 |'
    """
    shown = (block for block in blocks if isinstance(block, str) or not block.title)
    return "\n\n".join(b if isinstance(b, str) else b.markdown() for b in shown)


def as_html(
    blocks: Sequence[Block], *, title: str, pictures: Mapping[str, str] | None = None
) -> str:
    """Render a page as HTML that needs nothing else: no network, no script, no fonts.

    Parameters
    ----------
    blocks, title
        The page, and the title of its window.
    pictures
        By the path that Markdown has: pictures as SVG.

    Examples
    --------
    >>> as_html(["## Where we lose"], title="A page").count("<h2>Where we lose</h2>")
    1
    """
    body = "\n".join(_html(block, pictures or {}) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _html(block: Block, pictures: Mapping[str, str]) -> str:
    if isinstance(block, Table):
        head = "".join(f"<th>{_inline(cell)}</th>" for cell in block.head)
        rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
        wide = f'<div class="wide">{table}</div>'
        summary = f"<summary>{html.escape(block.title)}</summary>"
        return f"<details>{summary}{wide}</details>" if block.title else wide
    if heading := re.fullmatch("(#+) (.*)", block):
        level = len(heading[1])
        return f"<h{level}>{html.escape(heading[2])}</h{level}>"
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", block):
        svg = pictures[picture[2]]
        drawn = svg[svg.index("<svg") :]
        return f"<figure>{drawn}<figcaption>{_inline(picture[1])}</figcaption></figure>"
    return f"<p>{_inline(block)}</p>"


def _cell(text: str) -> str:
    if not isinstance(text, Warm):
        return f"<td>{_inline(text)}</td>"
    # from white to a light orange, on which black is easy to read
    return f'<td style="background:hsl(28 85% {97 - 35 * text.warmth:.0f}%)">{_inline(text)}</td>'


def _inline(text: str) -> str:
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0; }
main { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
p, figcaption { max-width: 46rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; }
.wide { overflow-x: auto; } summary { cursor: pointer; } code { font-size: 0.92em; }
table { border-collapse: collapse; font-size: 0.82rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.22rem 0.55rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #888; vertical-align: bottom; white-space: normal; }
td { border-bottom: 1px solid #eee; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
tbody tr:hover td { outline: 1px solid #bbb; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #555; } details { margin: 0.3rem 0; }
"""
