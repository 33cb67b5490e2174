"""The screen: results on stdout, progress and notes on stderr; no bars without a terminal."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.status import Status
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from manyarms.cli.printable import broken, printable
from manyarms.core.files import fix_for, replace_file
from manyarms.errors import FolderError
from manyarms.report.text import Table
from manyarms.simulation.summary import Summary

_LINE_EVERY = 10.0  # seconds, in a log or a pipe, at least
_SELDOMER = 0.25  # of the time since the first line
_GAP = 2  # between columns
_WORDS = re.compile(r"(?:[^\W\d_]{2,}[^\w]+){2}[^\W\d_]{2,}")  # three in a row
_PROSE = 18  # columns that prose is given at least

# names and paths are data: neither [bold] nor :smile: means anything in them
_AS_IS: Any = {"highlight": False, "markup": False, "emoji": False}
out = Console(**_AS_IS)  # as wide as the terminal; in a pipe as COLUMNS says, or 80
_notes = Console(**_AS_IS, stderr=True)


def show(*things: Table | str) -> None:
    """Print texts and tables of text. All of it fits, and nothing is cut."""
    for thing in things:
        if isinstance(thing, str):
            _show_text(thing)
            continue
        if thing.title:
            _show_text(thing.title)
        parts = _fitted(thing, out.width)
        for number, part in enumerate(parts):
            if number > 0:
                out.print()
            _show_grid(part)
        if left_out := [name for name in thing.optional if name not in parts[0].head]:
            wider = "In a wider terminal" if out.is_terminal else "With COLUMNS=200"
            _show_text(f"({wider} there is more: {', '.join(left_out)}.)")


def _show_text(text: str) -> None:
    out.print(broken(printable(text), out.width), soft_wrap=True)


def _show_grid(table: Table) -> None:
    head = []
    for column in zip(table.head, *table.rows, strict=True):
        name, *_ = cells = [printable(cell) for cell in column]
        long = max(map(cell_len, cells)) > out.width // 2
        head.append(Column(Text(name), no_wrap=not (long or _is_prose(cells)), overflow="fold"))
    grid = Grid(*head, box=None, pad_edge=False)
    for row in table.rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    with out.capture() as drawn:
        out.print(grid, width=max(out.width, out.measure(grid).minimum), crop=False)
    out.file.write("\n".join(line.rstrip() for line in drawn.get().split("\n")))


def _is_prose(cells: Sequence[str]) -> bool:
    """Whether a column holds sentences, which may be wrapped; numbers and names may not.

    >>> _is_prose(["moss++(beta=0.6)", "[7118.6, 8262.3]"]), _is_prose(["none of them holds"])
    (False, True)
    """
    return any(_WORDS.search(cell) for cell in cells)


def _fitted(table: Table, width: int) -> list[Table]:
    """Return tables that fit into `width` columns and, together, show what one would.

    First the optional columns are left out, as far as needed. Then the others are split over
    several tables that begin with the same `keys` columns. A key takes half the width at most.

    >>> wide = Table(["policy", "mean", "median"], [["moss++", "1947.5", "1795.6"]])
    >>> [part.head for part in _fitted(wide, 15)]
    [['policy', 'mean'], ['policy', 'median']]
    """
    columns = [[name, *cells] for name, *cells in zip(table.head, *table.rows, strict=True)]
    widths = [_least(cells) for cells in columns]
    widths[: table.keys] = [min(one, width // 2) for one in widths[: table.keys]]
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
    """Return the least width of a column of text."""
    natural = max(map(cell_len, cells))
    if not _is_prose(cells):
        return natural
    longest = max(cell_len(word) for cell in cells for word in cell.split() or [""])
    return min(natural, max(longest, _PROSE))


def write_json(content: Any, path: str) -> None:
    """Write JSON to a file; "-" is standard output."""
    text = json.dumps(content, indent=2)
    if path == "-":
        out.print(text, soft_wrap=True)
        return
    try:
        replace_file(Path(path), f"{text}\n".encode())
    except OSError as error:
        raise FolderError(
            f"`--json` must name a file that can be written, got {path!r}: {error.strerror}. "
            f"{fix_for(error)}, or choose another file."
        ) from error


def summary_parts(summary: Summary) -> list[Table | str]:
    """Return a summary as tables that fit any screen."""
    shown = summary.table()
    parts: list[Table | str] = [
        Table(shown.head, shown.rows, shown.title, optional=["99 %", "median"])
    ]
    if summary.pairs:
        pairs = summary.table("pairs")
        parts += ["", Table(pairs.head, pairs.rows, pairs.title)]
    return parts


def _bar(*columns: ProgressColumn | str) -> Progress:
    """Return a bar on stderr that disappears at the end; it is only shown on a terminal."""
    return Progress(
        BarColumn(bar_width=24),
        *columns,
        TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=_notes,
        transient=True,
        disable=not _notes.is_terminal,
    )


def _rate(speed: float) -> str:
    """Return pulls per second, in words.

    >>> _rate(4e7), _rate(25_300)
    ('40 million pulls/s', '25,300 pulls/s')
    """
    return f"{speed / 1e6:.0f} million pulls/s" if speed >= 1e6 else f"{speed:,.0f} pulls/s"


def working(what: str) -> Status:
    """Say on a terminal what takes a while, until it is done."""
    return _notes.status(what)


@contextmanager
def counting(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` things are done; what is yielded takes the name of each."""
    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=printable(name))


@contextmanager
def watching() -> Iterator[Watch]:
    """Show one bar over several runs, with the rate and the time left."""
    with _bar("{task.percentage:>3.0f}%", "{task.fields[rate]}") as bar:
        yield Watch(bar)


class Watch:
    """Hears of the progress of runs, and moves a bar."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("", total=None, rate="")
        self._before = 0  # pulls of the runs that are done
        self._now = 0  # pulls of the current one
        self._total: int | None = None  # of all runs, where that is known
        self._label = ""
        self._begun = self._said = -math.inf  # when the first and the last line were printed

    def begin(self, label: str, total: int | None = None) -> Watch:
        """Name the run that follows, and the pulls of all; the result hears of its progress."""
        self._label, self._total = label, total
        self._begun = self._said = -math.inf
        self._before, self._now = self._before + self._now, 0
        return self

    def __call__(self, done: int, total: int, note: str) -> None:
        """Show how far the current run is."""
        speed, self._now = self._bar.tasks[0].speed, done
        self._bar.update(
            self._task,
            total=self._total or total,
            completed=self._before + done if self._total else done,
            description=printable(f"{self._label}  {note}"),
            rate=_rate(speed) if speed else "",
        )
        if not _notes.is_terminal:
            self._say(f"{done / max(1, total):.0%}", note)

    def _say(self, how_far: str, note: str) -> None:
        """Print a line now and then if there is no bar; less often the longer the run takes."""
        now = time.monotonic()
        if self._said == -math.inf:
            self._begun = now
        elif now - self._said < max(_LINE_EVERY, _SELDOMER * (now - self._begun)):
            return
        self._said = now
        text = f"{self._label}: {', '.join(filter(None, [how_far, note]))}"
        _notes.print(f"manyarms: {printable(text)}", soft_wrap=True)
