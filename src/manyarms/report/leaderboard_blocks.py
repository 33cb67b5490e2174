"""A page as a list of blocks, written once and rendered twice: as Markdown and as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Block", "Details", "Heading", "Picture", "Table", "Text", "as_html", "as_markdown"]


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the page's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; `**strong**` and `` `code` `` are understood."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A figure: its SVG for the HTML page, its path for the Markdown one."""

    svg: str
    path: str
    caption: str


@dataclass(frozen=True)
class Table:
    """A table; `heat` gives each cell a warmth from 0 to 1, or None where it has no colour."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    heat: tuple[tuple[float | None, ...], ...] = ()


@dataclass(frozen=True)
class Details:
    """A table that the HTML page folds away and the Markdown page leaves out."""

    title: str
    table: Table


Block = Heading | Text | Picture | Table | Details


def as_markdown(blocks: Sequence[Block]) -> str:
    """Render a page as Markdown."""
    parts = [_markdown(block) for block in blocks if not isinstance(block, Details)]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Heading | Text | Picture | Table) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.path})"
    lines = [block.head, ("---",) * len(block.head), *block.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def as_html(blocks: Sequence[Block], *, title: str) -> str:
    """Render a page as HTML that needs nothing else: no network, no script, no fonts."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{html.escape(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return f"<p>{_inline(block.text)}</p>"
    if isinstance(block, Picture):
        svg = block.svg[block.svg.index("<svg") :]
        return f"<figure>{svg}<figcaption>{_inline(block.caption)}</figcaption></figure>"
    if isinstance(block, Details):
        return (
            f"<details><summary>{html.escape(block.title)}</summary>{_html(block.table)}</details>"
        )
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in block.head)
    heat = block.heat or tuple((None,) * len(row) for row in block.rows)
    rows = "\n".join(
        f"<tr>{''.join(_cell(*pair) for pair in zip(row, warmth, strict=True))}</tr>"
        for row, warmth in zip(block.rows, heat, strict=True)
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str, warmth: float | None) -> str:
    if warmth is None:
        return f"<td>{_inline(text)}</td>"
    # from white to a light orange, on which black is easy to read
    light = 97 - 35 * max(0.0, min(1.0, warmth))
    return f'<td style="background:hsl(28 85% {light:.0f}%)">{_inline(text)}</td>'


def _inline(text: str) -> str:
    escaped = html.escape(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0; }
main { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
p { max-width: 46rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
h3 { font-size: 1.05rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.82rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.22rem 0.55rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #888; vertical-align: bottom; white-space: normal; }
td { border-bottom: 1px solid #eee; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
tbody tr:hover td { outline: 1px solid #bbb; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #555; max-width: 46rem; }
details { margin: 0.3rem 0; } summary { cursor: pointer; }
code { font-size: 0.92em; }
"""
