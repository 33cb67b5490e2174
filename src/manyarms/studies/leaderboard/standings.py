"""The leaderboard's statistics: relative regrets, ranks and losses, by problem and over all."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval, mean_limits
from manyarms.report.style import policy_title
from manyarms.simulation.results import Result
from manyarms.simulation.summary import PolicySummary, summarise

CONFIDENCE = 0.95
_NEARLY_ALL = 0.9  # a share of the problems: some policies are made for rewards in [0, 1] only
STOOD_FOR = ("empmoss++", "prospector", "patience")

Floats = NDArray[np.float64]


class Placing(NamedTuple):
    """What is said of one policy on one problem; "equal" is among those of equal knowledge."""

    problem: str
    family: str
    policy: str
    knowledge: str
    perfect_best: int  # 1 if it is made for a best mean of exactly 1, else 0
    regret: Floats  # by run; run k of one policy shares its luck with run k of every other
    summary: PolicySummary
    largest: float  # regret that a run can have
    relative: float  # mean regret over the least mean regret on the problem
    relative_equal: float
    rank: Interval  # 1 is the least mean regret; the ends are the ranks it could have
    rank_equal: Interval


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
    rank: float  # mean rank
    rank_equal: float


def placings(result: Result) -> list[Placing]:
    """Place the policies of one problem, the least regret first."""
    regrets = [np.ascontiguousarray(rows["regret"][:, -1]) for rows in result.rows]
    means = np.array([regret.mean() for regret in regrets])
    largest = float(result.largest_regret[-1])
    better = _surely_better(regrets, largest)
    everybody = np.ones(len(regrets), bool)
    found = []
    for k in np.argsort(means, kind="stable").tolist():
        about = result.policy_parameters[k]
        equals = np.array([p["knowledge"] == about["knowledge"] for p in result.policy_parameters])
        name = result.policies[k]
        found.append(
            Placing(
                **result.parameters,
                **about | {"policy": name},
                regret=regrets[k],
                summary=summarise(name, regrets[k], result.best_share(name), largest=largest),
                largest=largest,
                relative=_ratio(means[k], means.min()),
                relative_equal=_ratio(means[k], means[equals].min()),
                rank=_rank(k, means, better, everybody),
                rank_equal=_rank(k, means, better, equals),
            )
        )
    return found


def _surely_better(regrets: Sequence[Floats], largest: float) -> NDArray[np.bool_]:
    """Return by (one, other) whether a paired interval says that one has less mean regret.

    The error is shared among the rivals of a policy, so that its possible ranks hold with 95 %.
    """
    pairs: dict[int, list[tuple[int, int]]] = {}  # by the runs that both have
    for a, b in combinations(range(len(regrets)), 2):
        pairs.setdefault(min(len(regrets[a]), len(regrets[b])), []).append((a, b))
    better = np.zeros((len(regrets), len(regrets)), bool)
    sure = 1.0 - (1.0 - CONFIDENCE) / max(1, len(regrets) - 1)
    for runs, both in pairs.items():
        gaps = np.stack([regrets[a][:runs] - regrets[b][:runs] for a, b in both], axis=1)
        low, high = mean_limits(gaps, bounds=(-largest, largest), confidence=sure)
        one, other = np.array(both).T
        better[one, other], better[other, one] = high < 0.0, low > 0.0
    return better


def _rank(k: int, means: Floats, better: NDArray[np.bool_], among: NDArray[np.bool_]) -> Interval:
    """Return a rank: 1 + the number of rivals with less regret; equal ones share a rank."""
    ahead = (means[among] < means[k] * (1 - 1e-12)).sum()
    return Interval(
        1.0 + float(ahead),
        1.0 + float(better[among, k].sum()),
        float(among.sum() - better[k, among].sum()),
    )


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
            geometric_mean(placing.relative for placing in own),
            geometric_mean(placing.relative_equal for placing in own),
            max(own, key=lambda placing: placing.relative_equal),
            float(np.mean([placing.rank.estimate for placing in own])),
            float(np.mean([placing.rank_equal.estimate for placing in own])),
        )
        for policy, own in found.items()
    ]
    return sorted(result, key=lambda standing: standing.relative_equal)


class Tail(NamedTuple):
    """What the bad runs of a policy cost; regrets are divided by the least mean of the problem."""

    policy: str
    mean: float  # geometric means over its problems
    q99: float
    worst: float
    missed: float  # the mean share of runs that gave best arms less than a tenth of the pulls
    most_missed: Placing  # where that share is largest


def tails(table: Sequence[Placing]) -> list[Tail]:
    """Return the tails of all policies, the smallest 99 % quantile first."""
    least: dict[str, float] = {}
    found: dict[str, list[Placing]] = {}
    for p in table:
        least[p.problem] = min(p.summary.mean, least.get(p.problem, math.inf))
        found.setdefault(p.policy, []).append(p)

    def relative(own: Sequence[Placing], which: str) -> float:
        return geometric_mean(_ratio(getattr(p.summary, which), least[p.problem]) for p in own)

    result = [
        Tail(
            policy,
            relative(own, "mean"),
            relative(own, "q99"),
            relative(own, "worst"),
            float(np.mean([p.summary.mostly_missed for p in own])),
            max(own, key=lambda p: p.summary.mostly_missed),
        )
        for policy, own in found.items()
    ]
    return sorted(result, key=lambda tail: tail.q99)


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
            sure, bounds = 1 - (1 - CONFIDENCE) / len(rivals), (-own.largest, own.largest)
            if mean_interval(gaps, bounds=bounds, confidence=sure).low > 0:
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
                f"{title} loses on {len(lost)} of {played} problems ({where}), most often to {by}. "
                f'It loses most on "{own.problem}", with {factor:.3g} times the regret of '
                f"{policy_title(winner.policy)}."
            )
        elif played:
            sentences.append(f"{title} loses on none of its {played} problems.")
    rule = (
        "A policy loses on a problem if another one, which knows no more, has less mean regret. A "
        f"paired interval at {100 * CONFIDENCE:g} % decides; it allows for the choice among all "
        "rivals."
    )
    return " ".join([*sentences, rule])


def in_short(table: Sequence[Placing], order: Sequence[Standing]) -> str:
    """Say in four sentences who does best, what knowing more is worth, and where ours stand."""
    best: dict[str, Standing] = {}  # by what they know, of those who play nearly all problems
    most = max(standing.problems for standing in order)
    for standing in sorted(order, key=lambda standing: standing.problems < _NEARLY_ALL * most):
        best.setdefault(standing.knowledge, standing)
    first = best.get("none", order[0])
    problems = len({p.problem for p in table})
    everywhere = any(each.problems == problems and each.relative == 1.0 for each in order)
    none = "" if everywhere else ", and none is best on all of them"
    said = (
        f"{len(order)} policies played {problems} problems{none}. "
        f"Of those that know nothing about the means, **{policy_title(first.policy)}** is best: it "
        f"has {first.relative_equal:.3g} times the least regret among them (geometric mean over "
        f"problems), and {first.worst.relative_equal:.3g} times on its worst problem."
    )
    known = {"m": "how rare good arms are", "mu*": "the best mean"}
    richer = [
        f"{policy_title(best[kind].policy)}, which knows {words}, has "
        f"{best[kind].relative:.3g} times"
        for kind, words in known.items()
        if kind in best
    ]
    if richer and "none" in best:
        said += (
            f" Compared with the least regret of all policies, it has {first.relative:.3g} times; "
            f"{'; '.join(richer)}."
        )
    lost = [
        f"{policy_title(policy)} on {len(losses(table, policy))} of its {played}"
        for policy in STOOD_FOR
        if (played := sum(placing.policy == policy for placing in table))
    ]
    if lost:
        said += f" Policies that know no more beat {', '.join(lost)} problems."
    return said


def _ratio(over: float, under: float) -> float:
    """Return the ratio of two regrets; it is 1 if both are 0."""
    if under > 0.0:
        return over / under
    return 1.0 if over == under else math.inf


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))
