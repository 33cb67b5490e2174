"""The screen: results on stdout, progress and notes on stderr, quiet where nobody looks."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from manyarms.lab.experiment import Experiment
from manyarms.lab.tables import ResultsFolder
from manyarms.report.text import Table

__all__ = [
    "Timer",
    "Watching",
    "counting",
    "duration",
    "out",
    "show",
    "summary_table",
    "write_json",
]

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


class Timer:
    """The time since it was made, as text."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self._begun:.1f} s"


@contextlib.contextmanager
def counting(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` things are done; what is yielded takes the name of each."""
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=_notes,
        transient=True,
        disable=not _notes.is_terminal,
    )
    task = bar.add_task("", total=total)
    with bar:
        yield lambda name: bar.update(task, advance=1, description=name)


class Watching:
    """One bar over several runs, with the rate and the time left."""

    def __init__(self) -> None:
        self._before = 0  # pulls of the runs that are done
        self._total: int | None = None  # of all runs, where that is known
        self._label = ""
        self._bar = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=_notes,
            transient=True,
            disable=not _notes.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, rate="")

    def __enter__(self) -> Watching:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def over(self, experiments: Sequence[Experiment]) -> Watching:
        """Say what will be played in all."""
        self._total = sum(experiment.pulls for experiment in experiments)
        return self

    def begin(self, label: str) -> Watching:
        """Name the run that follows; the result hears of its progress."""
        self._label = label
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
