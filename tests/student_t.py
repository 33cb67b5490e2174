"""Student's quantiles, for tests on runs of which none is rare and costly."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, _crossing


def student_interval(values: NDArray[np.float64], confidence: float) -> Interval:
    """Return the mean with Student's interval."""
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(0.5 + confidence / 2, len(values) - 1) * error
    return Interval(mean, mean - half, mean + half)


@functools.cache
def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, for a probability of at least 1/2.

    Bisection on the closed form that the distribution function has for whole degrees of freedom
    (Abramowitz & Stegun 26.7.3 and 26.7.4).
    """
    return _crossing(lambda t: 2 * probability - 1 > _central_mass(t, degrees))


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
