"""The result of a simulation: regret by policy, replication and time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_choice, check_int, check_number, refusal
from manyarms.core.statistics import Interval, mean_interval, mean_intervals, ratio_interval
from manyarms.core.tabular import Library, Tabular, data_frame
from manyarms.errors import ParameterError
from manyarms.protocol.policy import Policy
from manyarms.simulation.players import label_of, specification
from manyarms.simulation.summary import IntervalKind, Summary, compare, summarise
from manyarms.simulation.sweep import Cell, Objective, check_objective, informed_policy
from manyarms.theory.hardness import good_mean

_LARGEST_COUNT = (1 << 63) - 1


@dataclass(frozen=True, eq=False, repr=False)
class Result(Tabular):
    """Measurements of one simulation, or of one cell of a sweep.

    Attributes
    ----------
    policies
        The policies' labels. Methods take a label, a policy or a plain class (one that was played,
        with the same parameters), or a name without parameters if only one policy has this name.
    specifications
        The policies with all their parameters.
    instance, n_arms, best_mean
        The instance's label, its number of arms, and its best mean.
    horizon, seed, first_replication, times
        The number of pulls, the seed, the number of the first replication, and the checkpoints.
    rows
        By policy: a record for each replication, with `regret` by checkpoint, `best_pulls`,
        `first_best`, `distinct_arms`, `recommended` and `recommended_mean`.
    arms
        The arms pulled, by (policy, replication, time), if `record_arms` was given, else None.
    seconds
        By policy: the computing time over all workers, if it is known.
    parameters, policy_parameters
        The parameters of the cell in its sweep; by policy, the parameters shown in tables.
    n_best, is_stand_in
        The number of best arms (None if means are drawn); whether the instance has synthetic data
        because its data file is missing.
    largest_gap
        The largest possible regret of a pull: the best mean minus the lowest one.
    good_mean
        An arm is best if its mean is at least this.
    objective
        The loss that summaries compare: "earn" (regret) or "find" (simple regret).
    """

    policies: tuple[str, ...]
    specifications: tuple[str, ...]
    instance: str
    n_arms: int
    best_mean: float
    largest_gap: float
    good_mean: float
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
    objective: Objective = "earn"

    def __repr__(self) -> str:
        return (
            f"<Result: {', '.join(self.policies)} on {self.instance}, "
            f"{self.replications} x {self.horizon} pulls, seed {self.seed}>"
        )

    @property
    def replications(self) -> int:
        """The largest number of replications of any policy."""
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
    def first_best(self) -> NDArray[np.int64]:
        """The time of the first pull of a best arm (0: none), by (policy, replication)."""
        return self._stacked("first_best")

    @property
    def distinct_arms(self) -> NDArray[np.int64]:
        """The number of distinct arms pulled, by (policy, replication)."""
        return self._stacked("distinct_arms")

    @property
    def recommended(self) -> NDArray[np.int64]:
        """The arm recommended after all rewards have been told, by (policy, replication)."""
        return self._stacked("recommended")

    @property
    def recommended_mean(self) -> NDArray[np.float64]:
        """The true mean of the recommended arm, by (policy, replication)."""
        return self._stacked("recommended_mean")

    @property
    def simple_regret(self) -> NDArray[np.float64]:
        """The best mean minus the mean of the recommended arm, by (policy, replication)."""
        return np.asarray(self.best_mean - self.recommended_mean)

    def by(self, objective: Objective) -> Result:
        """Return the same result with another objective.

        Parameters
        ----------
        objective
            The loss that `summary`, `interval`, `difference` and `ratio` compare: "earn" (regret)
            or "find" (simple regret at the horizon). `regret` does not change.

        Examples
        --------
        >>> import manyarms as ma
        >>> instance = ma.instances.planted(n=50, m=5)
        >>> result = ma.simulate(ma.MOSS(), instance, horizon=2000, replications=5)
        >>> result.by("find").interval("moss").estimate, result.simple_regret.tolist()
        (0.0, [[0.0, 0.0, 0.0, 0.0, 0.0]])
        """
        return replace(self, objective=check_objective(objective))

    def of(self, policy: str | Policy | type) -> NDArray[np.float64]:
        """Return the regret of one policy, by (replication, checkpoint)."""
        return np.asarray(self.rows_of(policy)["regret"])

    def rows_of(self, policy: str | Policy | type) -> NDArray[Any]:
        """Return the measurements of one policy, a record for each replication."""
        label = label_of(policy, zip(self.policies, self.specifications, strict=True))
        return self.rows[self.policies.index(label)]

    def best_share(self, policy: str | Policy | type) -> NDArray[np.float64]:
        """Return the share of pulls to best arms, by replication."""
        return np.asarray(self.rows_of(policy)["best_pulls"] / self.horizon)

    def first(self, replications: int) -> Result:
        """Return the result of the first `replications` replications only.

        It has no `seconds` of policies that had more, because only their sum is measured.
        """
        wanted = slice(check_int("replications", replications, at_least=1))
        whole = [len(rows) <= wanted.stop for rows in self.rows]
        return replace(
            self,
            rows=tuple(rows[wanted] for rows in self.rows),
            arms=None if self.arms is None else self.arms[:, wanted],
            seconds={
                label: self.seconds[label]
                for label in itertools.compress(self.policies, whole)
                if label in self.seconds
            },
        )

    @property
    def largest_regret(self) -> NDArray[np.float64]:
        """The largest possible regret of a run, by checkpoint."""
        return np.asarray(self.largest_gap * self.times)

    def interval(
        self, policy: str | Policy | type, *, time: int | None = None, confidence: float = 0.95
    ) -> Interval:
        """Return the mean loss of a policy with Gaffke's interval; see `summary`.

        Parameters
        ----------
        policy
            The policy's label.
        time
            One of `times` (default: the last).
        confidence
            The nominal confidence (default: 0.95).
        """
        at = self._checkpoint(time)
        bounds = (0.0, self._most(at))
        return mean_interval(self._losses(policy, at), bounds=bounds, confidence=confidence)

    def intervals(
        self, policy: str | Policy | type, *, confidence: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of Gaffke's intervals of the mean regret, by checkpoint."""
        bounds = (0.0, self.largest_regret)
        return mean_intervals(self.of(policy), bounds=bounds, confidence=confidence)

    def difference(
        self,
        first: str | Policy | type,
        second: str | Policy | type,
        *,
        time: int | None = None,
        confidence: float = 0.95,
    ) -> Interval:
        """Return the mean loss of `first` minus that of `second`, with Gaffke's interval.

        Only replications that both policies have are used. The parameters are as for `interval`.
        """
        a, b, most = self._paired(first, second, time)
        return mean_interval(a - b, bounds=(-most, most), confidence=confidence)

    def ratio(
        self,
        over: str | Policy | type,
        under: str | Policy | type,
        *,
        time: int | None = None,
        confidence: float = 0.95,
    ) -> Interval:
        """Return the mean loss of `over` divided by that of `under`, with Gaffke's interval.

        Only replications that both policies have are used. The parameters are as for `interval`.
        """
        a, b, most = self._paired(over, under, time)
        return ratio_interval(a, b, at_most=(most, most), confidence=confidence)

    def _losses(self, policy: str | Policy | type, at: int) -> NDArray[np.float64]:
        """Return the losses by replication: regret at a checkpoint, or simple regret."""
        rows = self.rows_of(policy)
        if self.objective == "find":
            return np.asarray(self.best_mean - rows["recommended_mean"])
        return np.asarray(rows["regret"][:, at])

    def _most(self, at: int) -> float:
        """Return the largest possible loss."""
        return float(self.largest_gap if self.objective == "find" else self.largest_regret[at])

    def _missed(self, policy: str, at: int) -> NDArray[np.bool_]:
        """Return by replication whether no best arm was pulled so far, or is recommended."""
        rows = self.rows_of(policy)
        if self.objective == "find":
            return np.asarray(rows["recommended_mean"] < self.good_mean)
        first = rows["first_best"]
        return np.asarray((first == 0) | (first > self.times[at]))

    def _paired(
        self, first: str | Policy | type, second: str | Policy | type, time: int | None
    ) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Return the losses of the replications that both have, and the largest possible loss.

        Losses that differ by rounding errors only are made equal.
        """
        at = self._checkpoint(time)
        a, b = self._losses(first, at), self._losses(second, at)
        count = min(len(a), len(b))
        a, b = a[:count], b[:count]
        equal = np.abs(a - b) <= self._rounding(at, np.maximum(a, b))
        return a, np.where(equal, a, b), self._most(at)

    def _rounding(self, at: int, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much losses may differ by rounding: of the means, and of each addition."""
        pulls = 1 if self.objective == "find" else int(self.times[at])
        largest = max(abs(self.best_mean), abs(self.best_mean - self.largest_gap))
        slack = largest - good_mean(largest)
        return pulls * (slack + np.finfo(float).eps * np.abs(losses))

    def _stacked(self, name: str) -> NDArray[Any]:
        if len({len(rows) for rows in self.rows}) > 1:
            raise ParameterError(
                f"`{name}` is one array for all policies, but here they have different numbers of "
                f"replications. For one policy, use rows_of(policy)[{name!r}]."
            )
        return np.stack([rows[name] for rows in self.rows])

    def summary(
        self,
        *,
        time: int | None = None,
        objective: Objective | None = None,
        interval: IntervalKind | None = None,
        confidence: float = 0.95,
    ) -> Summary:
        """Summarise the losses at one checkpoint.

        Parameters
        ----------
        time
            One of `times` (default: the last).
        objective
            "earn" for regret or "find" for simple regret (default: `objective` of the result).
        interval
            "gaffke" adds a confidence interval to each mean (default: none). A standard error
            reflects only the observed runs. If one run in 400 misses every best arm and costs 100
            times as much, 78 % of samples of 100 runs contain no such run, and the usual interval
            is too low. Gaffke's interval allows for such runs, up to the largest possible regret.
            Its coverage is proved for regret that takes two values, and conjectured otherwise. It
            is wide if there are few runs.
        confidence
            The nominal confidence (default: 0.95).

        Examples
        --------
        >>> import manyarms as ma
        >>> coins = ma.instances.planted(n=50, m=5)
        >>> result = ma.simulate(ma.MOSS(), coins, horizon=100, replications=20)
        >>> result.summary().table().head
        ['policy', 'mean ± standard error', 'median', '99 %', 'worst run']
        >>> result.summary(interval="gaffke").table().head[2]
        '95 % interval'
        """
        if objective is not None:
            chosen = self.by(objective)
            return chosen.summary(time=time, interval=interval, confidence=confidence)
        if interval is not None:
            check_choice("interval", interval, choices=("gaffke",))
        at, runs = self._checkpoint(time), self.replications
        chosen_time = int(self.times[at])
        most = self._most(at) if interval else None
        rows = [
            summarise(label, self._losses(label, at), self._missed(label, at), most, confidence)
            for label in self.policies
        ]
        pairs = []
        for first, second in itertools.combinations(self.policies, 2):
            a, b, _ = self._paired(first, second, chosen_time)
            pairs.append(compare(first, second, a - b, most, confidence))
        title = (
            f"{'simple ' * (self.objective == 'find')}regret on {self.instance} after "
            f"{chosen_time} pulls, {runs} replication{'s' * (runs != 1)}, seed {self.seed}"
        )
        tables = tuple(rows), tuple(pairs), self.specifications
        return Summary(title, *tables, self.objective, interval, confidence)

    def _columns(self) -> dict[str, Any]:
        return self._tidy(over_time=False)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def to_dataframe(
        self, table: Literal["runs", "regret"] = "runs", *, library: Library | None = None
    ) -> Any:
        """Return the measurements as a data frame.

        pandas or polars must be installed; the extra `sim` contains neither.

        Parameters
        ----------
        table
            "runs" has a row for each policy and replication (default); "regret" has one for each
            checkpoint too.
        library
            "pandas" or "polars" (default: the one that is imported already, else the one that is
            installed, and pandas if both are).

        Examples
        --------
        >>> import manyarms as ma
        >>> coins = ma.instances.planted(n=50, m=5)
        >>> result = ma.simulate([ma.MOSS(), ma.Quantile()], coins, horizon=100, replications=3)
        >>> result.to_dataframe(library="pandas").groupby("policy")["regret"].count().to_dict()
        {'moss': 3, 'quantile': 3}
        """
        check_choice("table", table, choices=("runs", "regret"))
        return data_frame(self._tidy(over_time=table == "regret"), library)

    def _tidy(self, *, over_time: bool) -> dict[str, Any]:
        """Return the measurements of all policies as columns; see `tidy_columns`."""
        parts = [
            tidy_columns(rows, self.times, self.first_replication, over_time=over_time)
            for rows in self.rows
        ]
        runs = [len(part["regret"]) for part in parts]
        found = {"policy": np.repeat(np.array(self.policies, object), runs)}
        return found | {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _checkpoint(self, time: int | None) -> int:
        if time is None:
            return len(self.times) - 1
        time = check_int("time", time, at_least=1)
        known = self.times if self.objective == "earn" else self.times[-1:]
        indices = np.flatnonzero(self.times == time)
        if time not in known:
            nearest = int(known[np.abs(known - time).argmin()])
            raise refusal("time", "a checkpoint", time, f"The nearest one is {nearest}.")
        return int(indices[0])


def tidy_columns(
    rows: NDArray[Any], times: NDArray[np.int64], first: int, *, over_time: bool
) -> dict[str, NDArray[Any]]:
    """Return the rows of one policy as columns, with a row for each run.

    With `over_time` there is a row for each run and checkpoint. `first` is the number of the first
    replication.
    """
    numbers = first + np.arange(len(rows))
    if over_time:
        return {
            "replication": np.repeat(numbers, len(times)),
            "time": np.tile(times, len(rows)),
            "regret": rows["regret"].ravel(),
        }
    found = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
    return {"replication": numbers} | found | {"regret": rows["regret"][:, -1].copy()}


def cell_facts(cell: Cell) -> dict[str, Any]:
    """Return the facts about a cell that are stored with its results, as plain data."""
    instance = cell.instance
    return {
        "parameters": dict(cell.parameters),
        "horizon": cell.horizon,
        "delay": cell.delay,
        "batch": cell.batch,
        "first_replication": cell.first_replication,
        "instance": instance.label,
        "rewards": repr(instance.rewards),
        "is_stand_in": instance.is_stand_in,
        "n_arms": instance.n_arms,
        "n_best": instance.n_best,
        "best_mean": instance.best_mean,
        "largest_gap": instance.largest_gap,
        "good_mean": instance.world(cell.horizon).good_mean,
        "policies": {
            player.label: {
                "policy": specification(player.policy),
                "played": specification(informed_policy(player.policy, instance)),
                "replications": player.replications,
                "parameters": dict(player.parameters),
            }
            for player in cell.players
        },
    }


def check_facts(facts: Mapping[str, Any]) -> None:
    """Raise an error unless `facts` have the form that `cell_facts` returns."""
    for name, least in (("horizon", 1), ("n_arms", 1), ("delay", 0), ("first_replication", 0)):
        check_int(name, facts[name], at_least=least, at_most=_LARGEST_COUNT)
    if facts["n_best"] is not None:
        check_int("n_best", facts["n_best"], at_most=_LARGEST_COUNT)
    for name in ("best_mean", "largest_gap", "good_mean"):
        check_number(name, facts[name], above=-1e100, below=1e100)  # so that squares are finite
    for name, kind in (("instance", str), ("is_stand_in", bool), ("parameters", dict)):
        if not isinstance(facts[name], kind):
            raise refusal(name, f"of the type {kind.__name__}", facts[name])
    players = facts["policies"]
    if not isinstance(players, dict) or not players:
        raise refusal("policies", "a table of policies", players)
    for player in players.values():
        check_int("replications", player["replications"], at_least=1)
        if not isinstance(player["policy"], str):
            raise refusal("policy", "a string", player["policy"])
    for own in (facts["parameters"], *(player["parameters"] for player in players.values())):
        for name, value in own.items():
            is_nan = isinstance(value, float) and math.isnan(value)
            if is_nan or not isinstance(value, str | int | float | None):
                raise refusal(name, "a number or a string", value)


def result_of(facts: Mapping[str, Any], **measured: Any) -> Result:
    """Make the result of a cell from `cell_facts` and measurements."""
    players, known = facts["policies"], {one.name for one in fields(Result)} - {"policies"}
    return Result(
        policies=tuple(players),
        specifications=tuple(player["policy"] for player in players.values()),
        policy_parameters=tuple(player["parameters"] for player in players.values()),
        **{key: facts[key] for key in facts if key in known},
        **measured,
    )
