"""A clock that does not jump when the machine's clock is set."""

from __future__ import annotations

import functools
import time

# On Linux, the monotonic clock does not count the time during which the machine was suspended.
_passed = time.monotonic
if hasattr(time, "CLOCK_BOOTTIME"):
    _passed = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)

_BEGAN = time.time() - _passed()


def now() -> float:
    """Return the machine's time when the process started, plus the time that has passed since."""
    return _BEGAN + _passed()
