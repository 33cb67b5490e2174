"""Confidence sequences: intervals that are valid at all times at once, and for all arms at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

# alternatives in `evidence_below`, as fractions of the bar; small ones need few rewards
_PARTS = np.array([1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16])
_BLOCK = 1 << 14
_TINY = 1e-300  # for smaller sums the lower bound is 0
_NARROWEST = 12.5  # rho; about the value that is best for 100 samples and an error of 5 %


def uniform_half_width(count: ArrayLike, sigma: float, *, error: ArrayLike = 0.05) -> Numbers:
    r"""Return the half width of a confidence interval for a mean, valid for all counts at once.

    .. math:: \frac{\sigma}{N} \sqrt{(N + \rho) \log\frac{N + \rho}{\rho\,\delta^2}}

    This is Robbins' normal mixture for sigma-sub-Gaussian samples: with probability 1 - delta no
    interval of the whole sequence is wrong, however often you look and whenever you stop.

    >>> uniform_half_width([1, 100, 10_000], 0.5).round(3).tolist()
    [4.526, 0.152, 0.018]
    """
    counts, wide = np.asarray(count), np.asarray(count) + _NARROWEST
    squared = np.asarray(error) ** 2
    return np.asarray(sigma / counts * np.sqrt(wide * np.log(wide / (_NARROWEST * squared))))


def uniform_interval(
    count: ArrayLike,
    total: ArrayLike,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    sigma: float = 0.5,
    error: ArrayLike = 0.05,
) -> tuple[Numbers, Numbers]:
    r"""Return a confidence interval for a mean, valid for all counts at once.

    For values in [0, 1], the interval consists of the means :math:`\mu` with

    .. math:: \frac{\mathrm{B}(S + 1/2,\, N - S + 1/2)}{\pi\,\mu^S (1 - \mu)^{N - S}}
        < \frac{1}{\delta}

    for N values of sum S. The left side is a mixture of likelihood ratios over Beta(1/2, 1/2). For
    values 0 and 1 it is a martingale. For values in between it is a supermartingale, because a
    likelihood ratio is convex in the value. So with probability 1 - delta no interval of the whole
    sequence is wrong, for any distribution. Near 0 and 1, where values vary less, it is narrower.
    For other bounds, values are scaled. For values without bounds, see `uniform_half_width`.

    Parameters
    ----------
    count, total
        N >= 1 and S, of one sequence or of many.
    bounds
        The smallest and the largest possible value; None for values without bounds
        (default: 0 and 1).
    sigma
        Values without bounds are sigma-sub-Gaussian (default: 0.5).
    error
        delta, for each sequence (default: 0.05).

    Examples
    --------
    >>> low, high = uniform_interval([1, 100, 10_000], [0.0, 3.0, 300.0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.002, 0.024], [0.975, 0.123, 0.037])
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    if bounds is None:
        half = uniform_half_width(counts, sigma, error=error)
        return totals / counts - half, totals / counts + half
    lowest, width = bounds[0], bounds[1] - bounds[0]
    totals = _scaled(counts, totals, bounds)
    log_beta = log_gamma(totals + 0.5) + log_gamma(counts - totals + 0.5)
    log_beta = log_beta - log_gamma(counts + 1.0)
    allowed = math.log(math.pi) - np.log(error) - log_beta
    rest = counts - totals
    low, high = _lower_root(totals, rest, allowed), 1.0 - _lower_root(rest, totals, allowed)
    return lowest + width * low, lowest + width * high


def log_evidence(
    count: float,
    total: float,
    means: ArrayLike,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    sigma: float = 0.5,
) -> Numbers:
    """Return the logarithm of the left side of the inequality in `uniform_interval`, for each mean.

    For the true mean, it is the logarithm of a supermartingale that begins at 1.

    >>> low, high = uniform_interval(100, 3.0)
    >>> log_evidence(100, 3.0, [low, high, 0.03]).round(3).tolist()
    [2.996, 2.996, -2.543]
    """
    tried = np.asarray(means, np.float64)
    if bounds is None:
        wide = count + _NARROWEST
        z = (total - count * tried) / sigma
        return np.asarray(z * z / (2.0 * wide) - 0.5 * math.log(wide / _NARROWEST))
    ones = float(_scaled(np.array(float(count)), np.array(float(total)), bounds))
    zeros = count - ones
    mean = np.clip((tried - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
    mixture = math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(count + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(mean > 0.0, ones * np.log(mean), -np.inf if ones else 0.0)
        zero = np.where(mean < 1.0, zeros * np.log1p(-mean), -np.inf if zeros else 0.0)
    return np.asarray(mixture - math.log(math.pi) - one - zero)


def _scaled(counts: Numbers, totals: Numbers, bounds: tuple[float, float]) -> Numbers:
    """Return the sums of the values after scaling to [0, 1]."""
    lowest, width = bounds[0], bounds[1] - bounds[0]
    if bounds != (0.0, 1.0):
        totals = (totals - lowest * counts) / width
    return np.minimum(np.maximum(totals, 0.0), counts)  # because of rounding


def shown_below(
    count: ArrayLike,
    total: ArrayLike,
    bar: float,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    sigma: float = 0.5,
    error: ArrayLike = 0.05,
) -> NDArray[np.bool_]:
    """Return whether the upper bounds of `uniform_interval` are at most `bar`.

    A bound is computed only if a quick test cannot decide, so a million sequences take
    milliseconds. An upper bound can be below b only if the likelihood ratio of the values' own mean
    against b is at least 1 over the error.

    >>> shown_below([0, 10, 100], [0.0, 0.0, 3.0], 0.3)
    array([False, False,  True])
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    errors = np.broadcast_to(np.asarray(error, np.float64), counts.shape)
    known = counts > 0.0
    if bounds is None:
        below = np.zeros(counts.shape, np.bool_)
        counts, totals, errors = counts[known], totals[known], errors[known]
        half = uniform_half_width(counts, sigma, error=errors)
        below[known] = totals / counts + half <= bar
        return below
    lowest, width = bounds[0], bounds[1] - bounds[0]
    mean = (bar - lowest) / width
    if bar >= lowest + width:
        return known
    near = known
    if 0.0 < mean < 1.0 - 1e-12:  # nearer to 1, rounding errors decide
        # values of 0 have the largest likelihood ratio
        least = -np.log(errors.max(initial=0.0)) - 1e-6
        places = np.flatnonzero(counts * -math.log1p(-mean) >= least)
        ones = _scaled(counts[places], totals[places], bounds)
        strong = divergence(counts[places], ones, mean) >= -np.log(errors[places]) - 1e-6
        near = np.zeros(counts.shape, np.bool_)
        near[places] = strong & (ones <= mean * counts[places] * (1.0 + 1e-9))
    places = np.flatnonzero(near)
    _, high = uniform_interval(counts[places], totals[places], bounds=bounds, error=errors[places])
    near[places] = high <= bar
    return near


def divergence(count: ArrayLike, ones: ArrayLike, mean: float) -> Numbers:
    r"""Return the log-likelihood ratio of values in [0, 1] for their own mean against `mean`.

    For N values of sum S, and a `mean` :math:`\mu` between 0 and 1:

    .. math:: S \log\frac{S}{N \mu} + (N - S) \log\frac{N - S}{N (1 - \mu)}

    >>> divergence([10, 10], [0.0, 2.0], 0.5).round(3).tolist()
    [6.931, 1.927]
    """
    counts, sums = np.asarray(count, np.float64), np.asarray(ones, np.float64)
    rest = counts - sums
    own = np.log(np.maximum(sums, _TINY)) - np.log(counts) - math.log(mean)
    other = np.log(np.maximum(rest, _TINY)) - np.log(counts) - math.log1p(-mean)
    return np.asarray(sums * own + rest * other)


def _lower_root(ones: Numbers, zeros: Numbers, allowed: Numbers) -> Numbers:
    """Return the smaller mu with -ones log(mu) - zeros log(1 - mu) = allowed; 0 for no ones.

    Newton's method in log(mu): the left side is convex, so the iteration from the left is monotone.
    Early steps halve the distance to the minimum; 20 steps are enough for a billion values. If
    `allowed` is the minimum, or below it by rounding, the root is the observed mean.
    """
    there = ones > _TINY
    some, zeros = np.where(there, ones, 1.0), np.where(there, zeros, 0.0)
    observed = np.log(some / (some + zeros))
    log_mean = np.minimum(-allowed / some, observed)
    for _ in range(20):
        # where all values are ones, the first value is the root, and 1 - mean may be 0
        mean = np.where(zeros > 0.0, np.exp(log_mean), 0.0)
        excess = -some * log_mean - zeros * np.log1p(-mean) - allowed
        slope = some - zeros * mean / (1.0 - mean)
        step = np.where(slope > 0.0, excess / np.where(slope > 0.0, slope, 1.0), 0.0)
        nearer = np.minimum(log_mean + step, observed)
        moved = (nearer - log_mean > 1e-12).any()
        log_mean = nearer
        if not moved:
            break
    return np.where(there, np.exp(log_mean), 0.0)


def evidence_below(
    count: ArrayLike,
    total: ArrayLike,
    bar: float,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    sigma: float = 0.5,
) -> Numbers:
    r"""Return the evidence (an e-value) against a mean of `bar` or more.

    If the mean is `bar` or more, the probability that the evidence ever exceeds 1/a is at most a.
    The evidence is the average likelihood ratio of five smaller means against the bar b. For N
    values of sum S in [0, 1] it is

    .. math:: \frac15 \sum_{f} f^S \Bigl(\frac{1 - f b}{1 - b}\Bigr)^{N - S}, \qquad
        f \in \{1/4, 1/2, 3/4, 7/8, 15/16\},

    and for values without bounds the five means are smaller by (1 - f) sigma. It grows with b.

    Parameters
    ----------
    count, total
        N >= 0 and S, of one sequence or of many.
    bar, bounds, sigma
        The mean to be excluded; the others as for `uniform_interval`.

    Examples
    --------
    >>> evidence_below([0, 1, 2, 10], [0.0, 0.0, 1.0, 5.0], 0.8).round(2).tolist()
    [1.0, 2.35, 1.3, 4.46]
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    evidence = np.zeros(counts.shape)
    if bounds is None:
        less = bar * counts - totals
        for step in ((1.0 - _PARTS) / sigma).tolist():  # difference of the means over sigma^2
            evidence += _likelihood(step * less - counts * (step * sigma) ** 2 / 2.0)
        return evidence / len(_PARTS)
    mean = (bar - bounds[0]) / (bounds[1] - bounds[0])
    if not 0.0 < mean < 1.0:  # all means are at least the bar, or none is
        return np.full(counts.shape, 1.0 if mean <= 0.0 else np.inf)
    ones = _scaled(counts, totals, bounds)
    zeros = counts - ones
    failed = np.log1p(-_PARTS * mean) - math.log1p(-mean)
    for one, zero in zip(np.log(_PARTS).tolist(), failed.tolist(), strict=True):
        evidence += _likelihood(ones * one + zeros * zero)
    return evidence / len(_PARTS)


def _likelihood(logs: Numbers) -> Numbers:
    if logs.max(initial=0.0) > 700.0:
        logs = np.minimum(logs, 700.0)
    return np.asarray(np.exp(logs))


def in_blocks(size: int) -> Iterator[slice]:
    """Yield slices that cover `size` places, each small enough for the processor's cache.

    >>> [(part.start, part.stop) for part in in_blocks(20_000)]
    [(0, 16384), (16384, 20000)]
    """
    for begin in range(0, size, _BLOCK):
        yield slice(begin, min(size, begin + _BLOCK))


def spent_error(error: float, number: ArrayLike) -> Numbers:
    r"""Return the share of an error for the `number`-th of infinitely many sequences.

    .. math:: \delta_k = \frac{6\,\delta}{\pi^2 k^2}, \qquad \sum_{k \ge 1} \delta_k = \delta

    So with probability 1 - delta all sequences are right, also that of the arm that looks best.

    >>> spent_error(0.05, [1, 2, 1000]).round(9).tolist()
    [0.030396355, 0.007599089, 3e-08]
    """
    return np.asarray(6.0 * error / (math.pi * np.asarray(number, np.float64)) ** 2)


def log_gamma(values: Numbers) -> Numbers:
    """Return the logarithm of the gamma function."""
    return np.asarray(np.frompyfunc(math.lgamma, 1, 1)(values), np.float64)
