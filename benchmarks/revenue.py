"""Measure policies on revenue: the table of docs/policies/prospector.md (a minute).

    python benchmarks/revenue.py

A visitor of a picture orders with the picture's conversion rate, and orders have a log-normal
value, cut off at the largest one. The table shows what a policy earns, as a multiple of what
pulling random arms earns. Policies know the range of rewards only.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

import manyarms as ma
from manyarms.instances import reward
from manyarms.kit import draw, unit

ARMS, VISITORS, RUNS = 50_000, 60_000, 40
POLICIES = ("prospector(guess_horizon=True)", "prospector", "ss-greedy", "empmoss++")


class LogNormalOrders(NamedTuple):
    """A visitor orders nothing, or for `median` times exp(`sigma` Z), at most `largest`."""

    median: float
    sigma: float
    largest: float
    average: float  # the average value of an order

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.largest


@reward.register(LogNormalOrders)
def order(law: LogNormalOrders, arm: int, mean: float, word: int) -> float:
    if unit(word) >= mean / law.average:
        return 0.0
    radius = math.sqrt(-2.0 * math.log(1.0 - unit(draw(word, 1))))
    normal = radius * math.cos(2.0 * math.pi * unit(draw(word, 2)))
    return float(min(law.largest, law.median * math.exp(law.sigma * normal)))


def orders(median: float, sigma: float, largest: float) -> LogNormalOrders:
    cut, phi = math.log(largest / median) / sigma, NormalDist().cdf
    below = median * math.exp(0.5 * sigma * sigma) * phi(cut - sigma)
    return LogNormalOrders(median, sigma, largest, below + largest * (1.0 - phi(cut)))


LAWS: dict[str, LogNormalOrders | None] = {
    "clicks": None,
    "orders": orders(35.0, 0.7, 2000.0),
    "heavy orders": orders(35.0, 1.5, 20_000.0),
}


def earnings(policy: ma.Policy, name: str, *, arms: int = ARMS, runs: int = RUNS) -> np.ndarray:
    """Return the earnings of each run, as a multiple of those of random arms."""
    law, means = LAWS[name], np.random.default_rng(1).beta(2, 60, arms)  # 3 % on average
    if law is None:
        shop = ma.instances.from_means(means)
    else:
        means *= law.average
        shop = ma.instances.from_means(means, rewards=law)
    result = ma.simulate(policy, shop, horizon=VISITORS, replications=runs, checkpoints=1, seed=0)
    return np.asarray((means.max() - result.regret[0, :, -1] / VISITORS) / means.mean())


def main() -> None:
    """Print the table: the mean of all runs, and the worst run."""
    print(f"| policy | {' | '.join(LAWS)} |")
    print("| --- " * (1 + len(LAWS)) + "|")
    for policy in POLICIES:
        runs = [earnings(ma.policy(policy), name) for name in LAWS]
        cells = [f"{each.mean():.1f}, {each.min():.1f}" for each in runs]
        print(f"| `{policy}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
