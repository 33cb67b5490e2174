"""Confidence intervals as in docs/guarantees.md, computed independently, and comparisons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

ERROR = 0.05  # probability that any interval is ever wrong
RECOMMENDED_ERROR = 0.001  # of the lower bound by which an arm is recommended
_RHO = 12.5  # of Robbins' mixture


@dataclass
class Sums:
    """The number and the sum of some rewards."""

    count: int = 0
    total: float = 0.0

    def add(self, count: int, total: float) -> None:
        self.count += count
        self.total += total

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan


def share_of(place: int) -> float:
    """Return the share of the error of the arm that was tried in this place, from 0."""
    return 6.0 / (math.pi * (place + 1)) ** 2


def interval(
    sums: Sums, reward_range: tuple[float, float] | None, sigma: float | None, error: float
) -> tuple[float, float]:
    """Return the interval of a mean that is ever wrong with probability `error` or less."""
    n = sums.count
    if reward_range is None:
        assert sigma is not None
        half = sigma / n * math.sqrt((n + _RHO) * math.log((n + _RHO) / (_RHO * error**2)))
        return sums.mean - half, sums.mean + half
    low, high = reward_range
    ones = min(max((sums.total - low * n) / (high - low), 0.0), float(n))
    lower, upper = _lower(ones, n - ones, error), 1.0 - _lower(n - ones, ones, error)
    return low + (high - low) * lower, low + (high - low) * upper


def _lower(ones: float, zeros: float, error: float) -> float:
    """Return the smallest mean that a mixture over Beta(1/2, 1/2) does not refute, by bisection."""
    n = ones + zeros
    if ones <= 0.0:
        return 0.0
    mixture = math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(n + 1.0)
    mixture -= math.log(math.pi)
    left, right = 0.0, ones / n
    for _ in range(200):
        mean = (left + right) / 2.0
        likelihood = -math.inf
        if mean > 0.0:
            likelihood = ones * math.log(mean) + (zeros * math.log1p(-mean) if zeros else 0.0)
        if mixture - likelihood > -math.log(error):
            left = mean
        else:
            right = mean
    return left


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; numbers may differ by rounding."""
    if isinstance(one, float) and isinstance(other, float | int):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-7)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def difference(one: Any, other: Any, where: str = "") -> str:
    """Describe the first place at which two values differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            if not same(one[key], other[key]):
                return difference(one[key], other[key], f"{where}{key!r}: ")
    return f"{where}{one!r} and {other!r}"[:400]
