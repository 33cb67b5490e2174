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

from manyarms.cli.printable import printable
from manyarms.core.files import fix_for, replace_file
from manyarms.errors import FolderError
from manyarms.lab.experiment import Experiment
from manyarms.lab.tables import ResultsFolder
from manyarms.report.markdown import Table

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

# names and paths are data: neither [bold] nor :smile: means anything in them
_AS_IS: Any = {"highlight": False, "markup": False, "emoji": False}
out = Console(**_AS_IS, width=None if sys.stdout.isatty() else _WIDE)
_notes = Console(**_AS_IS, stderr=True)


def show(*things: Table | str) -> None:
    """Print texts as they are, and tables of text."""
    for thing in things:
        if isinstance(thing, str):
            out.print(printable(thing), soft_wrap=True)
            continue
        if thing.title:
            out.print(printable(thing.title))
        head = (Column(Text(printable(name))) for name in thing.head)
        grid = Grid(*head, box=None, pad_edge=False)
        for row in thing.rows:
            grid.add_row(*(Text(printable(cell)) for cell in row))
        out.print(grid)


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


def summary_table(results: ResultsFolder) -> Table:
    """Return the final regret of each policy in each cell, as text."""
    head = [*results.parameters, "policy", "mean", "95 % interval", "median", "missed", "runs"]
    rows = [
        [
            *("" if row[name] is None else f"{row[name]}" for name in results.parameters),
            row["policy"],
            f"{row['mean']:.1f}",
            f"[{row['low']:.1f}, {row['high']:.1f}]",
            f"{row['median']:.1f}",
            f"{row['miss_rate']:.1%}",
            f"{row['replications']}",
        ]
        for row in results.summary_rows()
    ]
    return Table(head, rows)


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
        yield lambda name: bar.update(task, advance=1, description=printable(name))


class Watching:
    """One bar over several runs, with the rate and the time left."""

    def __init__(self) -> None:
        self._before = 0  # pulls of the runs that are done
        self._now = 0  # pulls of the current one
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
        self._before, self._now = self._before + self._now, 0
        if not _notes.is_terminal:
            _notes.print(f"manyarms: {printable(label)}", soft_wrap=True)
        return self

    def __call__(self, done: int, total: int, note: str) -> None:
        """Show how far the current run is."""
        speed, self._now = self._bar.tasks[0].speed, done
        self._bar.update(
            self._task,
            total=self._total or total,
            completed=self._before + done if self._total else done,
            description=printable(f"{self._label}  {note}"),
            rate=f"{speed / 1e6:.0f} million pulls/s" if speed else "",
        )
