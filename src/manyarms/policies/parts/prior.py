"""A Beta distribution of the arms' means, fitted to all rewards, and the mean to look for."""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.beta_function import beta_tail, log_beta
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Memory, Record, Records

_STRENGTHS = 12  # 2, 4, 8, …, 4096
_STEPS = 40  # of the bisection
_TINY = 1e-200  # smaller products are replaced by their logarithm
_LEAST = 4.0  # arms screened, at least: the target is not below the upper quartile


class Fit(Record):
    """The parameters of the fitted distribution."""

    mean: float  # m
    strength: float  # c
    first: float  # the sum of first rewards
    firsts: int  # the number of first rewards


class Prior(NamedTuple):
    r"""A Beta distribution of the arms' means, fitted to all rewards so far.

    Its mean m is estimated from the first reward of each arm, since the choice of fresh arms does
    not depend on rewards. The variance is m (1 - m) / (c + 1) with the strength c, which maximizes
    the likelihood of the later rewards, each predicted from the earlier ones by

    .. math:: p = \frac{c\,m + S}{c + N}

    for an arm with N rewards of sum S. As this is a likelihood, it is valid although the arms that
    did well are pulled again. Rewards are in [0, 1].
    """

    fit: Records[Fit]  # [fit]
    score: Floats  # by strength: the log-likelihood of earlier rewards
    chance: Floats  # by strength: the likelihood of the latest rewards, as a product


def prior(memory: Memory) -> Prior:
    """Allocate memory; call `reset_prior` before use."""
    return Prior(memory.records(1, Fit), memory.floats(_STRENGTHS), memory.floats(_STRENGTHS))


@kernel
def reset_prior(prior: Prior) -> None:
    """Forget all rewards; the distribution of the means is then uniform."""
    fit = prior.fit[0]
    fit.mean = 0.5
    fit.strength = 2.0
    fit.first = 0.0
    fit.firsts = 0
    for k in range(_STRENGTHS):
        prior.score[k] = 0.0
        prior.chance[k] = 1.0


@kernel
def update_likelihood(prior: Prior, pulls: int, total: float, reward: float) -> None:
    """Update the likelihoods with a reward of an arm that had `pulls` rewards of sum `total`."""
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
    """Fit the distribution; its mean counts one success and one failure more than observed."""
    fit = prior.fit[0]
    fit.mean = (fit.first + 1.0) / (fit.firsts + 2.0)
    best = 0
    for k in range(_STRENGTHS):
        take_logarithm(prior, k)
        if prior.score[k] > prior.score[best]:
            best = k
    fit.strength = 2.0 * float(1 << best)


@rare
def target_mean(mean: float, strength: float, n_arms: int, pulls: int, price: float) -> float:
    r"""Return the mean v that the best of the arms that `pulls` can screen is expected to have.

    To reject an arm of mean m when looking for arms of mean v takes
    :math:`1 + \text{price} / \mathrm{kl}(m, v)` pulls. This gives the number K of arms that can be
    screened, at most n, but counted as at least 4. One of K arms is expected to have a mean above
    v.
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
        if beta_tail(a, b, v) * screened > 1.0:
            low = v
        else:
            high = v
    return high


@rare
def count_known(prior: Prior, pulls: int, total: float, sign: float) -> None:
    """Add the likelihood of an arm's rewards after the first, up to a factor without c.

    With `sign` -1, subtract it.
    """
    if pulls < 2:
        return
    strength = 2.0
    for k in range(_STRENGTHS):
        a, b = strength * prior.fit[0].mean, strength * (1.0 - prior.fit[0].mean)
        score = log_beta(a + total, b + pulls - total) - log_beta(a, b)
        prior.score[k] += sign * score
        strength *= 2.0
