"""Your own distributions of rewards and of means, and rewards that were recorded.

In a shop, few visitors buy, and those who buy spend different amounts. A distribution is a tuple of
numbers and one function, which the simulator compiles. Run it: `python examples/own_rewards.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import manyarms as ma
from manyarms.instances import draw_mean, reward
from manyarms.kit import draw, unit


class Baskets(NamedTuple):  # the name must be unique
    """A visitor buys for something between `least` and `most`, or does not buy."""

    least: float
    most: float

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.most


@reward.register(Baskets)
def basket(law: Baskets, arm: int, mean: float, word: int) -> float:
    share = mean / (0.5 * (law.least + law.most))  # of visitors who buy, for this mean
    if unit(word) >= share:
        return 0.0
    return law.least + (law.most - law.least) * unit(draw(word, 1))


class PowerMeans(NamedTuple):
    """The share of arms within x of the best mean, 0.9, is (2 x) ** tail."""

    tail: float

    @property
    def mean_range(self) -> tuple[float, float]:
        return 0.4, 0.9  # regret is measured against 0.9


@draw_mean.register(PowerMeans)
def power_mean(law: PowerMeans, word: int) -> float:
    return float(0.9 - 0.5 * (1.0 - unit(word)) ** (1.0 / law.tail))


def main() -> None:
    means = [0.5] * 30 + [0.2] * 970  # euros a visitor
    shop = ma.instances.from_means(means, rewards=Baskets(5.0, 15.0))
    policies = [ma.MOSS(), ma.Prospector()]  # sigma is set to 15/2
    print(ma.simulate(policies, shop, horizon=20_000, replications=20, checkpoints=1).summary())

    for tail in (1.0, 3.0):  # with a larger tail, arms near the best mean are rarer
        endless = ma.instances.reservoir(PowerMeans(tail))
        policy = ma.MOSSPlusPlus()
        result = ma.simulate(policy, endless, horizon=5_000, replications=20, checkpoints=1)
        print(f"\n{result.summary().table()}")

    seen = {"umbrella": [0, 0, 12], "coat": [0, 0, 0, 80], "hat": [5, 6, 4], "scarf": [0, 9]}
    past = ma.instances.from_rewards(seen)  # a pull draws one of the arm's recorded rewards
    result = ma.simulate(ma.MOSS(), past, horizon=5_000, replications=20, checkpoints=1)
    best = list(seen)[int(result.recommended[0, 0])]
    print(f"\nbest in the past: {best}, {past.best_mean:.2f} a visitor")


if __name__ == "__main__":
    main()
