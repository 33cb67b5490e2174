"""Results in a few numbers: summaries of regrets, with honest intervals, that print as tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import mean_interval
from manyarms.errors import UnknownNameError
from manyarms.lab.experiment import Objective

__all__ = ["PairedDifference", "PolicySummary", "Summary", "digits_of", "summarise", "unseen"]


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
    miss_rate: float  # share of replications that never pulled a best arm, or recommend none
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
    objective: Objective = "earn"

    def __getitem__(self, policy: str) -> PolicySummary:
        for row in self.policies:
            if row.policy == policy:
                return row
        raise UnknownNameError("policy of this result:", policy, [r.policy for r in self.policies])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width = max(len(row.policy) for row in self.policies)
        sure = f"{100 * self.confidence:g} % confidence interval"
        head = f"{'policy':<{width}} {'mean':>11}  {sure:<22} {'median':>11} {'5%':>11} {'95%':>11}"
        finds, digits = self.objective == "find", digits_of(self.objective)
        lines = [self.title, f"{head} {'best' if finds else 'missed':>7}"]
        for row in self.policies:
            mean, median, q05, q95 = (
                f"{value:>11.{digits}f}" for value in (row.mean, row.median, row.q05, row.q95)
            )
            share = 1.0 - row.miss_rate if finds else row.miss_rate
            numbers = f"{mean}  {_bracket(row.low, row.high, digits)} {median} {q05} {q95}"
            lines.append(f"{row.policy:<{width}} {numbers} {share:>7.1%}")
        lines += self._notes()
        if self.pairs:
            lines += ["", f"paired differences, with {sure}s"]
        for pair in self.pairs:
            names = f"{pair.first:<{width}} - {pair.second:<{width}}"
            ends = _bracket(pair.low, pair.high, digits)
            lines.append(f"{names} {pair.difference:>11.{digits}f}  {ends}")
        return "\n".join(lines)

    def _notes(self) -> list[str]:
        """Say of whom no miss was seen, or nothing else, and what the runs still allow."""
        if self.objective == "find":
            return ["best: the share of runs whose recommended arm is a best arm"]
        alike: dict[str, list[str]] = {}
        for row in self.policies:
            missed = round(row.miss_rate * row.replications)
            if note := unseen(missed, row.replications, confidence=self.confidence):
                alike.setdefault(note, []).append(row.policy)
        return [f"{', '.join(policies)}: {note}" for note, policies in alike.items()]


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
    return f"[{low:>10.{digits}f}, {high:>10.{digits}f}]"
