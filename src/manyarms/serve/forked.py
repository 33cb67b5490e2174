"""Work on the game as it is now, in a copy of this process, while this process goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import warnings
from collections.abc import Callable

_LONGEST = 120.0  # seconds; then the copy has met a lock that nobody opens any more
CAN_FORK = hasattr(os, "fork")


async def forked(work: Callable[[], bytes]) -> bytes:
    """Return what a copy of this process computes. It begins before this awaits anything.

    Raises an `OSError` if there can be no copy, or it failed.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the copy has not
        child = os.fork()
    if child == 0:
        _compute(work, write)
    os.close(write)
    try:
        return await asyncio.wait_for(asyncio.to_thread(_result, child, read), _LONGEST)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise


def _compute(work: Callable[[], bytes], write: int) -> None:
    """Write the result, in the copy, and end."""
    status = 1
    try:
        os.closerange(3, write)  # else a lock, a session or a client would outlive this process
        os.closerange(write + 1, os.sysconf("SC_OPEN_MAX"))
        os.nice(5)
        with open(write, "wb") as sink:
            sink.write(work())
        status = 0
    finally:
        os._exit(status)


def _result(child: int, read: int) -> bytes:
    with open(read, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError(f"the copy of this process ended with status {status}")
    return data
