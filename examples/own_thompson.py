"""A compiled policy that draws random numbers: Thompson sampling for Gaussian rewards.

Each arm's mean has the prior N(1/2, 1), and rewards have the standard deviation `sigma`. Each pull
draws a mean for every arm from its posterior, and takes the arm with the largest.
Run it: `python examples/own_thompson.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.kit import Floats, Memory, Positive, Stream, normal, plays, restart, stream
from manyarms.policies import SubSampled


class OwnThompsonState(NamedTuple):
    """The posterior of each arm: its mean, and its precision (1 / variance)."""

    arms: int
    sigma: float
    mean: Floats
    precision: Floats
    samples: Stream  # of random words


def thompson_reset(state: OwnThompsonState, key: int, horizon: int) -> None:
    restart(state.samples, key)
    for arm in range(state.arms):
        state.mean[arm] = 0.5
        state.precision[arm] = 1.0


def thompson_ask(state: OwnThompsonState) -> tuple[int, int]:
    best, highest = 0, -math.inf
    for arm in range(state.arms):
        sample = state.mean[arm] + normal(state.samples) / math.sqrt(state.precision[arm])
        if sample > highest:
            best, highest = arm, sample
    return best, best


def thompson_tell(state: OwnThompsonState, slot: int, reward: float) -> None:
    gained = 1.0 / state.sigma**2
    state.precision[slot] += gained
    state.mean[slot] += (reward - state.mean[slot]) * gained / state.precision[slot]


plays(OwnThompsonState, reset=thompson_reset, ask=thompson_ask, tell=thompson_tell)


@dataclass(frozen=True, kw_only=True)
class OwnThompson(ma.Policy):
    name = "own-thompson"
    anytime = True

    sigma: Positive = 0.5

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> OwnThompsonState:
        return OwnThompsonState(
            arms=n_arms,
            sigma=self.sigma,
            mean=memory.floats(n_arms),
            precision=memory.floats(n_arms),
            samples=stream(memory),
        )


def main() -> None:
    noisy = ma.instances.Gaussian(sigma=0.5)
    instance = ma.instances.planted(n=20_000, alpha=0.2, horizon=10_000, rewards=noisy)
    policies = [SubSampled(OwnThompson(), exponent=0.5), ma.MOSSPlusPlus()]
    print(ma.simulate(policies, instance, horizon=10_000, replications=50).summary())


if __name__ == "__main__":
    main()
