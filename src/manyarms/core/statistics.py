"""Confidence intervals without SciPy."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

__all__ = ["student_quantile"]

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
