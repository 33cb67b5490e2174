"""Results in a few numbers: summaries of regrets, with honest intervals, that print as tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import mean_interval
from manyarms.core.tabular import Tabular, aligned
from manyarms.lab.experiment import Objective
from manyarms.lab.players import label_of
from manyarms.protocol.policy import Policy


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
    miss_rate: float  # share of replications that pulled no best arm, or recommend none
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
        lines = [self.title, *aligned(self.table()), *self.wrapped_notes()]
        if self.pairs:
            sure = f"{100 * self.confidence:g} % confidence intervals"
            lines += ["", f"paired differences, with {sure}", *aligned(self.differences())]
        return "\n".join(lines)

    def table(self) -> list[list[str]]:
        """Return the regrets as text: the head, and a row for each policy."""
        finds, digits = self.objective == "find", digits_of(self.objective)
        interval = f"{100 * self.confidence:g} % interval"
        share = "best" if finds else "missed"
        rows = [["policy", "mean", interval, "median", "5 %", "95 %", share]]
        for row in self.policies:
            mean, median, q05, q95 = (
                f"{value:.{digits}f}" for value in (row.mean, row.median, row.q05, row.q95)
            )
            ends = _bracket(row.low, row.high, digits)
            part = f"{1.0 - row.miss_rate if finds else row.miss_rate:.1%}"
            rows.append([row.policy, mean, ends, median, q05, q95, part])
        return rows

    def differences(self) -> list[list[str]]:
        """Return the paired differences as text, a row for each pair."""
        width = max(len(row.policy) for row in self.policies)
        digits = digits_of(self.objective)
        return [
            [f"{a:<{width}} - {b}", f"{difference:.{digits}f}", _bracket(low, high, digits)]
            for a, b, difference, low, high in self.pairs
        ]

    def notes(self) -> list[str]:
        """Say which policies never missed, or always, and which miss rates the runs allow."""
        if self.objective == "find":
            return ["best: the share of runs whose recommended arm is a best arm"]
        alike: dict[str, list[str]] = {}
        for row in self.policies:
            missed = round(row.miss_rate * row.replications)
            if note := unseen(missed, row.replications, confidence=self.confidence):
                alike.setdefault(note, []).append(row.policy)
        return [f"{', '.join(policies)}: {note}" for note, policies in alike.items()]

    def wrapped_notes(self) -> list[str]:
        """Return the notes in lines of at most 80 characters."""
        wrapper = textwrap.TextWrapper(
            80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        return [line for note in self.notes() for line in wrapper.wrap(note)]


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


def digits_of(objective: Objective) -> int:
    """Return how many decimals a regret is shown with."""
    return 4 if objective == "find" else 1


def _bracket(low: float, high: float, digits: int) -> str:
    return f"[{low:.{digits}f}, {high:.{digits}f}]"
