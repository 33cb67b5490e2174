"""The screen: results on stdout, progress and notes on stderr, quiet where nobody looks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

__all__ = ["OverallProgress", "counting", "out"]

_WIDE = 200  # where nobody looks, nothing is cut

out = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
_notes = Console(stderr=True, highlight=False)


@contextlib.contextmanager
def counting(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` things are done; what is yielded is told the name of each."""
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=_notes,
        transient=True,
        disable=not _notes.is_terminal,
    )
    task = bar.add_task("", total=total)
    with bar:
        yield lambda name: bar.update(task, advance=1, description=name)


class OverallProgress:
    """One bar over several simulations, with the rate and the time left.

    Parameters
    ----------
    pulls
        The pulls of all simulations together.
    """

    def __init__(self, pulls: int) -> None:
        self._before = 0  # pulls of the simulations that are done
        self._label = ""
        self._bar = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=_notes,
            transient=True,
            disable=not _notes.is_terminal,
        )
        self._task = self._bar.add_task("", total=pulls, rate="")

    def __enter__(self) -> OverallProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self, label: str) -> None:
        """Name the simulation that follows."""
        self._label = label
        if not _notes.is_terminal:
            _notes.print(f"manyarms: {label}", soft_wrap=True)

    def __call__(self, done: int, total: int, note: str) -> None:
        """Show how far the current simulation is."""
        speed = self._bar.tasks[0].speed
        self._bar.update(
            self._task,
            completed=self._before + done,
            description=f"{self._label}  {note}",
            rate=f"{speed / 1e6:.0f} million pulls/s" if speed else "",
        )
        if done == total:
            self._before += total
