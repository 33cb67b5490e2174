"""The leaderboard's statistics: regrets by problem and policy into rows, ranks and standings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "Cell",
    "Rank",
    "Row",
    "Standing",
    "by_problem",
    "profile",
    "ratio",
    "rows",
    "standings",
]

CONFIDENCE = 0.95
_DRAWS = 500  # of the bootstrap

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one policy on one problem.

    Attributes
    ----------
    problem, family, policy
        Their names.
    knowledge
        What the policy is told of the means: "none", "m" or "mu*".
    regret, missed
        By run: the final regret, and whether no best arm was ever pulled. Run k of one policy
        shares its luck with run k of every other one on the problem.
    """

    problem: str
    family: str
    policy: str
    knowledge: str
    regret: Floats
    missed: NDArray[np.bool_]


class Rank(NamedTuple):
    """A rank, 1 being the least mean regret, with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        numbers = [f"{x:.0f}" if x == round(x) else f"{x:.1f}" for x in self]
        same = numbers[1] == numbers[2]
        return numbers[0] if same else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


class Row(NamedTuple):
    """What is said of one policy on one problem; "equal" is among those of equal knowledge."""

    problem: str
    family: str
    policy: str
    knowledge: str
    runs: int
    mean: float
    se: float
    median: float
    miss_rate: float
    relative: float  # mean regret over the least mean regret on the problem
    relative_equal: float
    rank: Rank
    rank_equal: Rank


class Standing(NamedTuple):
    """A policy over all problems it was played on."""

    policy: str
    knowledge: str
    problems: int
    runs: int  # on the problem where they are fewest
    relative: float  # geometric mean of relative regrets
    relative_equal: float
    worst: float  # relative regret where it is largest, among equals
    worst_at: str
    rank: Rank  # mean rank
    rank_equal: Rank


class _Ranked(NamedTuple):
    """A row, and its ranks in all bootstrap draws."""

    row: Row
    draws: Floats
    draws_equal: Floats


def rows(cells: Iterable[Cell]) -> list[Row]:
    """Return a row for each cell, problem by problem, the least regret first."""
    return [ranked.row for group in by_problem(cells) for ranked in _problem_rows(group)]


def standings(cells: Iterable[Cell]) -> list[Standing]:
    """Return each policy's standing over all problems, least relative regret among equals first."""
    found: dict[str, list[_Ranked]] = {}
    for group in by_problem(cells):
        for ranked in _problem_rows(group):
            found.setdefault(ranked.row.policy, []).append(ranked)
    result = []
    for policy, played in found.items():
        own = [ranked.row for ranked in played]
        worst = max(own, key=lambda row: row.relative_equal)
        overall = np.stack([ranked.draws for ranked in played]).mean(axis=0)
        equal = np.stack([ranked.draws_equal for ranked in played]).mean(axis=0)
        result.append(
            Standing(
                policy,
                own[0].knowledge,
                len(own),
                min(row.runs for row in own),
                _geometric_mean([row.relative for row in own]),
                _geometric_mean([row.relative_equal for row in own]),
                worst.relative_equal,
                worst.problem,
                _rank(float(np.mean([row.rank.value for row in own])), overall),
                _rank(float(np.mean([row.rank_equal.value for row in own])), equal),
            )
        )
    return sorted(result, key=lambda standing: standing.relative_equal)


def profile(table: Sequence[Row], policy: str, factors: Floats, *, equal: bool = True) -> Floats:
    """Return the share of its problems on which a policy is within each factor of the best.

    Parameters
    ----------
    table
        Of `rows`.
    policy
        Whose profile.
    factors
        At which to look.
    equal
        Whether the best is that among policies of equal knowledge.
    """
    own = [row.relative_equal if equal else row.relative for row in table if row.policy == policy]
    return np.asarray((np.array(own)[:, None] <= factors * (1 + 1e-12)).mean(axis=0))


def by_problem(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group cells by problem, in order of appearance."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.problem, []).append(cell)
    return list(groups.values())


def _problem_rows(group: Sequence[Cell]) -> list[_Ranked]:
    """Return the rows of one problem, each with its ranks in all draws, overall and among equals.

    Bayesian bootstrap: a draw weighs the runs at random, all policies alike, so that the luck they
    share stays shared.
    """
    means = np.array([cell.regret.mean() for cell in group])
    most = max(len(cell.regret) for cell in group)
    weights = np.random.default_rng(0).standard_exponential((_DRAWS, most))
    drawn = np.stack([_weighted(weights, cell.regret) for cell in group], axis=1)
    known = np.array([cell.knowledge for cell in group])
    equals = known[:, None] == known[None, :]
    everyone = np.ones_like(equals)
    ranks, ranks_equal = _ranks(drawn, everyone), _ranks(drawn, equals)
    value, value_equal = _ranks(means[None], everyone)[0], _ranks(means[None], equals)[0]
    result = []
    for k in np.argsort(means, kind="stable"):
        row = _row(group[k], float(means.min()), float(means[equals[k]].min()))
        row = row._replace(
            rank=_rank(float(value[k]), ranks[:, k]),
            rank_equal=_rank(float(value_equal[k]), ranks_equal[:, k]),
        )
        result.append(_Ranked(row, ranks[:, k], ranks_equal[:, k]))
    return result


def _row(cell: Cell, least: float, least_equal: float) -> Row:
    regret, runs = cell.regret, len(cell.regret)
    mean = float(regret.mean())
    unknown = Rank(math.nan, math.nan, math.nan)
    return Row(
        cell.problem,
        cell.family,
        cell.policy,
        cell.knowledge,
        runs,
        mean,
        float(regret.std(ddof=1)) / math.sqrt(runs) if runs > 1 else math.nan,
        float(np.median(regret)),
        float(cell.missed.mean()),
        ratio(mean, least),
        ratio(mean, least_equal),
        unknown,
        unknown,
    )


def _weighted(weights: Floats, regret: Floats) -> Floats:
    own = weights[:, : len(regret)]
    return np.asarray(own @ regret / own.sum(axis=1))


def _ranks(means: Floats, rivals: NDArray[np.bool_]) -> Floats:
    """Return 1 + the number of rivals with less regret, by (draw, policy); equal ones share."""
    less = means[:, None, :] < means[:, :, None] * (1 - 1e-12)
    return np.asarray(1.0 + (less & rivals[None]).sum(axis=2))


def _rank(value: float, draws: Floats) -> Rank:
    low, high = np.quantile(draws, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    return Rank(value, min(float(low), value), max(float(high), value))


def ratio(over: float, under: float) -> float:
    """Return one regret over another; nothing over nothing is 1."""
    if under > 0.0:
        return over / under
    return 1.0 if over == under else math.inf


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))
