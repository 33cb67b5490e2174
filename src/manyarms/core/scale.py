r"""The recommended arm: the one to keep after the last pull.

A policy for finding an arm may have a function `recommend`. All others use one rule, live and in
simulation: the arm whose mean has the largest lower confidence bound, at 99.9 %. The level is so
high because the arm is chosen among thousands, and an arm with a few lucky rewards must not win.
Measured with five policies, one of them pulling at random, on nine problems from planted means to
click rates: this rule is never more than 0.007 below the best of seventeen rules. The arm pulled
most is up to 0.42 below it, and 0.025 on average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare

KEEP_ERROR = 0.001  # the probability that the lower bound of one arm is wrong
_LOG_ERROR = math.log(math.pi) - math.log(KEEP_ERROR)
_NARROWEST = 12.5  # as in `inference.confidence_sequences`
_TINY = 1e-300  # as there; for smaller sums the lower bound is `low`
_STEPS = 20  # enough for a billion rewards


class Scale(NamedTuple):
    """The range of rewards: from `low` to `low` + `width`, or unbounded if `width` is 0."""

    low: float
    width: float
    sigma: float  # rewards without bounds are sigma-sub-Gaussian


@kernel
def lower_confidence_bound(count: int, total: float, scale: Scale, at_least: float) -> float:
    """Return the lower bound of a mean of `count` rewards, or -inf if it is not above `at_least`.

    It is the lower end of `inference.confidence_sequences.uniform_interval` for one arm.
    """
    if total / count <= at_least:  # the usual case; the bound is below the mean
        return -math.inf
    if scale.width == 0.0:
        wide = count + _NARROWEST
        half = math.sqrt(wide * math.log(wide / (_NARROWEST * KEEP_ERROR * KEEP_ERROR))) / count
        lower = total / count - scale.sigma * half
        return lower if lower > at_least else -math.inf
    ones = min(max((total - scale.low * count) / scale.width, 0.0), float(count))
    if ones <= _TINY:
        return scale.low if scale.low > at_least else -math.inf
    bound = (at_least - scale.low) / scale.width
    root = _root(ones, count - ones, bound)
    return -math.inf if root < 0.0 else scale.low + scale.width * root


@rare
def _root(ones: float, zeros: float, at_least: float) -> float:
    """Return the smaller mu with -ones log(mu) - zeros log(1 - mu) = allowed.

    Returns -1 if it is not above `at_least`.
    """
    allowed = _LOG_ERROR + math.lgamma(ones + zeros + 1.0)
    allowed -= math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5)
    if at_least > 0.0:
        rest = zeros * math.log1p(-at_least) if zeros > 0.0 else 0.0
        if -ones * math.log(at_least) - rest <= allowed:
            return -1.0
    log_mean = -allowed / ones
    for _ in range(_STEPS):  # Newton's method from the left converges monotonically
        mean = math.exp(log_mean)
        rest = zeros * math.log1p(-mean) if zeros > 0.0 else 0.0
        excess = -ones * log_mean - rest - allowed
        step = excess / (ones - zeros * mean / (1.0 - mean)) if zeros > 0.0 else excess / ones
        log_mean += step
        if not step > 1e-12:
            break
    return math.exp(log_mean)
