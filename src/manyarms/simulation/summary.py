"""Results in a few numbers: summaries of regrets, with honest intervals, that print as tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_choice
from manyarms.core.statistics import Interval, mean_interval, paired, runs_to_decide
from manyarms.core.tabular import (
    Library,
    Tabular,
    aligned,
    data_frame,
    html_table,
    latex_table,
    markdown_table,
)
from manyarms.protocol.policy import Policy
from manyarms.simulation.experiment import Objective
from manyarms.simulation.players import label_of


class PolicySummary(NamedTuple):
    """Regret, or simple regret, of one policy at one time, over all replications."""

    policy: str
    mean: float
    se: float  # standard error of the mean
    low: float  # of an interval for the mean, which allows for costly runs that were not seen
    high: float
    median: float
    q05: float
    q95: float
    q99: float
    worst: float  # of a replication
    miss_rate: float  # share of replications that pulled no best arm, or recommend none
    mostly_missed: float  # share that gave best arms less than a tenth of the pulls
    replications: int


class PairedDifference(NamedTuple):
    """What `first` loses beyond `second`, replication by replication.

    The median says what usually happens, the mean what happens on average, rare misses included.
    """

    first: str
    second: str
    difference: float  # the mean
    low: float  # of an interval for the mean, which allows for costly runs that were not seen
    high: float
    median: float
    median_low: float  # of an interval for the median, between two of the differences
    median_high: float
    above: int  # replications in which `first` loses more
    below: int  # replications in which it loses less
    runs: int
    runs_to_decide: float  # an estimate, where the interval of the mean contains 0; else `runs`

    def turned(self) -> PairedDifference:
        """Return the same the other way round: what `second` loses beyond `first`."""
        return self._replace(
            first=self.second,
            second=self.first,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
            median=-self.median,
            median_low=-self.median_high,
            median_high=-self.median_low,
            above=self.below,
            below=self.above,
        )

    @property
    def usually(self) -> int:
        """1 if `first` usually loses more, -1 if it loses less, 0 if that is undecided."""
        return _sign(self.median_low, self.median_high)

    @property
    def on_average(self) -> int:
        """1 if `first` loses more on average, -1 if it loses less, 0 if that is undecided."""
        return _sign(self.low, self.high)


def compared(
    first: str,
    second: str,
    differences: NDArray[Any],
    mean: Interval,
    *,
    largest: float,
    confidence: float = 0.95,
) -> PairedDifference:
    """Compare two policies, given their differences and the interval of the mean."""
    usual, needed = paired(differences, confidence=confidence), float(len(differences))
    if mean.low <= 0.0 <= mean.high:
        bounds = (-largest, largest)
        needed = runs_to_decide(differences, bounds=bounds, confidence=confidence)
    median, low, high, above, below, runs = usual
    return PairedDifference(first, second, *mean, median, low, high, above, below, runs, needed)


@dataclass(frozen=True, repr=False)
class Summary(Tabular):
    """Tables of a result at one time; `print` shows them.

    Attributes
    ----------
    policies
        One `PolicySummary` for each policy.
    pairs
        One `PairedDifference` for each pair of policies.
    objective
        "earn" if they are about regret, "find" if they are about simple regret.
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
    objective: Objective = "earn"
    aliases: Mapping[str, str] = field(default_factory=dict)

    def _columns(self) -> dict[str, list[Any]]:
        return _columns_of(PolicySummary._fields, self.policies)

    def to_dataframe(
        self, table: Literal["policies", "pairs"] = "policies", *, library: Library | None = None
    ) -> Any:
        """Return a table as a data frame. pandas or polars must be installed.

        Parameters
        ----------
        table
            "policies" has a row for each policy (default), "pairs" one for each pair.
        library
            "pandas" or "polars" (default: the one that is imported already, else the one that is
            installed, and pandas if both are).
        """
        check_choice("table", table, choices=("policies", "pairs"))
        if table == "policies":
            return data_frame(self._columns(), library)
        return data_frame(_columns_of(PairedDifference._fields, self.pairs), library)

    def to_markdown(self, table: Literal["policies", "pairs"] = "policies") -> str:
        """Return a table as Markdown: that of policies (default), or of paired differences.

        Examples
        --------
        >>> import manyarms as ma
        >>> coins = ma.instances.planted(n=50, m=50)
        >>> summary = ma.simulate(ma.MOSS(), coins, horizon=9, replications=40).summary()
        >>> print(summary.to_markdown())
        | policy | mean | 95 % interval | median | 5 % | 95 % | 99 % | worst | missed | mostly ... |
        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
        | moss | 0.0 | [0.0, 0.0] | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0% | 0.0% |
        """
        return markdown_table(*self._text_table(table))

    def to_latex(self, table: Literal["policies", "pairs"] = "policies") -> str:
        """Return a table as LaTeX, for the package booktabs: of policies (default), or of pairs."""
        return latex_table(*self._text_table(table))

    def _text_table(self, table: str) -> tuple[list[str], list[list[str]]]:
        check_choice("table", table, choices=("policies", "pairs"))
        if table == "policies":
            head, *rows = self.table()
            return head, rows
        names = [f"{pair.first} - {pair.second}" for pair in self.pairs]
        rows = [[name, *cells[1:]] for name, cells in zip(names, self.differences(), strict=True)]
        return self.differences_head(), rows

    def _repr_html_(self) -> str:
        shown = super()._repr_html_()
        if not self.pairs:
            return shown
        caption = [self._compared(), *SAYS, *self.undecided()]
        return (
            f"<div>{shown}{html_table(self.differences_head(), self.differences(), caption)}</div>"
        )

    def _caption(self) -> list[str]:
        return [self.title, *self.notes()]

    def __getitem__(self, policy: str | Policy) -> PolicySummary:
        labels = [row.policy for row in self.policies]
        return self.policies[labels.index(label_of(policy, labels, self.aliases))]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self.title, *aligned(self.table()), *self.wrapped_notes()]
        if self.pairs:
            table = [self.differences_head(), *self.differences()]
            lines += ["", self._compared(), *aligned(table), *SAYS, *_wrapped(self.undecided())]
        return "\n".join(lines)

    def table(self) -> list[list[str]]:
        """Return the regrets as text: the head, and a row for each policy."""
        finds, digits = self.objective == "find", digits_of(self.objective)
        interval = f"{100 * self.confidence:g} % interval"
        shares = ["best"] if finds else ["missed", "mostly missed"]
        rows = [["policy", "mean", interval, "median", "5 %", "95 %", "99 %", "worst", *shares]]
        for row in self.policies:
            spread = (row.median, row.q05, row.q95, row.q99, row.worst)
            mean, *others = (f"{value:.{digits}f}" for value in (row.mean, *spread))
            parts = [1.0 - row.miss_rate] if finds else [row.miss_rate, row.mostly_missed]
            ends = _bracket(row.low, row.high, digits)
            rows.append([row.policy, mean, ends, *others, *(f"{part:.1%}" for part in parts)])
        return rows

    def _compared(self) -> str:
        return f"paired differences, with {100 * self.confidence:g} % confidence intervals"

    def differences_head(self) -> list[str]:
        """Return what stands above the columns of `differences`."""
        return ["first - second", "median", "interval", "first loses more", "mean", "interval"]

    def pairs_with(self, policy: str) -> list[PairedDifference]:
        """Return what each other policy loses beyond this one."""
        pairs = (pair for pair in self.pairs if policy in (pair.first, pair.second))
        return [pair.turned() if pair.first == policy else pair for pair in pairs]

    def differences(self, pairs: Sequence[PairedDifference] | None = None) -> list[list[str]]:
        """Return the paired differences as text, a row for each pair (default: all)."""
        width = max(len(row.policy) for row in self.policies)
        digits = digits_of(self.objective)
        return [
            [
                f"{pair.first:<{width}} - {pair.second}",
                f"{pair.median:.{digits}f}",
                _bracket(pair.median_low, pair.median_high, digits),
                f"{pair.above} of {pair.runs}",
                f"{pair.difference:.{digits}f}",
                _bracket(pair.low, pair.high, digits),
            ]
            for pair in (self.pairs if pairs is None else pairs)
        ]

    def undecided(self) -> list[str]:
        """Say how many more runs would decide on average, about, where these do not."""
        wanted = [
            f"{pair.first} - {pair.second} ({more_runs(pair.runs_to_decide, pair.runs)})"
            for pair in self.pairs
            if pair.on_average == 0
        ]
        return [f"undecided on average, with an estimate: {', '.join(wanted)}"] if wanted else []

    def notes(self) -> list[str]:
        """Say which policies never missed, or always, and which miss rates the runs allow."""
        if self.objective == "find":
            return ["best: the share of runs whose recommended arm is a best arm"]
        alike: dict[str, list[str]] = {}
        for row in self.policies:
            missed = round(row.miss_rate * row.replications)
            if note := unseen(missed, row.replications, confidence=self.confidence):
                alike.setdefault(note, []).append(row.policy)
        mostly = [MOSTLY] if any(row.mostly_missed > 0.0 for row in self.policies) else []
        return [*(f"{', '.join(policies)}: {note}" for note, policies in alike.items()), *mostly]

    def wrapped_notes(self) -> list[str]:
        """Return the notes in lines of at most 80 characters."""
        return _wrapped(self.notes())


MOSTLY = "mostly missed: the share of runs that gave best arms less than a tenth of the pulls"
SAYS = ("median: what usually happens; mean: what happens on average, rare misses included",)


def _wrapped(sentences: Sequence[str]) -> list[str]:
    wrapper = textwrap.TextWrapper(
        80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return [line for sentence in sentences for line in wrapper.wrap(sentence)]


def _columns_of(names: Sequence[str], rows: Sequence[Any]) -> dict[str, list[Any]]:
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _sign(low: float, high: float) -> int:
    return int(low > 0.0) - int(high < 0.0)


def more_runs(needed: float, runs: int) -> str:
    """Say how many more runs are needed, about, in two digits.

    >>> more_runs(197.3, 50), more_runs(math.inf, 50)
    ('about 150 more runs', 'more than a million runs')
    >>> more_runs(50.2, 50)
    'about 1 more run'
    """
    if needed > 1e6:
        return "more than a million runs"
    more = max(1.0, needed - runs)
    about = f"{float(f'{more:.2g}'):,.0f}"
    return f"about {about} more run{'' if about == '1' else 's'}"


def summarise(
    name: str,
    regret: NDArray[Any],
    best_share: NDArray[Any],
    *,
    largest: float,
    confidence: float = 0.95,
) -> PolicySummary:
    """Summarise the regrets of one policy, none above `largest`: the one place for it.

    `best_share` is the share of the pulls that best arms had, or 0 or 1 where one is recommended.
    """
    count = len(regret)
    mean, low, high = mean_interval(regret, bounds=(0.0, largest), confidence=confidence)
    q05, median, q95, q99 = np.quantile(regret, [0.05, 0.5, 0.95, 0.99])
    return PolicySummary(
        policy=name,
        mean=mean,
        se=float(regret.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        low=low,
        high=high,
        median=float(median),
        q05=float(q05),
        q95=float(q95),
        q99=float(q99),
        worst=float(regret.max()),
        miss_rate=float((best_share == 0).mean()),
        mostly_missed=float((best_share < 0.1).mean()),
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


def digits_of(objective: Objective) -> int:
    """Return how many decimals a regret is shown with."""
    return 4 if objective == "find" else 1


def _bracket(low: float, high: float, digits: int) -> str:
    return f"[{low:.{digits}f}, {high:.{digits}f}]"
