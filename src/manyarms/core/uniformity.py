"""Whether a sequence of choices can be uniformly random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALARM = 1e-6  # the probability that random choices are doubted
_CHECKS = 5  # that share it
_MANY = 25  # expected events from which on a normal law stands for their number


def uniformity_doubt(chosen: NDArray[Any], rewards: NDArray[Any], n: int) -> str:
    """Return what speaks against uniformly random choices from `n`; "" if nothing does.

    It looks at how evenly numbers were chosen, in all and in each half, at how often one was chosen
    twice in a row, and at whether that depends on the reward. Random choices are doubted with a
    probability of about one in a million.

    >>> luck = np.random.default_rng(1)
    >>> chosen, rewards = luck.integers(5, size=1000), luck.random(1000)
    >>> uniformity_doubt(chosen, rewards, 5)
    ''
    >>> uniformity_doubt(np.arange(1000) % 5, rewards, 5)
    'an arm followed itself 0 times, and 200 would be expected'
    """
    middle = len(chosen) // 2
    for part, where in ((chosen, ""), (chosen[:middle], " first"), (chosen[middle:], " last")):
        if _unevenness(part, n) < _ALARM / _CHECKS:
            half = f" in the{where} half" if where else ""
            _, counts = np.unique(part, return_counts=True)
            least = counts.min() if len(counts) == n else 0
            return (
                f"arms were chosen too unevenly{half}, {least} to {counts.max()} times "
                f"where {len(part) / n:.3g} would be expected"
            )
    repeats = chosen[1:] == chosen[:-1]
    expected = len(repeats) / n
    if _two_sided(int(repeats.sum()), len(repeats), 1.0 / n) < _ALARM / _CHECKS:
        return (
            f"an arm followed itself {int(repeats.sum())} times, and {expected:.0f} would be "
            f"expected"
        )
    if expected >= _MANY:
        centred = rewards[:-1] - rewards[:-1].mean()
        spread = math.sqrt((1.0 - 1.0 / n) / n * float(centred @ centred))
        if spread > 0.0 and _normal(float(repeats @ centred) / spread) < _ALARM / _CHECKS:
            return "whether an arm was chosen again depends on its reward"
    return ""


def _unevenness(chosen: NDArray[Any], n: int) -> float:
    """Return the probability that counts are so uneven."""
    size = len(chosen)
    counts = np.unique(chosen, return_counts=True)[1].astype(np.float64)  # n may be a billion
    if size < 5 * n:  # pairs of equal choices are rare, and nearly independent
        return _at_least(float(counts @ (counts - 1.0)) / 2.0, size * (size - 1) / (2.0 * n))
    free = n - 1
    square = float(counts @ counts) * n / size - size
    # Wilson and Hilferty: the cube root of chi-square is nearly normal
    deviation = (square / free) ** (1 / 3) - (1.0 - 2.0 / (9.0 * free))
    return _normal(max(0.0, deviation / math.sqrt(2.0 / (9.0 * free))))


def _two_sided(successes: int, trials: int, chance: float) -> float:
    """Return twice the probability of this number of successes, or one farther out."""
    expected = trials * chance
    if expected >= _MANY:
        return _normal((successes - expected) / math.sqrt(expected * (1.0 - chance)))
    return _at_least(successes, expected) * 2.0  # with so few expected, none is no sign


def _at_least(events: float, expected: float) -> float:
    """Return the probability of at least `events` events if `expected` are expected (Poisson)."""
    if expected >= 1000.0:
        return _normal(max(0.0, events - expected) / math.sqrt(expected)) / 2.0
    fewer = (
        math.exp(k * math.log(expected) - expected - math.lgamma(k + 1))
        for k in range(math.ceil(events))
    )
    return max(0.0, 1.0 - math.fsum(fewer)) if expected > 0.0 else float(events == 0)


def _normal(deviations: float) -> float:
    """Return the probability of a normal deviation of this size or more, on either side."""
    return math.erfc(abs(deviations) / math.sqrt(2.0))
