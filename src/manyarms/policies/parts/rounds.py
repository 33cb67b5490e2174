"""Rounds of 2, 4, 8, … pulls on a set of arms that grows from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Record, Records
from manyarms.policies.parts.fresh import FreshArms, reset_arms, resize
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.policies.parts.slots import begin

__all__ = ["RoundClock", "RoundPolicy", "begin_round", "reset_rounds"]


class RoundClock(Record):
    """Where the game is."""

    horizon: int  # T, or 0 if not known
    round: int  # l
    left: int  # pulls left in the round


@kernel
def reset_rounds(clock: Records[RoundClock], arms: FreshArms, key: int, horizon: int) -> None:
    """Begin a game; the first round begins with the first pull."""
    reset_arms(arms, key)
    begin(arms.slots, 1, 1)  # K and H come with the first round
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


@dataclass(frozen=True, kw_only=True)
class RoundPolicy(IndexPolicy):
    """A policy that plays such rounds, and so needs no horizon."""

    anytime: ClassVar[bool] = True

    def stage(self, state: Any) -> str:
        return f"round {state.clock[0].round}"

    def _last_round(self, pulls: int) -> int:
        """Return the round in which a game of so many pulls ends: round l ends with 2^(l+1) - 2."""
        return (pulls + 1).bit_length() - 1
