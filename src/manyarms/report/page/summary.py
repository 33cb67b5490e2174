"""A cell's regrets, summarised: all that a page knows of the numbers."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.lab.results import Result

__all__ = ["summary"]

Numbers = NDArray[np.float64]


def summary(result: Result, most_times: int) -> dict[str, Any]:
    """Return what a page shows of a cell, as plain data; at so many checkpoints at most.

    The pairs are in the order of `itertools.combinations`: the mean of the differences of final
    regrets, and the ends of its 95 % interval.
    """
    kept = _thinned(len(result.times), most_times)
    final = result.summary()
    return {
        "times": result.times[kept],
        "replications": result.replications,
        "fewest": min(len(rows) for rows in result.rows),
        "policies": result.policies,
        "series": [_series(result, policy, kept) for policy in result.policies],
        "missed": [row.miss_rate for row in final.policies],
        "pairs": [number for p in final.pairs for number in (p.difference, p.low, p.high)],
    }


def _series(result: Result, policy: str, kept: NDArray[np.int64]) -> dict[str, Numbers]:
    """Return centres and bands by checkpoint; where runs are too few, a median's ends are nan."""
    regret = result.of(policy)[:, kept]
    least, most = (ends[kept] for ends in result.limits(policy))
    ordered = np.sort(regret, axis=0)
    q05, median, q95 = np.quantile(ordered, [0.05, 0.5, 0.95], axis=0)
    rank, count = _median_rank(len(regret)), len(regret)
    none = np.full(len(kept), np.nan)
    ends = (ordered[rank - 1], ordered[count - rank]) if rank else (none, none)
    return {
        "mean": regret.mean(axis=0),
        "least": least,
        "most": most,
        "median": median,
        "low": ends[0],
        "high": ends[1],
        "q05": q05,
        "q95": q95,
    }


@functools.cache
def _median_rank(count: int) -> int:
    """Return r such that the r-th smallest and largest values hold the median with 95 %; else 0.

    The number of values below the median is binomial, whatever their distribution: the interval
    misses it with probability 2 P(B < r).

    >>> [_median_rank(count) for count in (5, 6, 20, 100, 5000)]
    [0, 1, 6, 40, 2431]
    """
    # by logarithms: 2 to the power of thousands is no float
    chances = (
        math.exp(
            math.lgamma(count + 1)
            - math.lgamma(k + 1)
            - math.lgamma(count - k + 1)
            - count * math.log(2.0)
        )
        for k in range(count)
    )
    return sum(2.0 * below <= 0.05 for below in itertools.accumulate(chances))


def _thinned(count: int, most: int) -> NDArray[np.int64]:
    """Return places spread evenly over so many, the last one among them.

    >>> _thinned(10, 4).tolist(), _thinned(3, 9).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if count <= most:
        return np.arange(count)
    if most == 1:
        return np.array([count - 1])
    return np.round(np.linspace(0, count - 1, most)).astype(np.int64)
