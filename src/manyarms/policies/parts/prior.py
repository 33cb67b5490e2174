r"""A Beta law for the means of all arms, fitted to the rewards seen so far.

Its mean m is that of first rewards, one of each arm: which arm is pulled a first time does not
depend on rewards. Its strength c (the variance of Beta(c m, c (1 - m)) is m (1 - m) / (c + 1)) is
that under which the later rewards were least surprising, each predicted before it came, by

.. math:: p = \frac{c\,m + S}{c + N}

for an arm of N rewards of sum S. That is a likelihood, so it does not matter that arms are pulled
again because they did well. Rewards are taken for numbers in [0, 1].
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Memory, Record, Records

_STRENGTHS = 12  # 2, 4, 8, …, 4096
_SHIFT = 8.0  # from here on Stirling's series has 11 digits
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_STEPS = 40  # of a bisection
_SMALL = 1e-15  # relative; where rounding takes over
_AWAY = 1e-300  # a denominator is never nearer to 0
_TINY = 1e-200  # below it, a product is written down as its logarithm
_LEAST = 4.0  # arms: the target is never below the upper quartile


class Fit(Record):
    """The law, as it was fitted last."""

    mean: float  # m
    strength: float  # c
    first: float  # the sum of first rewards
    firsts: int  # how many


class Prior(NamedTuple):
    """The first rewards, and how well each strength predicted the others."""

    fit: Records[Fit]  # [fit]
    score: Floats  # by strength: the logarithm of the likelihood, but for
    chance: Floats  # that of the last rewards, as a product


def prior(memory: Memory) -> Prior:
    """Make room; call `reset_prior` before use."""
    return Prior(memory.records(1, Fit), memory.floats(_STRENGTHS), memory.floats(_STRENGTHS))


@kernel
def reset_prior(prior: Prior) -> None:
    """Forget all rewards; without any, means count as uniform."""
    fit = prior.fit[0]
    fit.mean = 0.5
    fit.strength = 2.0
    fit.first = 0.0
    fit.firsts = 0
    for k in range(_STRENGTHS):
        prior.score[k] = 0.0
        prior.chance[k] = 1.0


@kernel
def foresee(prior: Prior, pulls: int, total: float, reward: float) -> None:
    """Learn from a reward of an arm that had `pulls` rewards, of this sum, before."""
    fit = prior.fit[0]
    if pulls == 0:
        fit.first += reward
        fit.firsts += 1
        return
    strength = 2.0
    for k in range(_STRENGTHS):
        chance = (strength * fit.mean + total) / (strength + pulls)
        if reward == 1.0:
            prior.chance[k] *= chance
        elif reward == 0.0:
            prior.chance[k] *= 1.0 - chance
        else:
            prior.score[k] += reward * math.log(chance) + (1.0 - reward) * math.log(1.0 - chance)
        if prior.chance[k] < _TINY:
            take_logarithm(prior, k)
        strength *= 2.0


@kernel
def take_logarithm(prior: Prior, k: int) -> None:
    prior.score[k] += math.log(prior.chance[k])
    prior.chance[k] = 1.0


@rare
def fit(prior: Prior) -> None:
    """Fit the law to all that was seen; one success and one failure keep its mean from 0 and 1."""
    fit = prior.fit[0]
    fit.mean = (fit.first + 1.0) / (fit.firsts + 2.0)
    best = 0
    for k in range(_STRENGTHS):
        take_logarithm(prior, k)
        if prior.score[k] > prior.score[best]:
            best = k
    fit.strength = 2.0 * float(1 << best)


@kernel
def log_gamma(x: float) -> float:
    """Return log Γ(x) for x > 0, with the same bits compiled and not."""
    shift = 1.0
    while x < _SHIFT:
        shift *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_2_PI + series - math.log(shift)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return log B(a, b)."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@kernel
def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method.

    It converges fast for x < (a + 1) / (a + b + 2): in at most O(sqrt(a + b)) steps.
    """
    c = 1.0
    d = 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    change = 0.0
    m = 1.0
    while abs(change - 1.0) > _SMALL and m < 1e6:
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / _away(1.0 + even * d)
        c = _away(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / _away(1.0 + odd * d)
        c = _away(1.0 + odd / c)
        change = d * c
        value *= change
        m += 1.0
    return value


@kernel
def _away(number: float) -> float:
    return number if abs(number) > _AWAY else _AWAY


@rare
def _tail(a: float, b: float, x: float) -> float:
    """Return the chance that a Beta(a, b) number is above x, x being above its mean."""
    weight = math.exp(b * math.log(1.0 - x) + a * math.log(x) - log_beta(a, b))
    return weight / b * incomplete_beta(b, a, 1.0 - x)


@rare
def target_mean(mean: float, strength: float, n_arms: int, pulls: int, price: float) -> float:
    r"""Return the mean that the best of the arms is expected to have that `pulls` can screen.

    To leave an arm of mean m takes :math:`1 + \text{price} / \mathrm{kl}(m, v)` pulls where arms of
    mean v are looked for. So K arms can be screened, n at most and for this purpose at least 4;
    one of K is expected above v.
    """
    low, high = mean, 1.0 - 0.5 / (pulls + 1.0)
    a, b = strength * mean, strength * (1.0 - mean)
    if low >= high:
        return high
    for _ in range(_STEPS):
        v = 0.5 * (low + high)
        apart = mean * math.log(mean / v) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - v))
        screened = min(float(n_arms), pulls / (1.0 + price / max(apart, 1e-12)))
        screened = max(screened, _LEAST)
        if _tail(a, b, v) * screened > 1.0:
            low = v
        else:
            high = v
    return high
