"""Rounds of 2, 4, 8, … pulls on a set of arms that grows from one to the next."""

from __future__ import annotations

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Record, Records
from manyarms.policies.parts.fresh import FreshArms, reset_fresh_arms, resize, start_on

__all__ = ["RoundClock", "begin_round", "reset_rounds"]


class RoundClock(Record):
    """Where the game is."""

    horizon: int  # T, or 0 if not known
    round: int  # l
    left: int  # pulls left in the round


@kernel
def reset_rounds(clock: Records[RoundClock], arms: FreshArms, key: int, horizon: int) -> None:
    """Begin a game; the first round begins with the first pull."""
    reset_fresh_arms(arms, key)
    start_on(arms, 1, 1)  # K and H come with the first round
    clock[0].horizon = horizon
    clock[0].round = 0
    clock[0].left = 0


@rare
def begin_round(clock: Records[RoundClock], arms: FreshArms, members: int) -> None:
    """Double the length, widen the set, and compute all indices with the new K and H."""
    clock[0].round += 1
    clock[0].left = 1 << clock[0].round
    end = (2 << clock[0].round) - 2  # 2 + 4 + … + 2^l
    horizon = clock[0].horizon
    resize(arms, members, min(end, horizon) if horizon > 0 else end)
