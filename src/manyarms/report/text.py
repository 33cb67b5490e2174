"""Tables and pages of text, written once and rendered twice: as Markdown and as HTML.

A page is a list of blocks: Markdown (a heading, a picture or a paragraph with `**strong**` and
`` `code` ``), or a table. A table with a title is folded away in HTML, and left out of Markdown.
In HTML a script makes the heads of a table buttons that sort it, and long tables can be searched.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.core.statistics import Interval
from manyarms.core.theme import MARK
from manyarms.protocol.colours import page_css
from manyarms.report.style import thousands


@dataclass(frozen=True)
class Table:
    r"""A head, rows and a title, all text.

    On a narrow screen the `optional` columns are left out, the first of them first. If that is not
    enough, there are several tables, each with the first `keys` columns.

    >>> print(Table(["policy", "regret"], [["moss", "12"], ["a|b", "7"]]).markdown())
    | policy | regret |
    | --- | --- |
    | moss | 12 |
    | a\|b | 7 |
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    keys: int = 1
    optional: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the table as Markdown, without the title."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )


Block = str | Table


class Warm(str):
    """A cell of a table with a warmth from 0 to 1, its colour in HTML.

    >>> as_html([Table(["regret"], [[Warm("12", 0.5)]])], title="A page").count("--warmth:50%")
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
    """Render a page as HTML that needs nothing else: no network, no fonts, one script of ours.

    `title` is that of the window; `pictures` are SVG, by the path that Markdown has.

    >>> as_html(["## Where we lose"], title="A page").count("<h2>Where we lose</h2>")
    1
    """
    body = "\n".join(_html(block, pictures or {}) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>{page_css()}{part_of_page('text.css')}</style></head>\n"
        f'<body><header class="mark">{MARK} manyarms</header><main>\n{body}\n</main>\n'
        f"<script>{part_of_page('tables.js')}</script></body></html>\n"
    )


def _html(block: Block, pictures: Mapping[str, str]) -> str:
    if isinstance(block, Table):
        head = "".join(f'<th scope="col">{_inline(cell) or "#"}</th>' for cell in block.head)
        rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
        name = html.escape(block.title or "Table, which can be scrolled sideways")
        wide = f'<div class="wide" role="region" tabindex="0" aria-label="{name}">{table}</div>'
        summary = f"<summary>{html.escape(block.title)}</summary>"
        return f"<details>{summary}{wide}</details>" if block.title else wide
    if heading := re.fullmatch("(#+) (.*)", block):
        level = len(heading[1])
        return f"<h{level}>{html.escape(heading[2])}</h{level}>"
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", block):
        svg = pictures[picture[2]]
        drawn = svg[svg.index("<svg") :]
        caption = f"<figcaption>{_inline(picture[1])}</figcaption>"
        return f'<figure><div class="wide">{drawn}</div>{caption}</figure>'
    return f"<p>{_inline(block)}</p>"


def part_of_page(name: str) -> str:
    """Return a file of styles or scripts."""
    return resources.files("manyarms.report.page").joinpath(name).read_text(encoding="utf-8")


def _cell(text: str) -> str:
    if not isinstance(text, Warm):
        return f"<td>{_inline(text)}</td>"
    return f'<td class="warm" style="--warmth:{round(100 * text.warmth)}%">{_inline(text)}</td>'


def _inline(text: str) -> str:
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


def count_of(number: int, one: str, many: str = "") -> str:
    """Say how many, in words that fit.

    >>> count_of(1, "policy", "policies"), count_of(12000, "pull")
    ('1 policy', '12,000 pulls')
    """
    return f"{thousands(number)} {one if number == 1 else many or f'{one}s'}"


def interval_text(interval: Interval, digits: int) -> str:
    """Return an estimate with its interval, if there is one, as text.

    >>> interval_text(Interval(1, 0.75, 1.25), 2), interval_text(Interval(8, math.nan, math.nan), 0)
    ('1.00 [0.75, 1.25]', '8')
    """
    estimate, low, high = (f"{end:.{digits}f}" for end in interval)
    return estimate if math.isnan(interval.low) else f"{estimate} [{low}, {high}]"


def for_json(value: Any, digits: int | None = None) -> Any:
    """Return data for JSON: lists, None for what is not finite, numbers in few digits if asked.

    >>> for_json({"interval": (1.25, math.nan)}), for_json([2.0, 0.1234567], digits=5)
    ({'interval': [1.25, None]}, [2, 0.12346])
    """
    if isinstance(value, dict):
        return {str(key): for_json(one, digits) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(one, digits) for one in value]
    if not isinstance(value, float):
        return value
    if digits is None or not math.isfinite(value):
        return value if math.isfinite(value) else None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def write_text(path: Path, text: str) -> Path:
    """Write a page or a file of data as a whole, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (text.rstrip("\n") + "\n").encode())
    return path


def write_json(path: Path, content: object) -> Path:
    """Write plain data as JSON."""
    return write_text(path, json.dumps(content, indent=1, allow_nan=False))
