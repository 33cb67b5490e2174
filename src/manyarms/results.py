"""What a simulation gives: regrets by policy, replication and time, and honest summaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number
from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError, UnknownNameError

__all__ = ["PairedDifference", "PolicySummary", "Result", "Summary"]


class PolicySummary(NamedTuple):
    """Regret of one policy at one time, over all replications."""

    policy: str
    mean: float
    se: float  # standard error of the mean
    median: float
    q05: float
    q95: float
    miss_rate: float  # share of replications that pulled no best arm, over the whole horizon
    replications: int


class PairedDifference(NamedTuple):
    """Mean of (regret of `first` - regret of `second`), replication by replication."""

    first: str
    second: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Summary:
    """Tables of a result at one time; `print` shows them.

    Attributes
    ----------
    policies
        One `PolicySummary` for each policy.
    pairs
        One `PairedDifference` for each pair of policies.
    """

    title: str
    confidence: float
    policies: tuple[PolicySummary, ...]
    pairs: tuple[PairedDifference, ...]

    def __getitem__(self, policy: str) -> PolicySummary:
        for row in self.policies:
            if row.policy == policy:
                return row
        raise UnknownNameError("policy of this result:", policy, [r.policy for r in self.policies])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width = max(len(row.policy) for row in self.policies)
        head = f"{'policy':<{width}} {'mean':>11} {'se':>9} {'median':>11} {'5%':>11} {'95%':>11}"
        lines = [self.title, f"{head} {'missed':>7}"]
        for row in self.policies:
            numbers = f"{row.mean:>11.1f} {_or_dash(row.se, 9)} {row.median:>11.1f}"
            tails = f"{row.q05:>11.1f} {row.q95:>11.1f} {row.miss_rate:>7.1%}"
            lines.append(f"{row.policy:<{width}} {numbers} {tails}")
        if self.pairs:
            lines += [
                "",
                f"paired differences, with {100 * self.confidence:g} % confidence intervals",
            ]
        for pair in self.pairs:
            names = f"{pair.first:<{width}} - {pair.second:<{width}}"
            interval = f"[{_or_dash(pair.low, 10)}, {_or_dash(pair.high, 10)}]"
            lines.append(f"{names} {pair.difference:>11.1f}  {interval}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Everything `simulate` measured.

    Attributes
    ----------
    policies
        The policies' names, with parameters where a name occurs twice.
    specifications
        The policies with all their parameters.
    instance, n_arms, best_mean
        What was played on.
    horizon, seed, first_replication, times
        The number of pulls, the seed, the number of the first replication, and the checkpoints.
    regret
        Pseudo-regret by (policy, replication, checkpoint).
    best_pulls, distinct_arms, recommended
        By (policy, replication): pulls of best arms, arms touched, and the arm to deploy, which
        is the one pulled most often (then of largest mean, then at random).
    arms
        By (policy, replication, time): the arms pulled, if they were asked for, else None.
    seconds
        By policy: computing time, over all workers.
    """

    policies: tuple[str, ...]
    specifications: tuple[str, ...]
    instance: str
    n_arms: int
    best_mean: float
    horizon: int
    seed: int
    first_replication: int
    times: NDArray[np.int64]
    regret: NDArray[np.float64]
    best_pulls: NDArray[np.int64]
    distinct_arms: NDArray[np.int64]
    recommended: NDArray[np.int64]
    arms: NDArray[np.int64] | None = None
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return (
            f"<Result: {', '.join(self.policies)} on {self.instance}, "
            f"{self.replications} x {self.horizon} pulls, seed {self.seed}>"
        )

    @property
    def replications(self) -> int:
        """The number of replications."""
        return int(self.regret.shape[1])

    def of(self, policy: str) -> NDArray[np.float64]:
        """Return the regrets of one policy, by (replication, checkpoint)."""
        if policy not in self.policies:
            raise UnknownNameError("policy of this result:", policy, self.policies)
        return np.asarray(self.regret[self.policies.index(policy)])

    def first(self, replications: int) -> Result:
        """Return the result of the first replications alone."""
        rows = slice(check_int("replications", replications, at_least=1))
        return replace(
            self,
            regret=self.regret[:, rows],
            best_pulls=self.best_pulls[:, rows],
            distinct_arms=self.distinct_arms[:, rows],
            recommended=self.recommended[:, rows],
            arms=None if self.arms is None else self.arms[:, rows],
        )

    def summary(self, *, time: int | None = None, confidence: float = 0.95) -> Summary:
        """Summarise the regrets at one checkpoint, the last unless given.

        Parameters
        ----------
        time
            One of `times`.
        confidence
            Of the intervals for paired differences (Student's t).
        """
        check_number("confidence", confidence, above=0.0, below=1.0)
        at = self._checkpoint(time)
        rows = tuple(
            _summarise(name, self.regret[k, :, at], self.best_pulls[k])
            for k, name in enumerate(self.policies)
        )
        pairs = tuple(
            _paired(a, b, self.of(a)[:, at] - self.of(b)[:, at], confidence)
            for a, b in combinations(self.policies, 2)
        )
        title = (
            f"regret on {self.instance} after {self.times[at]} pulls, "
            f"{self.replications} replication{'' if self.replications == 1 else 's'}, "
            f"seed {self.seed}"
        )
        return Summary(title, confidence, rows, pairs)

    def _checkpoint(self, time: int | None) -> int:
        if time is None:
            return len(self.times) - 1
        time = check_int("time", time, at_least=1)
        places = np.flatnonzero(self.times == time)
        if places.size == 0:
            nearest = int(self.times[np.abs(self.times - time).argmin()])
            raise ParameterError(
                f"`time` must be a checkpoint, got {time!r}. The nearest one is {nearest}."
            )
        return int(places[0])


def _summarise(name: str, regret: Any, best_pulls: Any) -> PolicySummary:
    count = len(regret)
    q05, median, q95 = np.quantile(regret, [0.05, 0.5, 0.95])
    return PolicySummary(
        policy=name,
        mean=float(regret.mean()),
        se=float(regret.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan,
        median=float(median),
        q05=float(q05),
        q95=float(q95),
        miss_rate=float((best_pulls == 0).mean()),
        replications=count,
    )


def _paired(first: str, second: str, differences: Any, confidence: float) -> PairedDifference:
    return PairedDifference(first, second, *mean_interval(differences, confidence=confidence))


def _or_dash(value: float, width: int) -> str:
    return f"{'-':>{width}}" if math.isnan(value) else f"{value:>{width}.1f}"
