"""The lower bound: the sweep, and checks that an interval decides or leaves undecided."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.statistics import Interval
from manyarms.theory.lower_bound_family import LowerBoundFamily
from paper.lower_bound import (
    TradeOffPoint,
    sweep,
    trade_off_points,
)
from paper.verdicts import Verdict

# K = 31, gap 31/2048, TΔ/2 = 7936, floor 1984; from R_0 = 0 the bound is 7936 * 30/31 = 7680
FAMILY = LowerBoundFamily(horizon=2**20, alpha=0.25, budget=64)


def test_the_sweep_of_the_budget() -> None:
    cells = sweep(10, 0).cells
    pairs = [cells[k : k + 2] for k in range(0, len(cells), 2)]
    budgets: list[Any] = [easy.parameters["budget"] for easy, _ in pairs]
    assert budgets[0] == pytest.approx(pairs[0][0].horizon ** 0.25)
    assert all(after == 2 * before for before, after in itertools.pairwise(budgets))
    for easy, hard in pairs:
        assert hard.parameters == {**easy.parameters, "hidden": 1}
        assert easy.players == hard.players  # the same on all instances
        for player in easy.players:
            assert player.policy.with_best_mean(0.3) is player.policy  # no policy knows it
        assert hard.instance.best_mean == 2 * easy.instance.best_mean
        for cell, alpha in ((easy, 0.0), (hard, 0.25)):
            assert cell.instance.problem(cell.horizon).alpha <= alpha


def around(estimate: float, half: float) -> Interval:
    return Interval(estimate, estimate - half, estimate + half)


def point(easy: Interval, hard: Interval) -> TradeOffPoint:
    return TradeOffPoint(FAMILY, "moss++(beta=0.5)", 0.5, easy, hard, 10)


@pytest.mark.parametrize(
    ("easy", "hard", "verdict"),
    [
        (around(0, 0), around(7800, 100), Verdict.HOLDS),
        (around(0, 0), around(7700, 100), Verdict.OPEN),
        (around(0, 0), around(7500, 100), Verdict.FAILS),
        # at R_0 = 80 the bound is 7936 (30/31 - sqrt(160 * 31/2048 / 31)) = 5462, at 60 5759
        (around(80, 20), around(5800, 10), Verdict.HOLDS),
        (around(80, 20), around(5700, 10), Verdict.OPEN),  # R_0 may be 60
        (around(80, 20), around(5100, 10), Verdict.FAILS),  # at R_0 = 100 it is 5200
        (around(5, 20), around(7800, 10), Verdict.HOLDS),  # no regret is below 0
        (Interval(80, math.nan, math.nan), Interval(9000, math.nan, math.nan), Verdict.OPEN),
    ],
)
def test_the_trade_off(easy: Interval, hard: Interval, verdict: Verdict) -> None:
    assert point(easy, hard).check_trade_off().verdict == verdict


@pytest.mark.parametrize(
    ("easy", "hard", "verdict"),
    [
        (around(60, 3), around(2000, 10), Verdict.HOLDS),
        (around(60, 3), around(1980, 10), Verdict.OPEN),
        (around(60, 3), around(1900, 10), Verdict.FAILS),
        (around(60, 10), around(1900, 10), Verdict.OPEN),  # R_0 may be above B = 64
        (around(60, 10), around(2000, 10), Verdict.HOLDS),
        (around(80, 10), around(1900, 10), None),
    ],
)
def test_the_floor(easy: Interval, hard: Interval, verdict: Verdict | None) -> None:
    part = point(easy, hard).check_floor()
    assert (None if part is None else part.verdict) == verdict


def test_points_from_results() -> None:
    policies = [ma.MOSS(), ma.MOSSPlusPlus(beta=0.6)]
    play = partial(ma.simulate, policies, horizon=300, replications=3, workers=1)
    easy, hard = (play(ma.instances.planted(n=50, m=m)) for m in (20, 2))
    first, second = trade_off_points(FAMILY, easy, hard)
    assert [(p.policy, p.beta) for p in (first, second)] == [
        ("moss", None),
        ("moss++(beta=0.6)", 0.6),
    ]
    regrets = easy.of("moss")[:, -1]
    assert first.easy.estimate == regrets.mean()
    assert second.hard.estimate == hard.of("moss++")[:, -1].mean()
    assert first.easy == easy.interval("moss", confidence=0.975)  # both hold with 95 %
    assert first.replications == 3
