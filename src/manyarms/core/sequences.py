"""Confidence sequences: intervals that hold at all times at once, and for all arms at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["spent_error", "uniform_half_width", "uniform_limits"]

Numbers = NDArray[np.float64]

_NARROWEST = 12.5  # rho: relative to the best possible, the interval is narrowest at 100 samples


def uniform_half_width(count: ArrayLike, sigma: float, *, error: ArrayLike = 0.05) -> Numbers:
    r"""Return the half width of an interval for a mean that holds for all counts at once.

    .. math:: \frac{\sigma}{N} \sqrt{(N + \rho) \log\frac{N + \rho}{\rho\,\delta^2}}

    Robbins' normal mixture for sigma-sub-Gaussian samples: with probability 1 - delta no interval
    of the whole sequence is wrong, however often one looks and whenever one stops.

    >>> uniform_half_width([1, 100, 10_000], 0.5).round(3).tolist()
    [4.526, 0.152, 0.018]
    """
    counts, wide = np.asarray(count), np.asarray(count) + _NARROWEST
    squared = np.asarray(error) ** 2
    return np.asarray(sigma / counts * np.sqrt(wide * np.log(wide / (_NARROWEST * squared))))


def uniform_limits(
    count: ArrayLike, total: ArrayLike, *, error: ArrayLike = 0.05
) -> tuple[Numbers, Numbers]:
    r"""Return limits for the mean of values in [0, 1] that hold for all counts at once.

    They hold the means :math:`\mu` with

    .. math:: \frac{\mathrm{B}(S + 1/2,\, N - S + 1/2)}{\pi\,\mu^S (1 - \mu)^{N - S}}
        < \frac{1}{\delta}

    for N values of sum S. On the left stands a mixture of likelihood ratios over Beta(1/2, 1/2).
    It is a martingale for values 0 and 1, and a supermartingale for all others in between, because
    a likelihood ratio is convex in the value. So with probability 1 - delta no interval of the
    whole sequence is wrong, whatever the law. Near 0 and 1, where values vary less, it is narrower.

    Parameters
    ----------
    count, total
        N and S, of one sequence or of many.
    error
        delta, for each sequence (default: 0.05).

    Examples
    --------
    >>> low, high = uniform_limits([1, 100, 10_000], [0.0, 3.0, 300.0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.002, 0.024], [0.975, 0.123, 0.037])
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    totals = np.clip(totals, 0.0, counts)  # rounding may have left the range
    log_beta = _log_gamma(totals + 0.5) + _log_gamma(counts - totals + 0.5)
    log_beta = log_beta - _log_gamma(counts + 1.0)
    allowed = math.log(math.pi) - np.log(error) - log_beta
    rest = counts - totals
    return _lower_root(totals, rest, allowed), 1.0 - _lower_root(rest, totals, allowed)


def _lower_root(ones: Numbers, zeros: Numbers, allowed: Numbers) -> Numbers:
    """Return the smaller mu with -ones log(mu) - zeros log(1 - mu) = allowed; 0 for no ones.

    Newton's method in log(mu): the left side is convex, so that from the left it only comes nearer.
    It halves the distance to the minimum at first, and 20 steps are enough for a billion values.
    """
    some = np.where(ones > 0.0, ones, 1.0)
    log_mean = -allowed / some
    for _ in range(20):
        mean = np.exp(log_mean)
        excess = -some * log_mean - zeros * np.log1p(-mean) - allowed
        log_mean = log_mean + excess / (some - zeros * mean / (1.0 - mean))
    return np.where(ones > 0.0, np.exp(log_mean), 0.0)


def spent_error(error: float, number: ArrayLike) -> Numbers:
    r"""Return the part of an error that falls to the `number`-th of endlessly many sequences.

    .. math:: \delta_k = \frac{6\,\delta}{\pi^2 k^2}, \qquad \sum_{k \ge 1} \delta_k = \delta

    So all sequences hold at once, and so does that of the arm that was chosen for being best.

    >>> spent_error(0.05, [1, 2, 1000]).round(9).tolist()
    [0.030396355, 0.007599089, 3e-08]
    """
    return np.asarray(6.0 * error / (math.pi * np.asarray(number, np.float64)) ** 2)


def _log_gamma(values: Numbers) -> Numbers:
    return np.asarray(np.frompyfunc(math.lgamma, 1, 1)(values), np.float64)
