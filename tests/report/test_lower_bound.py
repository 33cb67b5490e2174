"""The lower bound's checks: an interval decides, or leaves it open."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.report.lower_bound import TradeOffPoint, trade_off_as_markdown, trade_off_points
from manyarms.report.verdicts import Verdict
from manyarms.theory.lower_bound_family import LowerBoundFamily
from tests.report.test_figures import made_up

# K = 31, gap 31/2048, TΔ/2 = 7936, floor 1984; from R_0 = 0 the bound is 7936 * 30/31 = 7680
FAMILY = LowerBoundFamily(horizon=2**20, alpha=0.25, budget=64)


def around(estimate: float, half: float) -> Interval:
    return Interval(estimate, estimate - half, estimate + half)


def point(easy: Interval, hard: Interval) -> TradeOffPoint:
    return TradeOffPoint(FAMILY, "moss++(beta=0.5)", easy, hard, 10)


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
    easy = made_up(("a", "b"), [[[90], [100], [110]], [[1], [2], [3]]], (2**20,))
    hard = made_up(("a", "b"), [[[9000], [9100], [9200]], [[7], [7], [7]]], (2**20,))
    first, second = trade_off_points(FAMILY, ["x", "y"], easy, hard)
    assert (first.policy, first.easy.estimate, first.hard.estimate) == ("x", 100, 9100)
    # Student's 0.9875 quantile with 2 degrees of freedom is 6.2053: 97.5 % for each interval
    assert first.easy.high == pytest.approx(100 + 6.2053 * 10 / math.sqrt(3), rel=1e-4)
    assert first.lost == pytest.approx(9100 / 7936)
    assert first.explored == pytest.approx(2 * 100 / 2048)  # 2ΔR_0/K, and Δ = K/2048
    assert (second.replications, second.hard.high) == (3, 7)


def test_page_and_data() -> None:
    explored = point(around(20_000, 10), around(5000, 10))
    points = [
        point(around(60, 3), around(9000, 10)),
        point(around(80, 3), around(9000, 10)),
        explored,
    ]
    page = trade_off_as_markdown(points)
    assert "3 holds, 0 fails, 0 cannot be told; the bound is above 0 at 2 of 3 points" in page
    assert "where R_0 ≤ B: 1 holds, 0 fails, 0 cannot be told; elsewhere R_0 > B" in page
    assert "explored the hidden groups less than 2ΔR_0/K = 20 on instance 0" in page
    assert page.count("R_0 > B |") == 2
    assert "| below 0 | holds |" in page
    data = points[0].as_dict()
    assert (data["K"], data["floor_holds"], data["R_0"]) == (31, "holds", [60, 57, 63])
    assert points[1].as_dict()["floor_holds"] is None


def test_figure() -> None:
    pytest.importorskip("matplotlib", reason="the extra `lab` is not installed")
    from manyarms.report.lower_bound_figure import trade_off_figure

    points = [point(around(60, 3), around(9000, 100)), point(around(900, 30), around(9000, 100))]
    figure = trade_off_figure(points, title="A try")
    left, right = figure.axes
    bound = left.lines[0]
    x, y = (np.asarray(values, dtype=float) for values in bound.get_data())
    assert y == pytest.approx(1 - 1 / 31 - np.sqrt(x))
    assert np.asarray(right.lines[0].get_xdata()).tolist() == [60, 900]
    with pytest.raises(ParameterError, match="`points` must hold at least one point"):
        trade_off_figure([])
