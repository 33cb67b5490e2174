r"""Confidence intervals without SciPy.

**Means of values with known bounds.** A run that misses every best arm may cost a hundred times as
much as another, and happen once in four hundred. Student's interval, and any bootstrap, use only
the observed runs: with 100 of them they cover the mean in one case of four. But no run
costs more than a known bound, such as the horizon times the largest gap. So one more value,
:math:`x_0`, is put at that bound :math:`b`, all values get random weights, and the upper bound
:math:`u` of the mean is a quantile (Gaffke 2005):

.. math:: \Pr\Bigl(\sum_{i=0}^n w_i x_i > u\Bigr) = \frac{\delta}{2}, \qquad
    w \sim \text{Dirichlet}(1, \dots, 1), \qquad x_0 = b

The lower bound is its mirror image. For values at the two bounds this is Clopper and Pearson's
interval; for values that fill their range it is a little wider than Student's. It does not need to
know which runs missed: a run that met a best arm and lost it again costs as much. Coverage is
proved for two values, conjectured for all bounded ones, and tested here; the table is made by
`benchmarks/interval_coverage.py`. Of the intervals tried that cover our runs it is the narrowest.
An interval for the rate of misses times their cost, plus Student's for the rest, is 1.2 to 4 times
as wide on most of them, and betting (Waudby-Smith and Ramdas 2024), which is proved for all bounded
values, 1.2 to 2.2 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyarms.core.checks import check_number

Numbers = NDArray[np.float64]


def _crossing(below: Callable[[float], bool]) -> float:
    """Return where a condition that holds at 0 stops holding, by bisection."""
    low, high = 0.0, 1.0
    while below(high):
        low, high = high, 2.0 * high
    for _ in range(100):
        if high - low <= 1e-7 * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return high


class Interval(NamedTuple):
    """An estimate and its confidence interval; nan if there is none."""

    estimate: float
    low: float
    high: float


def standard_error(values: NDArray[Any]) -> float:
    """Return the standard error of the mean of values; nan for a single one.

    >>> standard_error(np.array([9.0, 11.0]))
    1.0
    """
    count = len(values)
    return float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan


def mean_interval(
    values: NDArray[Any],
    *,
    bounds: tuple[float, float],
    confidence: float = 0.95,
) -> Interval:
    """Return the mean, with an interval that is valid for every distribution of the values.

    Parameters
    ----------
    values
        The values, independent of each other.
    bounds
        The smallest and the largest possible value.
    confidence
        The confidence level (default: 0.95).

    Examples
    --------
    None of 100 runs missed: up to 3.6 % of all runs may miss, and each may cost 1000.

    >>> regret = np.tile([9.0, 11.0], 50)
    >>> mean_interval(regret, bounds=(0.0, 1000.0))
    Interval(estimate=10.0, low=9.5..., high=46.0...)
    """
    low, high = mean_intervals(values, bounds=bounds, confidence=confidence)
    return Interval(float(values.mean()), float(low), float(high))


def mean_intervals(
    values: NDArray[Any], *, bounds: tuple[ArrayLike, ArrayLike], confidence: float = 0.95
) -> tuple[Numbers, Numbers]:
    """Return the interval of the mean of each column, such as regret by (run, time).

    Parameters
    ----------
    values
        By (run, ...): the means are those over runs.
    bounds
        The smallest and the largest possible value: numbers, or arrays with one for each column.
    confidence
        The confidence level of each interval (default: 0.95).

    Examples
    --------
    >>> regret = np.array([[1.0, 2.0], [2.0, 3.0], [1.0, 5.0]])
    >>> low, high = mean_intervals(regret, bounds=(0.0, [10.0, 20.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.36, 0.9], [7.49, 15.18])
    """
    columns = np.moveaxis(np.asarray(values, np.float64), 0, -1)
    z = _normal_quantile(confidence)
    lowest, highest = (np.asarray(bound, np.float64) for bound in bounds)
    return -_upper_bound(-columns, -lowest, z), _upper_bound(columns, highest, z)


def _upper_bound(values: Numbers, bound: Numbers, z: float) -> Numbers:
    r"""Return the quantile of the weighted mean that belongs to the normal quantile `z`.

    A Dirichlet mean is a ratio of sums of exponential variables, so that its tail at u is that of
    a sum of (x_i - u) E_i at 0. The saddlepoint of that sum is known for the u that is the mean of
    the x_i with weights 1 / (a - x_i); what remains is to find a, by bisection, such that
    Barndorff-Nielsen's :math:`r^* = r + \log(v / r) / r` is z. The tail is exact to 3 %.
    """
    top = np.maximum(bound[..., None], values.max(axis=-1, keepdims=True))
    spread = top - values.min(axis=-1, keepdims=True)
    added = np.concatenate([np.broadcast_to(top, (*values.shape[:-1], 1)), values], axis=-1)
    below = (top - added) / np.where(spread > 0.0, spread, 1.0)  # from 0 to 1

    def tilted(log_a: Numbers) -> tuple[Numbers, Numbers]:
        a = np.exp(log_a)
        weights = 1.0 / (a + below)
        mean = (weights * below).sum(-1, keepdims=True) / weights.sum(-1, keepdims=True)
        return mean, (below - mean) / (a + mean)

    # at the left end all weight is on the top; at the right end weights differ by some 1 / sqrt(n)
    low = np.full(top.shape, -60.0)
    high = np.full(top.shape, math.log(10.0 * math.sqrt(added.shape[-1])))
    for _ in range(36):
        middle = 0.5 * (low + high)
        _, tilt = tilted(middle)
        with np.errstate(divide="ignore", invalid="ignore"):  # r is 0 if all values are equal
            r = np.sqrt(2.0 * np.log1p(tilt).sum(-1, keepdims=True))
            v = np.sqrt(((tilt / (1.0 + tilt)) ** 2).sum(-1, keepdims=True))
            far = r + np.log(v / r) / r > z
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    mean, _ = tilted(high)
    return np.asarray((top - spread * mean)[..., 0])


def ratio_interval(
    over: NDArray[Any],
    under: NDArray[Any],
    *,
    at_most: tuple[float, float],
    confidence: float = 0.95,
) -> Interval:
    """Return the ratio of two means of pairs, with an interval.

    Parameters
    ----------
    over, under
        The values, pair by pair.
    at_most
        The largest possible values of `over` and of `under`; the smallest is 0. The interval holds
        the ratios r for which the mean of `over` - r `under` may be 0, for any distribution of the
        pairs.
    confidence
        The confidence level (default: 0.95).

    Notes
    -----
    The upper end is infinite if the mean of `under` may be 0.

    Examples
    --------
    With few pairs the interval is wide; with 300 it is narrower.

    >>> over, under = np.array([10.0, 10.3, 9.9]), np.array([5.0, 5.1, 4.9])
    >>> ratio_interval(over, under, at_most=(20.0, 10.0))
    Interval(estimate=2.013..., low=0.341..., high=11.81...)
    >>> ratio_interval(np.tile(over, 100), np.tile(under, 100), at_most=(20.0, 10.0))
    Interval(estimate=2.013..., low=..., high=...)
    """
    a, b = float(over.mean()), float(under.mean())
    estimate = a / b if b != 0.0 else math.nan
    largest = _largest_ratio(over, under, at_most[0], confidence)
    inverse = _largest_ratio(under, over, at_most[1], confidence)
    return Interval(estimate, 1.0 / inverse, largest)


def _largest_ratio(over: Numbers, under: Numbers, bound: float, confidence: float) -> float:
    """Return the largest r for which the mean of `over` - r `under` may be 0."""
    if not under.any():
        return math.inf
    z, highest = _normal_quantile(confidence), np.asarray(bound)
    return _crossing(lambda r: bool(_upper_bound(over - r * under, highest, z) > 0.0))


def _normal_quantile(confidence: float) -> float:
    checked = check_number("confidence", confidence, above=0.0, below=1.0)
    return NormalDist().inv_cdf(0.5 + checked / 2)
