"""A policy as a user writes it: it cannot add or retire arms, and is not registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.kit import Floats, Ints, Memory, plays


class OwnGreedyState(NamedTuple):
    """What is known about each arm."""

    arms: int
    time: Ints
    pulls: Ints
    total: Floats


def own_greedy_reset(state: OwnGreedyState, key: int, horizon: int) -> None:
    state.time[0] = 0
    for arm in range(state.arms):
        state.pulls[arm] = 0
        state.total[arm] = 0.0


def own_greedy_ask(state: OwnGreedyState) -> tuple[int, int]:
    best = state.time[0] % state.arms
    if state.time[0] % 3 > 0:  # two pulls of three are of the arm with the largest mean
        for arm in range(state.arms):
            if state.total[arm] * state.pulls[best] > state.total[best] * state.pulls[arm]:
                best = arm
    state.time[0] += 1
    return best, best


def own_greedy_tell(state: OwnGreedyState, slot: int, reward: float) -> None:
    state.pulls[slot] += 1
    state.total[slot] += reward


plays(OwnGreedyState, reset=own_greedy_reset, ask=own_greedy_ask, tell=own_greedy_tell)


@dataclass(frozen=True, kw_only=True)
class OwnGreedy(ma.Policy):
    name = "own-greedy"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> OwnGreedyState:
        return OwnGreedyState(
            arms=n_arms,
            time=memory.ints(1),
            pulls=memory.ints(n_arms),
            total=memory.floats(n_arms),
        )
