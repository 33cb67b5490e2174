"""Summaries of regret, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_choice
from manyarms.core.statistics import mean_interval, standard_error
from manyarms.core.tabular import Library, Tabular, TextTable, data_frame
from manyarms.errors import ParameterError
from manyarms.protocol.policy import Policy
from manyarms.simulation.players import label_of
from manyarms.simulation.sweep import Objective

IntervalKind: TypeAlias = Literal["gaffke"]
Which: TypeAlias = Literal["policies", "pairs"]


class PolicySummary(NamedTuple):
    """Regret, or simple regret, of one policy at one time, over all replications."""

    policy: str
    mean: float
    se: float  # standard error of the mean; nan for one replication
    median: float
    q05: float
    q95: float
    q99: float
    worst: float  # of a replication
    miss_rate: float  # share of replications that have pulled, or recommend ("find"), no best arm
    replications: int
    low: float | None  # ends of the confidence interval of the mean, if there is one
    high: float | None


class PairedDifference(NamedTuple):
    """The loss of `first` minus that of `second`, paired by replication."""

    first: str
    second: str
    mean: float
    se: float  # standard error of the mean; nan for one replication
    median: float
    above: int  # replications in which `first` loses more
    below: int  # replications in which it loses less
    replications: int
    low: float | None  # ends of the confidence interval of the mean, if there is one
    high: float | None


def summarise(
    name: str,
    regret: NDArray[Any],
    missed: NDArray[Any],
    most: float | None,
    confidence: float = 0.95,
) -> PolicySummary:
    """Summarise the regret of one policy.

    `missed` marks the replications without a best arm. If `most`, the largest possible regret, is
    given, the mean gets an interval.
    """
    low, high = _ends(regret, None if most is None else (0.0, most), confidence)
    q05, median, q95, q99 = np.quantile(regret, [0.05, 0.5, 0.95, 0.99]).tolist()
    return PolicySummary(
        policy=name,
        mean=float(regret.mean()),
        se=standard_error(regret),
        median=median,
        q05=q05,
        q95=q95,
        q99=q99,
        worst=float(regret.max()),
        miss_rate=float(missed.mean()),
        replications=len(regret),
        low=low,
        high=high,
    )


def compare(
    first: str,
    second: str,
    differences: NDArray[Any],
    most: float | None,
    confidence: float = 0.95,
) -> PairedDifference:
    """Compare two policies by their differences; `most` as for `summarise`."""
    low, high = _ends(differences, None if most is None else (-most, most), confidence)
    return PairedDifference(
        first=first,
        second=second,
        mean=float(differences.mean()),
        se=standard_error(differences),
        median=float(np.median(differences)),
        above=int((differences > 0.0).sum()),
        below=int((differences < 0.0).sum()),
        replications=len(differences),
        low=low,
        high=high,
    )


def _ends(
    values: NDArray[Any], bounds: tuple[float, float] | None, confidence: float
) -> tuple[float | None, float | None]:
    if bounds is None:
        return None, None
    _, low, high = mean_interval(values, bounds=bounds, confidence=confidence)
    return low, high


def _mean(row: Any, digits: int) -> str:
    error = "" if np.isnan(row.se) else f" ± {row.se:.{digits}f}"
    return f"{row.mean:.{digits}f}{error}"


def _interval(row: Any, digits: int) -> str:
    return f"[{row.low:.{digits}f}, {row.high:.{digits}f}]"


def _number(name: str) -> Callable[[Any, int], str]:
    return lambda row, digits: f"{getattr(row, name):.{digits}f}"


# The columns of tables by name: the head, and the text for a row.
_Columns: TypeAlias = dict[str, tuple[str, Callable[[Any, int], str]]]
POLICY_COLUMNS: _Columns = {
    "mean": ("mean ± standard error", _mean),
    "interval": ("confidence interval", _interval),
    "median": ("median", _number("median")),
    "q05": ("5 %", _number("q05")),
    "q95": ("95 %", _number("q95")),
    "q99": ("99 %", _number("q99")),
    "worst": ("worst run", _number("worst")),
    "missed": ("missed", lambda row, _: f"{row.miss_rate:.1%}"),
    "best": ("best", lambda row, _: f"{1.0 - row.miss_rate:.1%}"),
    "runs": ("runs", lambda row, _: str(row.replications)),
}
_PAIR_COLUMNS: _Columns = {
    "mean": ("mean ± standard error", _mean),
    "interval": ("confidence interval", _interval),
    "median": ("median", _number("median")),
    "worse": ("worse in", lambda pair, _: f"{pair.above} of {pair.replications}"),
}


def digits_of(objective: Objective) -> int:
    """Return the number of decimals of a regret in tables."""
    return 4 if objective == "find" else 1


@dataclass(frozen=True, repr=False)
class Summary(Tabular):
    """The tables of a result at one time; `print` shows them.

    Attributes
    ----------
    title
        What was simulated.
    policies
        One `PolicySummary` for each policy.
    pairs
        One `PairedDifference` for each pair of policies.
    specifications
        The policies with all their parameters.
    objective
        "earn" (regret) or "find" (simple regret).
    interval, confidence
        The kind of confidence intervals of the means (None: there are none), and their nominal
        confidence.

    Examples
    --------
    >>> import manyarms as ma
    >>> oracle, coins = ma.MOSSOracle(m=5), ma.instances.planted(n=50, m=5)
    >>> policies = [oracle, ma.MOSSPlusPlus(beta=0.6)]
    >>> summary = ma.simulate(policies, coins, horizon=99, replications=3).summary()
    >>> [row.policy for row in summary.policies]
    ['moss-oracle', 'moss++(beta=0.6)']
    >>> summary[oracle] == summary["moss-oracle"]
    True
    """

    title: str
    policies: tuple[PolicySummary, ...]
    pairs: tuple[PairedDifference, ...]
    specifications: tuple[str, ...]
    objective: Objective = "earn"
    interval: IntervalKind | None = None
    confidence: float = 0.95

    def table(
        self, which: Which = "policies", *, columns: Sequence[str] | None = None
    ) -> TextTable:
        """Return one of the tables, to be printed or converted to Markdown or LaTeX.

        Parameters
        ----------
        which
            "policies" has a row for each policy (default), "pairs" one for each pair.
        columns
            The columns, in this order. For policies: "mean" (± its standard error), "interval",
            "median", "q05", "q95", "q99" (quantiles over replications), "worst", "missed" (the
            share of replications that have pulled no best arm by this time, or recommend none),
            "best" (the share of the others) and "runs". The default is the mean, the interval if
            there is one, the median, the 99 % quantile, the worst run, and "best" if the objective
            is "find". For pairs: "mean", "interval" if there is one, "median" and "worse" (in how
            many replications the first policy loses more). The default is all of them.
        """
        check_choice("which", which, choices=("policies", "pairs"))
        known = POLICY_COLUMNS if which == "policies" else _PAIR_COLUMNS
        if columns is None:
            usual = ("mean", "interval", "median", "q99", "worst", "worse")
            columns = [
                name for name in usual if name in known and (name != "interval" or self.interval)
            ]
            columns += ["best"] if which == "policies" and self.objective == "find" else []
        for name in columns:
            check_choice("columns", name, choices=tuple(known))
            if name == "interval" and self.interval is None:
                raise ParameterError(
                    "`columns` must not contain 'interval', because this summary has none. Use "
                    'result.summary(interval="gaffke").'
                )
        rows = self.policies if which == "policies" else self.pairs
        digits = digits_of(self.objective)
        heads = {"interval": f"{100 * self.confidence:g} % interval"}
        head = [heads.get(name, known[name][0]) for name in columns]
        return TextTable(
            ["policy" if which == "policies" else "first - second", *head],
            [[_name(row), *(known[name][1](row, digits) for name in columns)] for row in rows],
            self.title if which == "policies" else "paired differences",
        )

    def to_dataframe(self, which: Which = "policies", *, library: Library | None = None) -> Any:
        """Return a table as a data frame. pandas or polars must be installed.

        Parameters
        ----------
        which
            "policies" has a row for each policy (default), "pairs" one for each pair.
        library
            "pandas" or "polars" (default: the one that is imported already, else the one that is
            installed, and pandas if both are).
        """
        check_choice("which", which, choices=("policies", "pairs"))
        return data_frame(self._fields(which), library)

    def to_markdown(
        self, which: Which = "policies", *, columns: Sequence[str] | None = None
    ) -> str:
        """Return a table as Markdown; parameters as for `table`.

        Examples
        --------
        >>> import manyarms as ma
        >>> coins = ma.instances.planted(n=50, m=50)
        >>> summary = ma.simulate(ma.MOSS(), coins, horizon=9, replications=40).summary()
        >>> print(summary.to_markdown(columns=["mean", "worst", "missed"]))
        | policy | mean ± standard error | worst run | missed |
        | --- | --- | --- | --- |
        | moss | 0.0 ± 0.0 | 0.0 | 0.0% |
        """
        return self.table(which, columns=columns).to_markdown()

    def to_latex(self, which: Which = "policies", *, columns: Sequence[str] | None = None) -> str:
        """Return a table as LaTeX for the package booktabs; parameters as for `table`.

        With the default columns it fits one column of a two-column paper (3.4 inches).
        """
        return self.table(which, columns=columns).to_latex()

    def __getitem__(self, policy: str | Policy | type) -> PolicySummary:
        labels = [row.policy for row in self.policies]
        label = label_of(policy, zip(labels, self.specifications, strict=True))
        return self.policies[labels.index(label)]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    def _repr_html_(self) -> str:
        return f"<div>{''.join(table._repr_html_() for table in self._tables())}</div>"

    def _tables(self) -> list[TextTable]:
        return [self.table(), *([self.table("pairs")] if self.pairs else [])]

    def _columns(self) -> dict[str, list[Any]]:
        return self._fields("policies")

    def _fields(self, which: Which) -> dict[str, list[Any]]:
        rows = [row._asdict() for row in (self.policies if which == "policies" else self.pairs)]
        ends = () if self.interval else ("low", "high")
        return {name: [row[name] for row in rows] for name in rows[0] if name not in ends}


def _name(row: PolicySummary | PairedDifference) -> str:
    return row.policy if isinstance(row, PolicySummary) else f"{row.first} - {row.second}"
