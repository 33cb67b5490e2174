"""The leaderboard's statistics: relative regrets, ranks and losses, by problem and over all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from manyarms.lab.results import PolicySummary, Result, summarise
from manyarms.report.style import policy_title

__all__ = ["Placing", "Standing", "losses", "placings", "rank_interval", "standings"]
__all__ += ["where_we_lose"]

CONFIDENCE = 0.95
DRAWS = 500  # of the bootstrap
STOOD_FOR = ("empmoss++", "hybrid-moss++", "patience")

Floats = NDArray[np.float64]
Rank = Floats  # 1 is the least mean regret; what was measured, then what each bootstrap draw gives


class Placing(NamedTuple):
    """What is said of one policy on one problem; "equal" is among those of equal knowledge."""

    problem: str
    family: str
    policy: str
    knowledge: str
    perfect_best: int  # 1 if it is made for a best mean of exactly 1, else 0
    regret: Floats  # by run; run k of one policy shares its luck with run k of every other
    summary: PolicySummary
    relative: float  # mean regret over the least mean regret on the problem
    relative_equal: float
    rank: Rank
    rank_equal: Rank


class Standing(NamedTuple):
    """A policy over all problems it was played on."""

    policy: str
    knowledge: str
    perfect_best: int
    problems: int
    runs: int  # on the problem where they are fewest
    relative: float  # geometric mean of relative regrets
    relative_equal: float
    worst: Placing  # where its relative regret among equals is largest
    rank: Rank  # mean rank
    rank_equal: Rank


def placings(result: Result) -> list[Placing]:
    """Place the policies of one problem, the least regret first.

    Bayesian bootstrap: a draw weighs the runs at random, all policies alike, so that the luck they
    share stays shared.
    """
    regrets = [np.ascontiguousarray(rows["regret"][:, -1]) for rows in result.rows]
    means = np.array([regret.mean() for regret in regrets])
    weights = np.random.default_rng(0).standard_exponential((DRAWS, result.replications))
    drawn = [(own := weights[:, : len(r)]) @ r / own.sum(axis=1) for r in regrets]
    largest = float(result.largest_regret[-1])
    every = np.column_stack([means, drawn]).T  # by (draw, policy), after what was measured
    found = []
    for k in np.argsort(means, kind="stable").tolist():
        about = result.policy_parameters[k]
        equals = [other["knowledge"] == about["knowledge"] for other in result.policy_parameters]
        # 1 + the number of rivals with less regret; equal ones share a rank
        less = every < every[:, [k]] * (1 - 1e-12)
        name, missed = result.policies[k], result.rows[k]["best_pulls"] == 0
        found.append(
            Placing(
                **result.parameters,
                **about | {"policy": name},
                regret=regrets[k],
                summary=summarise(name, regrets[k], missed, largest=largest),
                relative=_ratio(means[k], means.min()),
                relative_equal=_ratio(means[k], means[equals].min()),
                rank=1.0 + less.sum(axis=1),
                rank_equal=1.0 + less[:, equals].sum(axis=1),
            )
        )
    return found


def rank_interval(rank: Rank) -> Interval:
    """Return a rank with its bootstrap interval."""
    value, ends = float(rank[0]), [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2]
    low, high = np.quantile(rank[1:], ends).tolist()
    return Interval(value, min(low, value), max(high, value))


def standings(table: Iterable[Placing]) -> list[Standing]:
    """Return each policy's standing over all problems, least relative regret among equals first."""
    found: dict[str, list[Placing]] = {}
    for placing in table:
        found.setdefault(placing.policy, []).append(placing)
    result = [
        Standing(
            policy,
            own[0].knowledge,
            own[0].perfect_best,
            len(own),
            min(placing.summary.replications for placing in own),
            _geometric_mean([placing.relative for placing in own]),
            _geometric_mean([placing.relative_equal for placing in own]),
            max(own, key=lambda placing: placing.relative_equal),
            np.mean([placing.rank for placing in own], axis=0),
            np.mean([placing.rank_equal for placing in own], axis=0),
        )
        for policy, own in found.items()
    ]
    return sorted(result, key=lambda standing: standing.relative_equal)


def losses(table: Sequence[Placing], policy: str) -> list[tuple[float, Placing, Placing]]:
    """Return where a policy loses to one that knows no more: by which factor, and both placings.

    The rival is the one of least mean regret. It wins if the paired interval says so at a
    confidence that allows for the choice among all rivals.
    """
    lost = []
    for own in (placing for placing in table if placing.policy == policy):
        others = (p for p in table if p.problem == own.problem and p is not own)
        rivals = [p for p in others if p.knowledge in ("none", own.knowledge)]
        if rivals:
            best = rivals[0]  # the table is in the order of regret
            common = min(len(best.regret), len(own.regret))
            gaps = own.regret[:common] - best.regret[:common]
            if mean_interval(gaps, confidence=1 - (1 - CONFIDENCE) / len(rivals)).low > 0:
                lost.append((_ratio(own.summary.mean, best.summary.mean), own, best))
    return lost


def where_we_lose(table: Sequence[Placing]) -> str:
    """Say on how many problems, and on which, empMOSS++ and our own policies are beaten."""
    families = Counter(family for _, family in {(p.problem, p.family): 0 for p in table})
    sentences = []
    for policy in STOOD_FOR:
        lost, played = losses(table, policy), sum(p.policy == policy for p in table)
        title = f"**{policy_title(policy)}**"
        if lost:
            counts = Counter(own.family for _, own, _ in lost)
            where = ", ".join(f"{f} {counts[f]} of {families[f]}" for f in families if counts[f])
            winners = Counter(winner.policy for *_, winner in lost).most_common(2)
            by = " and ".join(f"{policy_title(name)} ({times})" for name, times in winners)
            factor, own, winner = max(lost, key=lambda loss: loss[0])
            sentences.append(
                f"{title} loses on {len(lost)} of {played} problems ({where}), most often to {by}; "
                f'worst on "{own.problem}", with {factor:.3g} times the regret of '
                f"{policy_title(winner.policy)}."
            )
        elif played:
            sentences.append(f"{title} loses on none of its {played} problems.")
    rule = (
        "A policy loses where one that is told no more has less mean regret, by a paired interval "
        f"at {100 * CONFIDENCE:g} % that allows for the choice among all rivals."
    )
    return " ".join(["Where we lose:", *sentences, rule])


def _ratio(over: float, under: float) -> float:
    """Return one regret over another; nothing over nothing is 1."""
    if under > 0.0:
        return over / under
    return 1.0 if over == under else math.inf


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))
