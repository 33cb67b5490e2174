"""Wait, without blocking the event loop, for what a copy of this process computes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from manyarms.core.process_copy import ProcessCopy

_LONGEST = 120.0  # seconds; then the copy has met a lock that nobody opens any more


async def forked(work: Callable[[], bytes]) -> bytes:
    """Return what a copy of this process computes. It begins before this awaits anything.

    Raises an `OSError` if there can be no copy, or it failed.
    """
    copy = ProcessCopy(work)
    try:
        return await asyncio.wait_for(asyncio.to_thread(copy.wait), _LONGEST)
    except (TimeoutError, asyncio.CancelledError):  # else the thread would wait for it for ever
        copy.kill()
        raise
