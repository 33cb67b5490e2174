"""A policy that always pulls the same arm, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.kit import Memory, plays


class FixedState(NamedTuple):
    """The arm to pull, and the arm to recommend."""

    arm: int
    kept: int


def fixed_reset(state: FixedState, key: int, horizon: int) -> None:
    pass


def fixed_ask(state: FixedState) -> tuple[int, int]:
    return 0, state.arm


def fixed_tell(state: FixedState, slot: int, reward: float) -> None:
    pass


def fixed_recommend(state: FixedState) -> int:
    return state.kept


plays(
    FixedState,
    reset=fixed_reset,
    ask=fixed_ask,
    tell=fixed_tell,
    recommend=fixed_recommend,
)


@dataclass(frozen=True, kw_only=True)
class Fixed(ma.Policy):
    """Pull the same arm every time."""

    name = "fixed"
    anytime = True

    arm: int
    kept: int = -1

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> FixedState:
        return FixedState(self.arm, self.kept)
