"""A compiled policy of your own: UCB on √T random arms.

Write a state, three functions on it, and a table that names them. CPython runs the functions live,
and the simulator compiles the same functions. `SubSampled` draws the random arms, so the policy
itself sees a few arms, numbered from 0. Run it: `python examples/own_policy.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.kit import Floats, Ints, Memory, Positive, plays
from manyarms.policies import SubSampled


class OwnUCBState(NamedTuple):  # the name must be unique
    """What is known about each arm."""

    arms: int
    width: float
    time: Ints  # [pulls so far]; fields that change are arrays
    pulls: Ints  # by arm
    total: Floats  # rewards, by arm


def ucb_reset(state: OwnUCBState, key: int, horizon: int) -> None:
    state.time[0] = 0
    for arm in range(state.arms):
        state.pulls[arm] = 0
        state.total[arm] = 0.0


def ucb_ask(state: OwnUCBState) -> tuple[int, int]:
    time = state.time[0]
    best, highest = time, -math.inf  # at first, each arm once
    if time >= state.arms:
        for arm in range(state.arms):
            pulls = state.pulls[arm]
            index = state.total[arm] / pulls + state.width * math.sqrt(math.log(time) / pulls)
            if index > highest:
                best, highest = arm, index
    state.time[0] = time + 1
    state.pulls[best] += 1
    return best, best  # the slot that gets the reward, and the arm


def ucb_tell(state: OwnUCBState, slot: int, reward: float) -> None:
    state.total[slot] += reward


plays(OwnUCBState, reset=ucb_reset, ask=ucb_ask, tell=ucb_tell)


@dataclass(frozen=True, kw_only=True)
class OwnUCB(ma.Policy):
    name = "own-ucb"

    width: Positive = 0.5

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> OwnUCBState:
        arms = min(n_arms, pulls)
        return OwnUCBState(
            arms=arms,
            width=self.width,
            time=memory.ints(1),
            pulls=memory.ints(arms),
            total=memory.floats(arms),
        )


def main() -> None:
    policy = SubSampled(OwnUCB(), exponent=0.5)
    live = policy.live(n_arms=1_000_000, horizon=9, seed=1)
    for _ in range(9):
        pull = live.ask()
        live.tell(pull, reward=float(pull.arm % 2))
        print(f"pull {pull.id}: arm {pull.arm}")

    instance = ma.instances.planted(n=20_000, alpha=0.25, horizon=50_000)
    policies = [policy, ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()]
    print(ma.simulate(policies, instance, horizon=50_000, replications=100).summary())


if __name__ == "__main__":
    main()
