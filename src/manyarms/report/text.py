"""Tables and pages of text: a page is a list of blocks, each Markdown or a table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.core.statistics import Interval
from manyarms.core.tabular import markdown_table
from manyarms.report.style import thousands


@dataclass(frozen=True)
class Table:
    r"""A head, rows and a title, all text.

    >>> print(Table(["policy", "regret"], [["moss", "12"], ["a|b", "7"]]).markdown())
    | policy | regret |
    | --- | --- |
    | moss | 12 |
    | a\|b | 7 |
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def markdown(self) -> str:
        """Return the table as Markdown, without the title."""
        return markdown_table(self.head, self.rows)


Block = str | Table


def as_markdown(blocks: Sequence[Block]) -> str:
    r"""Render a page as Markdown.

    >>> as_markdown(["# A page", Table(["arm"], [["7"]])])
    '# A page\n\n| arm |\n| --- |\n| 7 |'
    """
    return "\n\n".join(b if isinstance(b, str) else b.markdown() for b in blocks)


def part_of_page(name: str) -> str:
    """Return a file of styles, scripts or HTML."""
    return resources.files("manyarms.report.page").joinpath(name).read_text(encoding="utf-8")


def count_of(number: int, one: str, many: str = "") -> str:
    """Return a count with its noun, in the singular or the plural.

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
