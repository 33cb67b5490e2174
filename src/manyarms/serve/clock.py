"""The time of a process. It does not jump when somebody sets the machine's clock."""

from __future__ import annotations

import time


def _passed() -> float:
    """Return seconds since some moment; those in which the machine slept count, too."""
    if hasattr(time, "CLOCK_BOOTTIME"):  # Linux: its monotonic clock does not count them
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


_BEGAN = time.time() - _passed()


def now() -> float:
    """Return the time as the clock had it when the process began, plus what has passed since."""
    return _BEGAN + _passed()
