"""Rounds of 2, 4, 8, … pulls on a set of arms that grows from one to the next.

A state has `clock` and `arms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyarms.core.jit import rare
from manyarms.core.memory import Record, wipe
from manyarms.policies.parts.fresh import reset_arms, resize
from manyarms.policies.parts.moss_slots import begin
from manyarms.policies.parts.parameters import IndexPolicy


class RoundClock(Record):
    horizon: int  # T, or 0 if not known
    round: int  # l
    left: int  # pulls left in the round


def reset_rounds(state: Any, key: int, horizon: int) -> None:
    """Begin a game; the first round begins with the first pull."""
    reset_arms(state.arms, key)
    begin(state.arms.slots, 1, 1)  # K and H come with the first round
    wipe(state.clock, 0)
    state.clock[0].horizon = horizon


@rare
def next_round(state: Any, arms: int) -> None:
    """Double the length, play on `arms` arms, and compute all indices with the new K and H."""
    clock = state.clock[0]
    clock.round += 1
    clock.left = 1 << clock.round
    end = (2 << clock.round) - 2  # 2 + 4 + … + 2^l
    horizon = min(end, clock.horizon) if clock.horizon > 0 else end
    resize(state.arms, arms, horizon)


def last_round(pulls: int) -> int:
    """Return the round in which a game of `pulls` pulls ends: round l ends with 2^(l+1) - 2."""
    return (pulls + 1).bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class RoundPolicy(IndexPolicy):
    """An anytime policy that plays such rounds."""

    anytime = True

    def stage(self, state: Any) -> str:
        return f"round {state.clock[0].round}"
