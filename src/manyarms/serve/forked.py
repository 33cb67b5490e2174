"""Work on the game as it is now, in a copy of this process, while this process goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import warnings
from collections.abc import Callable

_LONGEST = 120.0  # seconds; then the copy has met a lock that nobody opens any more
_MOST_FILES = 1 << 20  # that a process has open: the system may say that there is no limit
_DONE, _FAILED = b"+", b"-"  # what a copy writes last
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
    except (TimeoutError, asyncio.CancelledError):  # else the thread would wait for it for ever
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise


def _compute(work: Callable[[], bytes], write: int) -> None:
    """Write the result, in the copy, and end."""
    try:
        _be_alone(write)
        with open(write, "wb") as sink:
            try:
                result, end = work(), _DONE
            except BaseException as error:
                result, end = repr(error).encode(errors="replace"), _FAILED
            sink.write(result)
            sink.write(end)
    finally:
        os._exit(0)


def _be_alone(write: int) -> None:
    """Share nothing with the process that goes on but the pipe."""
    signal.set_wakeup_fd(-1)  # else what is sent to the copy would be heard there
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.closerange(3, write)  # else a lock, a session or a client would outlive this process
    os.closerange(write + 1, _MOST_FILES)
    os.nice(5)


def _result(child: int, read: int) -> bytes:
    with open(read, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    if data.endswith(_DONE) and not status:
        return data[:-1]
    why = data[:-1].decode() if data.endswith(_FAILED) else f"it ended with status {status}"
    raise OSError(f"the copy of this process failed: {why}")
