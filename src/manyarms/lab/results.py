"""What a simulation gives: regrets by policy, replication and time, and honest summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.core.statistics import Interval, mean_interval, mean_limits, ratio_interval
from manyarms.core.tabular import Tabular, aligned
from manyarms.errors import ParameterError
from manyarms.lab.experiment import Cell
from manyarms.lab.frames import ResultFrames
from manyarms.lab.labels import aliases_of, label_of
from manyarms.protocol.policy import Policy

__all__ = [
    "PairedDifference",
    "PolicySummary",
    "Result",
    "Summary",
    "result_of",
    "summarise",
    "unseen",
]


class PolicySummary(NamedTuple):
    """Regret of one policy at one time, over all replications."""

    policy: str
    mean: float
    se: float  # standard error of the mean
    low: float  # of an interval for the mean, which allows for costly runs that were not seen
    high: float
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
class Summary(Tabular):
    """Tables of a result at one time; `print` shows them.

    Attributes
    ----------
    policies
        One `PolicySummary` for each policy.
    pairs
        One `PairedDifference` for each pair of policies.
    aliases
        Other names that `summary[...]` takes for a label, as `Result` does.

    Examples
    --------
    >>> import manyarms as ma
    >>> oracle, coins = ma.MOSSOracle(m=5), ma.instances.planted(n=50, m=5)
    >>> policies = [oracle, ma.MOSSPlusPlus(beta=0.6)]
    >>> summary = ma.simulate(policies, coins, horizon=99, replications=3).summary()
    >>> [row.policy for row in summary.policies]
    ['moss-oracle', 'moss++(beta=0.6)']
    >>> summary[oracle] == summary[oracle.label] == summary["moss-oracle"]
    True
    """

    title: str
    confidence: float
    policies: tuple[PolicySummary, ...]
    pairs: tuple[PairedDifference, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def _columns(self) -> dict[str, list[Any]]:
        names = PolicySummary._fields
        return dict(zip(names, map(list, zip(*self.policies, strict=True)), strict=True))

    def _caption(self) -> list[str]:
        return [self.title, *self.notes()]

    def __getitem__(self, policy: str | Policy) -> PolicySummary:
        labels = [row.policy for row in self.policies]
        return self.policies[labels.index(label_of(policy, labels, self.aliases))]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self.title, *aligned(self.table()), *self.notes()]
        if self.pairs:
            sure = f"{100 * self.confidence:g} % confidence intervals"
            lines += ["", f"paired differences, with {sure}", *aligned(self.differences())]
        return "\n".join(lines)

    def table(self) -> list[list[str]]:
        """Return the regrets as text: the head, and a row for each policy."""
        interval = f"{100 * self.confidence:g} % interval"
        rows = [["policy", "mean", interval, "median", "5 %", "95 %", "missed"]]
        for row in self.policies:
            mean, median, q05, q95 = (
                f"{value:.1f}" for value in (row.mean, row.median, row.q05, row.q95)
            )
            ends, missed = _bracket(row.low, row.high), f"{row.miss_rate:.1%}"
            rows.append([row.policy, mean, ends, median, q05, q95, missed])
        return rows

    def differences(self) -> list[list[str]]:
        """Return the paired differences as text, a row for each pair."""
        width = max(len(row.policy) for row in self.policies)
        return [
            [f"{a:<{width}} - {b}", f"{difference:.1f}", _bracket(low, high)]
            for a, b, difference, low, high in self.pairs
        ]

    def notes(self) -> list[str]:
        """Say of whom no miss was seen, or nothing else, and what the runs still allow."""
        alike: dict[str, list[str]] = {}
        for row in self.policies:
            missed = round(row.miss_rate * row.replications)
            if note := unseen(missed, row.replications, confidence=self.confidence):
                alike.setdefault(note, []).append(row.policy)
        return [f"{', '.join(policies)}: {note}" for note, policies in alike.items()]


@dataclass(frozen=True, eq=False, repr=False)
class Result(ResultFrames):
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
    largest_gap
        The most that a pull can cost: the best mean minus the lowest one.
    aliases
        Other names of policies than their labels: the name, if one policy has it, and the label
        with all parameters. Methods take labels, these names, and policies.
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
    largest_gap: float | None = None  # of a folder that does not say: then no mean is below 0
    aliases: Mapping[str, str] = field(default_factory=dict)

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

    def of(self, policy: str | Policy) -> NDArray[np.float64]:
        """Return the regrets of one policy, by (replication, checkpoint)."""
        return np.asarray(self.rows_of(policy)["regret"])

    def rows_of(self, policy: str | Policy) -> NDArray[Any]:
        """Return what was measured of one policy, a record for each replication."""
        return self.rows[self.policies.index(label_of(policy, self.policies, self.aliases))]

    def first(self, replications: int) -> Result:
        """Return the result of the first replications alone."""
        wanted = slice(check_int("replications", replications, at_least=1))
        return replace(
            self,
            rows=tuple(rows[wanted] for rows in self.rows),
            arms=None if self.arms is None else self.arms[:, wanted],
        )

    @property
    def largest_regret(self) -> NDArray[np.float64]:
        """By checkpoint, the most that a run can have lost."""
        gap = self.best_mean if self.largest_gap is None else self.largest_gap
        return np.asarray(self.times * gap)

    def interval(
        self, policy: str | Policy, *, time: int | None = None, confidence: float = 0.95
    ) -> Interval:
        """Return the mean regret of a policy with an interval that allows for costly runs unseen.

        Parameters
        ----------
        policy
            The policy's label.
        time
            One of `times` (default: the last).
        confidence
            How often the interval holds (default: 0.95).
        """
        at = self._checkpoint(time)
        bounds = (0.0, float(self.largest_regret[at]))
        return mean_interval(self.of(policy)[:, at], bounds=bounds, confidence=confidence)

    def limits(
        self, policy: str | Policy, *, confidence: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the intervals of the mean regret, by checkpoint."""
        bounds = (0.0, self.largest_regret)
        return mean_limits(self.of(policy), bounds=bounds, confidence=confidence)

    def difference(
        self,
        first: str | Policy,
        second: str | Policy,
        *,
        time: int | None = None,
        confidence: float = 0.95,
    ) -> Interval:
        """Return the mean of what `first` loses beyond `second`, replication by replication.

        It is of the replications that both have; parameters as for `interval`.
        """
        a, b, most = self._paired(first, second, time)
        return mean_interval(a - b, bounds=(-most, most), confidence=confidence)

    def ratio(
        self,
        over: str | Policy,
        under: str | Policy,
        *,
        time: int | None = None,
        confidence: float = 0.95,
    ) -> Interval:
        """Return the mean regret of `over` divided by that of `under`.

        It is of the replications that both have; parameters as for `interval`.
        """
        a, b, most = self._paired(over, under, time)
        return ratio_interval(a, b, at_most=(most, most), confidence=confidence)

    def _paired(
        self, first: str | Policy, second: str | Policy, time: int | None
    ) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Return the regrets of the replications that both have, and the largest there can be."""
        at = self._checkpoint(time)
        a, b = self.of(first)[:, at], self.of(second)[:, at]
        count = min(len(a), len(b))
        return a[:count], b[:count], float(self.largest_regret[at])

    def _stacked(self, name: str) -> NDArray[Any]:
        if len({len(rows) for rows in self.rows}) > 1:
            raise ParameterError(
                f"`{name}` of all policies must have as many replications, and here they differ. "
                f"Use rows_of(policy)[{name!r}]."
            )
        return np.stack([rows[name] for rows in self.rows])

    def summary(self, *, time: int | None = None, confidence: float = 0.95) -> Summary:
        """Summarise the regrets at one checkpoint.

        Parameters
        ----------
        time
            One of `times` (default: the last).
        confidence
            The confidence of the intervals (default: 0.95). They allow for costly runs that were
            not seen; see `interval`.
        """
        at = self._checkpoint(time)
        rows = tuple(
            summarise(
                name,
                own["regret"][:, at],
                own["best_pulls"] == 0,
                largest=float(self.largest_regret[at]),
                confidence=confidence,
            )
            for name, own in zip(self.policies, self.rows, strict=True)
        )
        pairs = tuple(
            PairedDifference(a, b, *self.difference(a, b, time=time, confidence=confidence))
            for a, b in combinations(self.policies, 2)
        )
        title = (
            f"regret on {self.instance} after {self.times[at]} pulls, "
            f"{self.replications} replication{'' if self.replications == 1 else 's'}, "
            f"seed {self.seed}"
        )
        return Summary(title, confidence, rows, pairs, self.aliases)

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


def summarise(
    name: str,
    regret: NDArray[Any],
    missed: NDArray[Any],
    *,
    largest: float,
    confidence: float = 0.95,
) -> PolicySummary:
    """Summarise the regrets of one policy, none above `largest`: the one place for it."""
    count = len(regret)
    mean, low, high = mean_interval(regret, bounds=(0.0, largest), confidence=confidence)
    q05, median, q95 = np.quantile(regret, [0.05, 0.5, 0.95])
    return PolicySummary(
        policy=name,
        mean=mean,
        se=float(regret.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        low=low,
        high=high,
        median=float(median),
        q05=float(q05),
        q95=float(q95),
        miss_rate=float(missed.mean()),
        replications=count,
    )


def unseen(missed: int, runs: int, *, confidence: float = 0.95) -> str:
    """Say what runs still allow that all went the same way; nothing of others.

    >>> unseen(0, 100)
    'no miss in 100 runs: at most 3.6 % of runs miss'
    >>> unseen(5, 5), unseen(3, 100)
    ('5 misses in 5 runs: at least 48 % of runs miss', '')
    """
    if 0 < missed < runs:
        return ""
    flags = np.arange(runs) < missed
    _, low, high = mean_interval(flags, bounds=(0.0, 1.0), confidence=confidence)
    seen = f"{missed or 'no'} miss{'es' if missed > 1 else ''} in {runs} run{'s' * (runs > 1)}"
    allowed = f"at most {100 * high:.2g}" if missed == 0 else f"at least {100 * low:.2g}"
    return f"{seen}: {allowed} % of runs miss"


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
        largest_gap=game.instance.largest_gap,
        aliases=aliases_of(game.players),
    )


def _bracket(low: float, high: float) -> str:
    return f"[{low:.1f}, {high:.1f}]"
