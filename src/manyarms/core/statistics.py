"""Confidence intervals without SciPy."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Interval",
    "mean_interval",
    "median_ratio_interval",
    "ratio_interval",
    "student_quantile",
    "uniform_half_width",
]

_NARROWEST = 12.5  # rho: relative to the best possible, the interval is narrowest at 100 samples
_ALMOST_NORMAL = 400  # from here on Fisher's expansion is exact to nine digits


@functools.cache
def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution with `degrees` degrees of freedom.

    By hand, because nothing else here needs SciPy: bisection on the closed form that the
    distribution function has for whole degrees (Abramowitz & Stegun 26.7.3 and 26.7.4), and
    Fisher's expansion around the normal quantile (26.7.5) when the degrees are many.

    >>> round(student_quantile(0.975, 9), 6)
    2.262157
    """
    if probability < 0.5:
        return -student_quantile(1.0 - probability, degrees)
    if degrees >= _ALMOST_NORMAL:
        z = NormalDist().inv_cdf(probability)
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / degrees + second / degrees**2
    low, high = 0.0, 1.0
    while 2 * probability - 1 > _central_mass(high, degrees):
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        if 2 * probability - 1 > _central_mass(middle, degrees):
            low = middle
        else:
            high = middle
    return high


def _central_mass(t: float, degrees: int) -> float:
    """Return P(|X| <= t)."""
    angle = math.atan2(t, math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    mass = math.sin(angle) * total
    return 2 / math.pi * (angle + mass) if odd else mass


class Interval(NamedTuple):
    """An estimate and its confidence interval; nan where there is none."""

    estimate: float
    low: float
    high: float


def uniform_half_width(count: int, sigma: float, *, error: float = 0.05) -> float:
    r"""Return the half width of an interval for a mean that holds for all counts at once.

    .. math:: \frac{\sigma}{N} \sqrt{(N + \rho) \log\frac{N + \rho}{\rho\,\delta^2}}

    Robbins' normal mixture for sigma-sub-Gaussian samples: with probability 1 - delta no interval
    of the whole sequence is wrong, however often one looks and whenever one stops.

    >>> [round(uniform_half_width(count, 0.5), 3) for count in (1, 100, 10_000)]
    [4.526, 0.152, 0.018]
    """
    wide = count + _NARROWEST
    return sigma / count * math.sqrt(wide * math.log(wide / (_NARROWEST * error**2)))


def mean_interval(values: NDArray[np.float64], *, confidence: float = 0.95) -> Interval:
    """Return the mean with Student's interval.

    >>> mean_interval(np.array([1.0, 2.0, 3.0]))
    Interval(estimate=2.0, low=-0.484..., high=4.484...)
    """
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, math.nan, math.nan)
    half = _quantile(len(values), confidence) * math.sqrt(values.var(ddof=1) / len(values))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(
    over: NDArray[np.float64], under: NDArray[np.float64], *, confidence: float = 0.95
) -> Interval:
    """Return the ratio of two means of pairs, with Fieller's interval.

    It holds the ratios r for which the mean of `over` - r `under` does not differ from 0 by
    Student's test. It is unbounded (infinite ends) where the mean of `under` may be 0.

    >>> ratio_interval(np.array([10.0, 10.3, 9.9]), np.array([5.0, 5.1, 4.9]))
    Interval(estimate=2.013..., low=1.984..., high=2.042...)
    """
    a, b = float(over.mean()), float(under.mean())
    estimate = a / b if b != 0.0 else math.nan
    if len(over) == 1:
        return Interval(estimate, math.nan, math.nan)
    scale = _quantile(len(over), confidence) ** 2 / len(over)
    (s_aa, s_ab), (_, s_bb) = np.cov(over, under).tolist()
    square, mixed, constant = b * b - scale * s_bb, a * b - scale * s_ab, a * a - scale * s_aa
    if square <= 0.0:
        return Interval(estimate, -math.inf, math.inf)
    root = math.sqrt(max(0.0, mixed * mixed - square * constant))
    return Interval(estimate, (mixed - root) / square, (mixed + root) / square)


def median_ratio_interval(
    over: NDArray[np.float64], under: NDArray[np.float64], *, confidence: float = 0.95
) -> Interval:
    """Return the ratio of two medians of pairs, with a bootstrap interval (percentiles).

    Pairs are drawn anew 2000 times, always the same way.

    >>> median_ratio_interval(np.arange(1.0, 100.0), np.full(99, 10.0)).estimate
    5.0
    """
    draws = np.random.default_rng(0).integers(0, len(over), (2000, len(over)))
    ratios = np.median(over[draws], axis=1) / np.median(under[draws], axis=1)
    low, high = np.quantile(ratios, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(float(np.median(over) / np.median(under)), float(low), float(high))


def _quantile(count: int, confidence: float) -> float:
    return student_quantile(0.5 + confidence / 2, count - 1)
