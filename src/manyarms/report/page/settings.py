"""Tables of regrets, cut into settings and summarised: all that a page knows of the numbers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import mean_interval, student_quantile
from manyarms.tables import ResultsError

__all__ = ["Setting", "read_settings", "thinned"]

Numbers = NDArray[np.float64]


@dataclass
class Setting:
    """What was played under one combination of parameters.

    Attributes
    ----------
    values
        The parameters that tell it from other settings.
    times
        The checkpoints.
    regret
        By policy: regrets by (replication, checkpoint).
    missed
        By policy: the share of replications that never pulled a best arm.
    """

    values: dict[str, Any]
    times: NDArray[np.int64]
    regret: dict[str, Numbers] = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)

    @property
    def replications(self) -> int:
        """How often it was played."""
        return len(next(iter(self.regret.values())))

    def summary(self, most_times: int) -> dict[str, Any]:
        """Return what a page shows of it, as plain data; at so many checkpoints at most.

        The pairs are in the order of `itertools.combinations`: the mean of the differences of
        final regrets, and half the width of its 95 % interval.
        """
        kept = thinned(len(self.times), most_times)
        pairs = []
        for first, second in itertools.combinations(self.regret.values(), 2):
            found = mean_interval(first[:, -1] - second[:, -1])
            pairs += [found.estimate, found.high - found.estimate]
        return {
            "times": self.times[kept],
            "replications": self.replications,
            "policies": list(self.regret),
            "series": [_series(regret[:, kept]) for regret in self.regret.values()],
            "missed": [self.missed[policy] for policy in self.regret],
            "pairs": pairs,
        }


def _series(regret: Numbers) -> dict[str, Numbers]:
    """Return centres and bands by checkpoint; half widths and ends are nan for a single run."""
    count = len(regret)
    half = np.full(regret.shape[1], np.nan)
    if count > 1:
        half = student_quantile(0.975, count - 1) * regret.std(axis=0, ddof=1) / math.sqrt(count)
    ordered = np.sort(regret, axis=0)
    q05, median, q95 = np.quantile(ordered, [0.05, 0.5, 0.95], axis=0)
    rank = _median_rank(count)
    ends = (ordered[rank - 1], ordered[count - rank]) if rank else (half * np.nan, half * np.nan)
    return {
        "mean": regret.mean(axis=0),
        "half": half,
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


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """Return places spread evenly over so many, the last one among them.

    >>> thinned(10, 4).tolist(), thinned(3, 9).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if count <= most:
        return np.arange(count)
    if most == 1:
        return np.array([count - 1])
    return np.round(np.linspace(0, count - 1, most)).astype(np.int64)


def read_settings(regret: Any, runs: Any, names: Sequence[str]) -> list[Setting]:
    """Cut the two tables of a folder into settings, told apart by the columns `names`.

    Rows that belong together stand together, as the writers of tables leave them.
    """
    found: dict[tuple[Any, ...], Setting] = {}
    for key, rows in _blocks(regret, names):
        times = rows["time"]
        ends = np.flatnonzero(np.diff(rows["replication"])) + 1
        times = times[: int(ends[0]) if len(ends) else len(times)]
        if not np.array_equal(rows["time"], np.tile(times, len(rows["time"]) // len(times))):
            raise ResultsError(
                "`folder` must hold tables in the order they were written in, got others. Sort "
                "them by replication and time, or run the experiment again."
            )
        setting = Setting(dict(zip(names, key[:-1], strict=True)), times)
        setting = found.setdefault(key[:-1], setting)
        setting.regret[key[-1]] = rows["regret"].reshape(-1, len(times))
    for key, rows in _blocks(runs, names):
        found[key[:-1]].missed[key[-1]] = float((rows["best_pulls"] == 0).mean())
    return list(found.values())


def _blocks(table: Any, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield (setting and policy, the columns of numbers) for each run of equal keys."""
    keys = [*names, "policy"]
    changes = np.zeros(max(0, table.num_rows - 1), bool)
    for key in keys:
        column = table.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        changes |= np.diff(column.indices.to_numpy(zero_copy_only=False)) != 0
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), table.num_rows]
    wanted = [c for c in ("replication", "time", "regret", "best_pulls") if c in table.column_names]
    columns = {name: table.column(name).to_numpy() for name in wanted}
    for first, end in itertools.pairwise(bounds):
        values = tuple(table.column(name)[first].as_py() for name in keys)
        yield values, {name: column[first:end] for name, column in columns.items()}
