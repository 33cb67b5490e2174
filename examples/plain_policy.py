"""A policy as a plain Python class: `ask` returns an arm, `tell` takes its reward.

Epsilon-greedy on a few random arms, in twenty lines. CPython runs it far slower than a compiled
policy, but on the same random rewards and with results in the same tables. Use it for a first try,
before you write a policy as in `own_policy.py`.
Run it: `python examples/plain_policy.py`, or from the shell, in this folder:

    manyarms simulate --policy plain_policy:EpsilonGreedy:epsilon=0.05 --policy prospector
    --n 1000 --alpha 0.2 --horizon 2000 --replications 20
"""

from __future__ import annotations

import random

import manyarms as ma


class EpsilonGreedy:
    """Choose a random arm with probability epsilon, otherwise the arm with the largest mean."""

    name = "epsilon-greedy"

    def __init__(self, n_arms: int, seed: int, arms: int = 50, epsilon: float = 0.1) -> None:
        self.random = random.Random(seed)
        self.arms = self.random.sample(range(n_arms), min(arms, n_arms))
        self.epsilon = epsilon
        self.pulls = dict.fromkeys(self.arms, 0)
        self.total = dict.fromkeys(self.arms, 0.0)

    def ask(self) -> int:
        if self.random.random() < self.epsilon:
            return self.random.choice(self.arms)
        return max(self.arms, key=lambda arm: (self.total[arm] + 1.0) / (self.pulls[arm] + 1.0))

    def tell(self, arm: int, reward: float) -> None:
        self.pulls[arm] += 1
        self.total[arm] += reward


def main() -> None:
    instance = ma.instances.planted(n=1_000, alpha=0.2, horizon=2_000)
    few = ma.plain_policy(EpsilonGreedy, arms=10)
    policies: list[ma.Policy | type] = [EpsilonGreedy, few, ma.EmpMOSSPlusPlus(), ma.Prospector()]
    print(ma.simulate(policies, instance, horizon=2_000, replications=20).summary())


if __name__ == "__main__":
    main()
