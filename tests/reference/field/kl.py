"""The KL index of KL-MOSS, kl-UCB-switch and KL-UCB++."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tests.reference.moss import Index, Slot


def clipped(mean: float) -> float:
    return min(1.0, max(0.0, mean))


def divergence(p: float, q: float) -> float:
    """Return kl(p, q), with 0 log 0 = 0; means are clipped to [0, 1]."""
    p = clipped(p)
    if q in (0.0, 1.0):
        return 0.0 if p == q else math.inf
    terms = [(p, q), (1 - p, 1 - q)]
    return sum(a * math.log(a / b) for a, b in terms if a > 0)


@cache
def largest(mean: float, bound: float) -> float:
    """Return the largest q with kl(mean, q) <= bound, by bisection on log(1 - q)."""
    p = clipped(mean)
    if p == 1 or bound == 0:
        return p
    entropy = -sum(a * math.log(a) for a in (p, 1 - p) if a > 0)

    def kl(y: float) -> float:
        # of q = 1 - e^y
        return -p * math.log(-math.expm1(y)) - (1 - p) * y - entropy

    if p == 0:
        return -math.expm1(-bound)
    low, high = -(bound + entropy) / (1 - p) - 1.0, math.log1p(-p)
    for _ in range(100):
        middle = (low + high) / 2
        if kl(middle) <= bound:
            high = middle
        else:
            low = middle
    return -math.expm1(high)


@dataclass(frozen=True, kw_only=True)
class KLIndex(Index):
    """The KL index: with `switch`, MOSS's after (H/K)^(1/5) pulls; with `plus`, KL-UCB++'s."""

    switch: bool = False
    plus: bool = False

    def value(self, slot: Slot, horizon: int, size: int) -> float:
        mean = slot.total / slot.pulls
        if slot.pulls * size >= horizon:
            return mean
        level = math.log(horizon / size) - math.log(slot.pulls)
        if self.plus:
            level += math.log(1 + level**2)
        level /= slot.pulls
        if self.switch and Fraction(slot.pulls) ** 5 > Fraction(horizon, size):
            return mean + math.sqrt(self.exploration * level / 2)
        return largest(mean, self.exploration * level)
