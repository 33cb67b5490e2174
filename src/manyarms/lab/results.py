"""What a simulation gives: regrets by policy, replication and time, and honest summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number
from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError, UnknownNameError
from manyarms.lab.experiment import Cell

__all__ = ["PairedDifference", "PolicySummary", "Result", "Summary", "result_of", "summarise"]


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
    """Everything that was measured in one cell.

    Attributes
    ----------
    policies
        The policies' labels.
    specifications
        The policies with all their parameters.
    instance, n_arms, best_mean
        What was played on.
    horizon, seed, first_replication, times
        The number of pulls, the seed, the number of the first replication, and the checkpoints.
    rows
        By policy: a record for each replication, with `regret` by checkpoint, `best_pulls`,
        `distinct_arms` and `recommended`.
    arms
        By (policy, replication, time): the arms pulled, if they were asked for, else None.
    seconds
        By policy: computing time, over all workers.
    parameters, policy_parameters
        What tells the cell from others of its experiment; by policy, what tables say of it.
    n_best, is_stand_in
        The number of best arms, or None where means are drawn; whether the instance stands in for
        data that are not there.
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
    rows: tuple[NDArray[Any], ...]
    arms: NDArray[np.int64] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    policy_parameters: tuple[Mapping[str, Any], ...] = ()
    n_best: int | None = None
    is_stand_in: bool = False

    def __repr__(self) -> str:
        return (
            f"<Result: {', '.join(self.policies)} on {self.instance}, "
            f"{self.replications} x {self.horizon} pulls, seed {self.seed}>"
        )

    @property
    def replications(self) -> int:
        """The number of replications, of the policy that has most."""
        return max(len(rows) for rows in self.rows)

    @property
    def regret(self) -> NDArray[np.float64]:
        """Pseudo-regret by (policy, replication, checkpoint)."""
        return self._stacked("regret")

    @property
    def best_pulls(self) -> NDArray[np.int64]:
        """Pulls of best arms, by (policy, replication)."""
        return self._stacked("best_pulls")

    @property
    def distinct_arms(self) -> NDArray[np.int64]:
        """The number of arms touched, by (policy, replication)."""
        return self._stacked("distinct_arms")

    @property
    def recommended(self) -> NDArray[np.int64]:
        """By (policy, replication), the arm pulled most, then of largest mean, then at random."""
        return self._stacked("recommended")

    def of(self, policy: str) -> NDArray[np.float64]:
        """Return the regrets of one policy, by (replication, checkpoint)."""
        return np.asarray(self.rows_of(policy)["regret"])

    def rows_of(self, policy: str) -> NDArray[Any]:
        """Return what was measured of one policy, a record for each replication."""
        if policy not in self.policies:
            raise UnknownNameError("policy of this result:", policy, self.policies)
        return self.rows[self.policies.index(policy)]

    def first(self, replications: int) -> Result:
        """Return the result of the first replications alone."""
        wanted = slice(check_int("replications", replications, at_least=1))
        return replace(
            self,
            rows=tuple(rows[wanted] for rows in self.rows),
            arms=None if self.arms is None else self.arms[:, wanted],
        )

    def _stacked(self, name: str) -> NDArray[Any]:
        if len({len(rows) for rows in self.rows}) > 1:
            raise ParameterError(
                f"`{name}` of all policies must have as many replications, and here they differ. "
                f"Use rows_of(policy)[{name!r}]."
            )
        return np.stack([rows[name] for rows in self.rows])

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
            summarise(name, own["regret"][:, at], own["best_pulls"] == 0)
            for name, own in zip(self.policies, self.rows, strict=True)
        )
        pairs = tuple(
            _paired(a, b, _differences(self.of(a)[:, at], self.of(b)[:, at]), confidence)
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


def summarise(name: str, regret: NDArray[Any], missed: NDArray[Any]) -> PolicySummary:
    """Summarise the regrets of one policy: the one place where means and quantiles are taken."""
    count = len(regret)
    q05, median, q95 = np.quantile(regret, [0.05, 0.5, 0.95])
    return PolicySummary(
        policy=name,
        mean=float(regret.mean()),
        se=float(regret.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        median=float(median),
        q05=float(q05),
        q95=float(q95),
        miss_rate=float(missed.mean()),
        replications=count,
    )


def result_of(
    game: Cell,
    *,
    seed: int,
    rows: Sequence[NDArray[Any]],
    arms: Sequence[NDArray[np.int64]] | None,
    seconds: Sequence[float],
) -> Result:
    """Return what was played in a cell as a result."""
    labels = tuple(player.label for player in game.players)
    return Result(
        policies=labels,
        specifications=tuple(repr(player.policy) for player in game.players),
        instance=game.instance.label,
        n_arms=game.instance.n_arms,
        best_mean=game.instance.best_mean,
        horizon=game.horizon,
        seed=seed,
        first_replication=game.first_replication,
        times=np.array(game.times, np.int64),
        rows=tuple(rows),
        arms=None if arms is None else np.stack(arms),
        seconds=dict(zip(labels, seconds, strict=True)),
        parameters=game.parameters,
        policy_parameters=tuple(player.parameters for player in game.players),
        n_best=game.instance.n_best,
        is_stand_in=game.instance.is_stand_in,
    )


def _differences(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return differences, replication by replication, of those that both have."""
    count = min(len(a), len(b))
    return np.asarray(a[:count] - b[:count])


def _paired(first: str, second: str, differences: Any, confidence: float) -> PairedDifference:
    return PairedDifference(first, second, *mean_interval(differences, confidence=confidence))


def _or_dash(value: float, width: int) -> str:
    return f"{'-':>{width}}" if math.isnan(value) else f"{value:>{width}.1f}"
