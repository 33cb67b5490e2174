"""Whether a state that comes from a file can be: asked before anything is played with it.

A checksum says that a file is as it was written, not that manyarms wrote it. Most nonsense in a
state is harmless: it shows as an error, or as a poor choice. What runs for ever does neither, so
each part says of its own numbers whether all is in order that a loop runs to, a shift is made
by, or a link leads to. Where numbers follow from the pulls so far they must be those.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

from manyarms.core.sampler import Sampler
from manyarms.core.tournament import Tournament

_MIXTURES = 64  # more than a table holds beside arms


class Known(NamedTuple):
    """What the game knows without its state."""

    arms: int  # that ever were
    horizon: int  # 0 where none is known
    pulls: int  # asked for
    told: int  # rewards
    touched: int  # arms that were asked for
    retired: frozenset[int]

    @property
    def slots(self) -> int:
        """The slots that a table may have, at most."""
        return self.touched + len(self.retired) + _MIXTURES


@singledispatch
def sound(part: Any, known: Known) -> bool:
    """Whether no loop runs for ever on a part of a state; in general, if that holds for its parts.

    The body for a class that has one looks at numbers of its own, too.
    """
    return all(sound(inner, known) for inner in part if hasattr(inner, "_fields"))


@singledispatch
def holds(state: Any, slot: int) -> bool:
    """Whether a reward may be told for this slot; a state with no body takes all numbers."""
    return True


@sound.register(Sampler)
def sampler_is_sound(sampler: Sampler, known: Known) -> bool:
    n, moved = sampler.n[0], sampler.moved
    entries = [moved.used[k] for k in range(moved.filled[0])]
    return (
        1 <= n <= known.arms
        and all(0 <= sampler.drawn[which] <= n for which in range(sampler.shuffles))
        and all(moved.cells[at] <= n * sampler.shuffles for at in entries)  # name + 1
        and all(moved.cells[at + 1] < n for at in entries)
    )


@sound.register(Tournament)
def tournament_is_sound(rank: Tournament, known: Known) -> bool:
    board, base = rank.board[rank.number], rank.base
    if not 0 <= board.leaders <= board.size <= known.slots:
        return False
    seats = {slot: rank.seat[slot] for slot in range(base, base + board.size)}
    places = {rank.leaders[base + k]: k + 1 for k in range(board.leaders)}
    alone = board.top == -1 or (board.top in seats and board.top not in places)
    unused = board.size == board.top == 0  # it was never cleared
    return (
        (alone or unused)
        and len(places) == board.leaders
        and places == {slot: seat.place for slot, seat in seats.items() if seat.place != 0}
        and not any(math.isnan(seat.key) for seat in seats.values())
    )
