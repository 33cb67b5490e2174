r"""Confidence intervals without SciPy.

**Means of values with known bounds.** A run that misses every best arm may cost a hundred times as
much as another, and happen once in four hundred. Student's interval, and any bootstrap, know only
what was seen: of 100 such runs they cover the mean in one case of four. But what was not seen costs
no more than a known bound, such as the horizon times the largest gap. So one more value,
:math:`x_0`, is put at that bound :math:`b`, all values get random weights, and the upper limit
:math:`u` of the mean is a quantile (Gaffke 2005):

.. math:: \Pr\Bigl(\sum_{i=0}^n w_i x_i > u\Bigr) = \frac{\delta}{2}, \qquad
    w \sim \text{Dirichlet}(1, \dots, 1), \qquad x_0 = b

The lower limit is its mirror image. For values at the two bounds this is Clopper and Pearson's
interval; for values that fill their range it is a little wider than Student's. It does not ask
which runs missed: a run that met a best arm and lost it again costs as much. Coverage is proved
for two values, conjectured for all bounded ones, and tested here; the table is made by
`benchmarks/interval_coverage.py`. Of what covers our runs it is the narrowest. An interval for the
rate of misses times their cost, plus Student's for the rest, is 1.2 to 4 times as wide on most of
them, and betting (Waudby-Smith and Ramdas 2024), which is proved for all bounded values, 1.2 to
2.2 times.
"""

from __future__ import annotations

import functools
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
    """An estimate and its confidence interval; nan where there is none."""

    estimate: float
    low: float
    high: float


def mean_interval(
    values: NDArray[Any],
    *,
    bounds: tuple[float, float],
    confidence: float = 0.95,
) -> Interval:
    """Return the mean, with an interval that is valid for every law of the values.

    Parameters
    ----------
    values
        The values, independent of each other.
    bounds
        The least and the largest value that is possible.
    confidence
        How often it holds (default: 0.95).

    Examples
    --------
    Of 100 runs none missed: up to 3.6 % of all runs may miss, and each may cost 1000.

    >>> regret = np.tile([9.0, 11.0], 50)
    >>> mean_interval(regret, bounds=(0.0, 1000.0))
    Interval(estimate=10.0, low=9.5..., high=46.0...)
    """
    low, high = mean_limits(values, bounds=bounds, confidence=confidence)
    return Interval(float(values.mean()), float(low), float(high))


def mean_limits(
    values: NDArray[Any], *, bounds: tuple[ArrayLike, ArrayLike], confidence: float = 0.95
) -> tuple[Numbers, Numbers]:
    """Return the limits of the means of many columns at once, such as regret by (run, time).

    Parameters
    ----------
    values
        By (run, ...): the means are those over runs.
    bounds
        The least and the largest value that is possible: numbers, or arrays with one for each
        column.
    confidence
        How often an interval holds (default: 0.95).

    Examples
    --------
    >>> regret = np.array([[1.0, 2.0], [2.0, 3.0], [1.0, 5.0]])
    >>> low, high = mean_limits(regret, bounds=(0.0, [10.0, 20.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.36, 0.9], [7.49, 15.18])
    """
    columns = np.moveaxis(np.asarray(values, np.float64), 0, -1)
    z = _normal_quantile(confidence)
    lowest, highest = (np.asarray(bound, np.float64) for bound in bounds)
    return -_upper_limit(-columns, -lowest, z), _upper_limit(columns, highest, z)


def _upper_limit(values: Numbers, bound: Numbers, z: float) -> Numbers:
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
        with np.errstate(divide="ignore", invalid="ignore"):  # r is 0 where all values are equal
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
        The largest possible values of `over` and of `under`; the least is 0. The interval holds
        the ratios r for which the mean of `over` - r `under` may be 0, whatever law
        the pairs have.
    confidence
        How often it holds (default: 0.95).

    Notes
    -----
    Ends are infinite where the mean of `under` may be 0.

    Examples
    --------
    Few pairs say little about pairs that were not seen; 300 say more.

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
    return _crossing(lambda r: bool(_upper_limit(over - r * under, highest, z) > 0.0))


def median_interval(values: NDArray[Any], *, confidence: float = 0.95) -> Interval:
    """Return the median with an interval between two of the ordered values.

    It holds whatever law the values have. Its ends are infinite where there are too few of them.

    >>> median_interval(np.arange(1.0, 10.0))
    Interval(estimate=5.0, low=2.0, high=8.0)
    """
    ordered = np.sort(values)
    rank = median_rank(len(values), confidence)
    low, high = (ordered[rank - 1], ordered[-rank]) if rank > 0 else (-math.inf, math.inf)
    return Interval(float(np.median(ordered)), float(low), float(high))


@functools.cache
def median_rank(count: int, confidence: float = 0.95) -> int:
    """Return r such that the r-th smallest and largest values hold the median; else 0.

    The number of values below the median is binomial, whatever their distribution, and with ties
    even fewer lie outside: the interval misses it with probability 2 P(B < r) at most.

    >>> [median_rank(count) for count in (5, 6, 20, 100, 5000)]
    [0, 1, 6, 40, 2431]
    """
    outside, rank = 0.0, 0
    while True:
        # by logarithms: 2 to the power of thousands is no float
        choices = math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1)
        outside += math.exp(choices - count * math.log(2.0))
        if outside > (1.0 - confidence) / 2:
            return rank
        rank += 1


def median_ratio_interval(
    over: NDArray[Any], under: NDArray[Any], *, confidence: float = 0.95
) -> Interval:
    """Return the ratio of two medians of values above 0, with an interval.

    Its ends are ratios of the ends of the medians' intervals, which share the error.

    >>> median_ratio_interval(np.arange(1.0, 100.0), np.full(99, 10.0))
    Interval(estimate=5.0, low=..., high=...)
    """
    each = 0.5 + confidence / 2
    a, b = median_interval(over, confidence=each), median_interval(under, confidence=each)
    estimate = a.estimate / b.estimate if b.estimate > 0.0 else math.nan
    low = max(0.0, a.low) / b.high if b.high > 0.0 else 0.0
    return Interval(estimate, low, a.high / b.low if b.low > 0.0 else math.inf)


class Paired(NamedTuple):
    """The median of differences, run by run, with its interval, and the runs that make it."""

    median: float
    low: float
    high: float
    above: int  # the runs whose difference is above 0
    below: int
    runs: int

    @property
    def runs_to_decide(self) -> float:
        """How many runs, about, would have an interval without 0, if they are like these."""
        other = self.runs - max(self.above, self.below)
        away = 0.5 - other / self.runs
        return (0.5 * _normal_quantile(0.95) / away) ** 2 if away > 0.0 else math.inf


def paired(differences: NDArray[Any], *, confidence: float = 0.95) -> Paired:
    """Return what usually happens: the median of the differences, and how many are above 0.

    Rare misses do not move it. `mean_interval` says what happens on average, misses included.

    >>> paired(np.array([3.0, 4.0, 5.0, 3.0, 4.0, -900.0, 4.0, 5.0]))
    Paired(median=4.0, low=-900.0, high=5.0, above=7, below=1, runs=8)
    """
    found = median_interval(differences, confidence=confidence)
    above, below = (int(signs.sum()) for signs in (differences > 0.0, differences < 0.0))
    return Paired(*found, above, below, len(differences))


def runs_to_decide(
    values: NDArray[Any], *, bounds: tuple[float, float], confidence: float = 0.95
) -> float:
    """Estimate after how many runs the interval of the mean would exclude 0.

    The estimate is for runs like these: it copies them until 0 is outside. It is infinite where the
    mean is 0, and less than the number of runs where they suffice already.

    Parameters
    ----------
    values, bounds, confidence
        As for `mean_interval`.

    Notes
    -----
    In the notation of `_upper_limit`, with every value copied c times, the limit is 0 for
    c = t / (a sum((b_i - t) / (a + b_i))), where b_i is how far value i is below the top and t how
    far 0 is. So one bisection finds the a, and with it the c, at which r* is the normal quantile.

    Examples
    --------
    >>> gaps = np.tile([700.0, 750.0, 800.0], 10)
    >>> mean_interval(gaps, bounds=(-40_000.0, 40_000.0)).low > 0.0
    False
    >>> round(runs_to_decide(gaps, bounds=(-40_000.0, 40_000.0)))
    200
    >>> mean_interval(np.tile(gaps, 7), bounds=(-40_000.0, 40_000.0)).low > 0.0
    True
    """
    mean = float(np.mean(values))
    if mean == 0.0:
        return math.inf
    z = _normal_quantile(confidence)
    flipped = -np.sign(mean) * np.asarray(values, np.float64)  # the upper limit is to be below 0
    top = max(-bounds[0] if mean > 0.0 else bounds[1], float(flipped.max()))
    below = top - flipped
    if top <= 0.0:
        return 1.0  # no value can be on the other side
    low, high = -60.0, math.log(1e9)
    copies = math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        a = top * math.exp(middle)
        slope = float(((below - top) / (a + below)).sum())
        tried = top / (a * slope) if slope > 0.0 else math.inf
        if math.isfinite(tried) and _root(below, top, a, tried) < z:
            high = middle
        else:
            copies, low = tried, middle
    return copies * len(values)


def _root(below: Numbers, zero: float, a: float, copies: float) -> float:
    """Return r* for values that are copied, and one at the top."""
    tilt, first = (below - zero) / (a + zero), -zero / (a + zero)
    r = math.sqrt(2.0 * max(0.0, copies * float(np.log1p(tilt).sum()) + math.log1p(first)))
    squares = copies * float(((tilt / (1.0 + tilt)) ** 2).sum()) + (first / (1.0 + first)) ** 2
    return r + math.log(math.sqrt(squares) / r) / r if r > 0.0 else 0.0


def _normal_quantile(confidence: float) -> float:
    checked = check_number("confidence", confidence, above=0.0, below=1.0)
    return NormalDist().inv_cdf(0.5 + checked / 2)
