"""What the paper's boxes leave to chance, in one place.

The policies of this folder take a `Luck`. With a seed, a run can be repeated.
Give a policy another object with these five methods, and you decide what is random: the
tests pass one that reads the package's random numbers, and then these files pull the
same arms as the package.
"""

import random


class Luck:
    """Chance from Python's own generator."""

    def __init__(self, seed=None):
        self.random = random.Random(seed)

    def sample(self, n, k):
        """Return k of the arms 0, ..., n - 1, uniformly at random, no arm twice."""
        return self.random.sample(range(n), k)

    def one_of(self, choices):
        """Return one of the choices of a mixture-arm, uniformly at random."""
        return self.random.choice(choices)

    def largest(self, values):
        """Return a key of largest value. (The theory allows any rule for ties.)"""
        top = max(values.values())
        return self.random.choice([key for key, value in values.items() if value == top])

    def lowest(self, values):
        """Return a key of lowest value, ties at random."""
        return self.largest({key: -value for key, value in values.items()})

    def best(self, n, k, means):
        """Return the k of n arms of largest mean, ties at random; no mean counts as 0."""
        arms = self.sample(n, n)  # in random order, which sorting keeps among equals
        return sorted(arms, key=lambda arm: means.get(arm, 0.0), reverse=True)[:k]
