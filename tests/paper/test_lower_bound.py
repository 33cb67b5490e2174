"""The lower bound: the sweep is fair, and an interval decides each check or leaves it open."""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.simulation import run
from manyarms.theory.lower_bound_family import LowerBoundFamily
from paper.lower_bound import (
    TradeOffPoint,
    sweep,
    trade_off_figure,
    trade_off_notes,
    trade_off_points,
    trade_off_table,
    write,
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
            assert player.policy.with_best_mean(0.3) is player.policy  # nobody is told it
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
    assert first.easy == easy.interval("moss", confidence=0.975)  # two of them hold with 95 %
    assert first.replications == 3


def test_units() -> None:
    one = point(around(100, 10), around(9100, 100))
    assert one.lost == pytest.approx(9100 / 7936)
    assert one.explored == pytest.approx(2 * 100 / 2048)  # 2ΔR_0/K, and Δ = K/2048


def test_notes_and_table() -> None:
    explored = point(around(20_000, 10), around(5000, 10))
    points = [
        point(around(60, 3), around(9000, 10)),
        point(around(80, 3), around(9000, 10)),
        explored,
    ]
    first, second, third = trade_off_notes(points)
    none = "0 fail, 0 are undecided;"
    assert f"3 hold, {none} the bound is above 0 at 2 of 3 points" in first
    assert f"where R_0 ≤ B: 1 holds, {none} elsewhere R_0 > B" in second
    assert "explored the hidden groups less than 2ΔR_0/K = 20 on instance 0" in third
    text = trade_off_table(points).to_markdown()
    assert text.count("R_0 > B |") == 2
    assert "| below 0 | holds |" in text


def test_figure() -> None:
    points = [point(around(60, 3), around(9000, 100)), point(around(900, 30), around(9000, 100))]
    left, right = trade_off_figure(points).axes
    bound = left.lines[0]
    x, y = (np.asarray(values, dtype=float) for values in bound.get_data())
    assert y == pytest.approx(1 - 1 / 31 - np.sqrt(x))
    assert np.asarray(right.lines[0].get_xdata()).tolist() == [60, 900]
    with pytest.raises(ParameterError, match="`points` must contain at least one point"):
        trade_off_figure([])


@pytest.mark.slow
def test_what_is_written(tmp_path: Path) -> None:
    short = sweep(3, 0, horizon=2**8, betas=(0.5,), doublings=2)
    files = write(run(short, tmp_path / "results", progress=False), tmp_path)
    assert [path.name for path in files] == ["lower-bound.svg", "lower-bound.md"]
    page = files[1].read_text()
    assert page.startswith("# The lower bound, checked with 3 replications\n\nT = 256, ")
    assert page.count("| moss-oracle(alpha=0) |") == 2
