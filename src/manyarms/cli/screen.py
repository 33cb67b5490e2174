"""The screen: results on stdout, progress and notes on stderr, quiet where nobody looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from manyarms.lab.tables import ResultsFolder
from manyarms.report.text import Table

__all__ = ["Watch", "counting", "duration", "out", "show", "summary_table", "watching"]
__all__ += ["write_json"]

_WIDE = 200  # where nobody looks, nothing is cut

out = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
_notes = Console(stderr=True, highlight=False)


def show(*things: Table | str) -> None:
    """Print texts as they are, and tables of text."""
    for thing in things:
        if isinstance(thing, str):
            out.print(thing, markup=False, soft_wrap=True)
            continue
        if thing.title:
            out.print(thing.title, markup=False)
        grid = Grid(*(Column(Text(name)) for name in thing.head), box=None, pad_edge=False)
        for row in thing.rows:
            grid.add_row(*map(Text, row))  # names are data, never markup
        out.print(grid)


def write_json(content: Any, path: str) -> None:
    """Write JSON to a file; "-" is standard output."""
    text = json.dumps(content, indent=2)
    if path == "-":
        out.print(text, markup=False, soft_wrap=True)
    else:
        Path(path).write_text(text + "\n")


def summary_table(results: ResultsFolder) -> Table:
    """Return the final regret of each policy in each cell, as text."""
    rows = results.summary_rows()
    return Table(list(rows[0]), [[_text(*item) for item in row.items()] for row in rows])


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "miss_rate":
        return f"{value:.1%}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return an estimate in words.

    >>> duration(0.2), duration(90), duration(9000)
    ('less than a second', 'about 90 s', 'about 2.5 hours')
    """
    if seconds < 1:
        return "less than a second"
    return f"about {seconds:.0f} s" if seconds < 3600 else f"about {seconds / 3600:.1f} hours"


def _bar(*columns: ProgressColumn | str) -> Progress:
    """Return a bar on stderr that is gone in the end, and absent where nobody looks."""
    return Progress(
        BarColumn(bar_width=24),
        *columns,
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=_notes,
        transient=True,
        disable=not _notes.is_terminal,
    )


@contextmanager
def counting(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` things are done; what is yielded takes the name of each."""
    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=name)


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
        self._total: int | None = None  # of all runs, where that is known
        self._label = ""

    def begin(self, label: str, total: int | None = None) -> Watch:
        """Name the run that follows, and the pulls of all; the result hears of its progress."""
        self._label, self._total = label, total
        if not _notes.is_terminal:
            _notes.print(f"manyarms: {label}", markup=False, soft_wrap=True)
        return self

    def __call__(self, done: int, total: int, note: str) -> None:
        """Show how far the current run is."""
        speed = self._bar.tasks[0].speed
        self._bar.update(
            self._task,
            total=self._total or total,
            completed=self._before + done if self._total else done,
            description=f"{self._label}  {note}",
            rate=f"{speed / 1e6:.0f} million pulls/s" if speed else "",
        )
        if done == total and note == "":
            self._before += total
