"""The time of a process. It does not jump when somebody sets the machine's clock."""

from __future__ import annotations

import functools
import time

# Seconds since some moment. Those in which the machine slept count, too: on Linux, the monotonic
# clock leaves them out.
_passed = time.monotonic
if hasattr(time, "CLOCK_BOOTTIME"):
    _passed = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)

_BEGAN = time.time() - _passed()


def now() -> float:
    """Return the time as the clock had it when the process began, plus what has passed since."""
    return _BEGAN + _passed()
