"""Playing side by side: the threads of a GPU that go the same way, step by step.

32 threads of a GPU share one instruction at a time. Where one of them has long work to do, all wait
for it. So a lane that has waits itself, while the others go on, until the work of several is done
in the time of one. They need not be equally far: no lane knows of another's game.

On the CPU a replication plays alone, and all this comes to nothing.
"""

from __future__ import annotations

from typing import Any

from manyarms.core.jit import kernel, optional

__all__ = ["companions", "held_back", "is_slow", "still_playing"]


@optional
def is_slow(state: Any) -> bool:
    """Whether the next `ask` takes far longer than most: it must look for a new leader, say.

    A policy may do without; its answer changes nothing but the time it takes on a GPU.
    """
    return False


@kernel
def companions() -> int:
    """Return who plays beside: on a GPU a bit for each lane of the same 32 threads."""
    return 0


@kernel
def still_playing(companions: int, playing: bool) -> bool:
    """Whether this replication, or one beside it, goes on."""
    return playing


@kernel
def held_back(companions: int, playing: bool, state: Any) -> bool:
    """Whether to let the others go first: it has ended, or waits with its long work."""
    return not playing
