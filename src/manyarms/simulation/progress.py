"""A progress line on stderr.

It is written by hand because the simulator depends on NumPy and Numba only.
"""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO

from manyarms.core.checks import refusal

_WIDTH = 24
_QUIET_SECONDS = 1.0  # before the line is shown


class ProgressCallback(Protocol):
    """A callable that a simulation calls to report progress."""

    def __call__(self, done: int, total: int, note: str) -> None:
        """Report that `done` of `total` pulls are made."""


class _Line:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = time.monotonic()
        self._started: tuple[float, int] | None = None
        self._shown = False

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if self._started is None and done > 0:
            self._started = (now, done)  # so that compilation does not count in the rate
        if now - self._begun < _QUIET_SECONDS and not self._shown:
            return
        self._shown = True
        bar = "#" * int(_WIDTH * done / total)
        text = f"[{bar:<{_WIDTH}}] {done / total:4.0%}  {self._rate(now, done, total)}{note}"
        end = "\n" if done == total else ""
        self._stream.write(f"\r{text:<79}{end}")
        self._stream.flush()

    def _rate(self, now: float, done: int, total: int) -> str:
        if self._started is None or done == self._started[1]:
            return ""
        rate = (done - self._started[1]) / max(now - self._started[0], 1e-9)
        return f"{rate / 1e6:.1f} million pulls/s, {(total - done) / rate:.0f} s left  "


def progress_for(progress: bool | ProgressCallback | None) -> ProgressCallback:
    """Turn the `progress` argument into a callable; None shows a line on a terminal only."""
    if callable(progress):
        return progress
    if progress not in (True, False, None):
        raise refusal("progress", "True, False, None or a callable", progress)
    if progress is None:
        progress = sys.stderr.isatty()
    return _Line(sys.stderr) if progress else lambda done, total, note: None
