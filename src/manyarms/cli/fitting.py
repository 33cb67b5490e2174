"""Tables that fit the screen: fewer columns first, then several tables; no number is ever cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from manyarms.report.text import Table

__all__ = ["fitted", "is_prose"]

_GAP = 2  # between columns
_WORDS = re.compile(r"(?:[^\W\d_]{2,}[^\w]+){2}[^\W\d_]{2,}")  # three in a row
_PROSE = 18  # columns that prose is given at least


def is_prose(cells: Sequence[str]) -> bool:
    """Whether a column holds sentences, which may be wrapped; numbers and names may not.

    >>> is_prose(["moss++(beta=0.6)", "[7118.6, 8262.3]"]), is_prose(["none of them holds"])
    (False, True)
    """
    return any(_WORDS.search(cell) for cell in cells)


def fitted(table: Table, width: int) -> list[Table]:
    """Return tables that fit into `width` columns and, together, show what one would.

    First the optional columns are left out, as far as needed. Then the others are split over
    several tables that begin with the same `keys` columns.

    >>> wide = Table(["policy", "mean", "median"], [["moss++", "1947.5", "1795.6"]])
    >>> [part.head for part in fitted(wide, 15)]
    [['policy', 'mean'], ['policy', 'median']]
    """
    columns = [[name, *cells] for name, *cells in zip(table.head, *table.rows, strict=True)]
    widths = [_least(cells) for cells in columns]
    places = list(range(len(columns)))

    def fits(chosen: Sequence[int]) -> bool:
        return sum(widths[k] + _GAP for k in chosen) - _GAP <= width

    for name in table.optional:
        if fits(places):
            break
        places.remove(list(table.head).index(name))
    keys, rest = places[: table.keys], places[table.keys :]
    blocks: list[list[int]] = [[]]
    for k in rest:
        if blocks[-1] and not fits([*keys, *blocks[-1], k]):
            blocks.append([])
        blocks[-1].append(k)
    return [
        replace(
            table,
            head=[table.head[k] for k in (*keys, *block)],
            rows=[[row[k] for k in (*keys, *block)] for row in table.rows],
            title=table.title if block is blocks[0] else "",
            optional=(),
        )
        for block in blocks
    ]


def _least(cells: Sequence[str]) -> int:
    """Return the columns that a column of text cannot do without."""
    natural = max(map(cell_len, cells))
    if not is_prose(cells):
        return natural
    longest = max(cell_len(word) for cell in cells for word in cell.split() or [""])
    return min(natural, max(longest, _PROSE))
