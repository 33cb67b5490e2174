"""Hardness, best arms and misses against hand-computed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.theory import pareto_position

MASKED = np.ma.masked_equal([0.5, 1.0], 1.0)


@pytest.mark.parametrize(
    ("n", "m", "horizon", "alpha"),
    [
        (2, 1, 100, 0.0),
        (200, 1, 10_000, 0.5),  # 200 = 2 * 10^2
        (10, 10, 1, 0.0),
        (2_000_000, 1, 1000, 2.0),  # beyond reach, and not clipped
        (10_025, 54, 100_000, 0.3935),  # contest 652, by the paper's own definition
    ],
)
def test_hardness(n: int, m: int, horizon: int, alpha: float) -> None:
    assert ma.hardness(n, m, horizon) == pytest.approx(alpha, abs=5e-5)


def test_one_pull_is_either_trivial_or_hopeless() -> None:
    assert ma.hardness(4, 2, 1) == 0.0
    assert ma.hardness(5, 2, 1) == math.inf


def test_best_arms_of_figure_2a() -> None:
    # ceil(20000 / (2 * 50000^alpha)), by hand
    expected = [3390, 1149, 390, 132, 45, 16, 6, 2, 1]
    assert [ma.best_arms(20_000, 50_000, k / 10) for k in range(1, 10)] == expected


@given(st.integers(1, 40), st.integers(1, 1000), st.integers(0, 8))
def test_an_integer_quotient_is_not_rounded_up(root: int, m: int, eighths: int) -> None:
    # with T = root^8 and alpha = k/8, n = 2 m root^k has the quotient m exactly
    n = 2 * m * root**eighths
    assert ma.best_arms(n, root**8, eighths / 8) == m


@given(st.integers(1, 62), st.integers(0, 62), st.sampled_from([2**40, 10**9, 3**20]))
def test_a_power_of_two_is_not_rounded_up(power: int, half: int, n: int) -> None:
    # T^(j/k) = 2^j for T = 2^k, but not in floating point: 1024^0.7 is not 128
    half = min(half, power)
    assert ma.best_arms(n, 2**power, half / power) == max(1, -(-n // 2 ** (half + 1)))


def test_arrays() -> None:
    # 200 = 2 * 10000^(1/2), 20 = 2 * 10000^(1/4); one pull
    assert ma.hardness(np.array([[200], [20]]), 1, np.array([10_000, 1])).tolist() == [
        [pytest.approx(0.5), math.inf],
        [pytest.approx(0.25), math.inf],
    ]
    counts = ma.best_arms(20_000, 50_000, np.array([0.1, 0.4]))
    assert counts.tolist() == [3390, 132]
    assert counts.dtype.kind == "i"
    # 8/10 * 7/9 * 6/8 = 7/15; all ten drawn; none drawn
    misses = ma.miss_probability(10, 2, np.array([3, 10, 0]))
    assert misses == pytest.approx([7 / 15, 0.0, 1.0])
    bounds = ma.miss_probability(np.array([10, 20]), 2, 5, exact=False)
    assert bounds == pytest.approx([math.exp(-1), math.exp(-0.5)])
    hundred: Any = np.int64(100)  # a number, not an array
    assert type(ma.hardness(200, 1, hundred)) is float
    assert type(ma.best_arms(200, hundred, 0.5)) is int
    with pytest.raises(ma.ParameterError, match=r"`m` must be .* <= 5, got 6"):
        ma.hardness(5, np.array([1, 6]), 10)


@pytest.mark.parametrize("n", [10**12, 10**13, 10**15, 2**50, 10**15 + 2])
def test_large_numbers_of_arms_keep_their_digits(n: int) -> None:
    assert ma.best_arms(n, 1, 0.0) == n // 2
    assert ma.best_arms(n + 1, 1, 0.0) == n // 2 + 1


@given(st.integers(1, 10**6), st.integers(2, 10**6), st.floats(0, 1))
def test_planted_problems_are_not_harder_than_given(n: int, horizon: int, alpha: float) -> None:
    m = ma.best_arms(n, horizon, alpha)
    assert ma.hardness(n, m, horizon) <= alpha + 1e-9
    assert m == 1 or ma.hardness(n, m - 1, horizon) > alpha - 1e-9


@pytest.mark.parametrize(("n", "m", "k"), [(6, 2, 3), (7, 1, 7), (5, 5, 0), (8, 3, 5), (8, 3, 6)])
def test_miss_probability_by_counting(n: int, m: int, k: int) -> None:
    sets = list(combinations(range(n), k))
    missed = Fraction(sum(1 for s in sets if all(arm >= m for arm in s)), len(sets))
    assert ma.miss_probability(n, m, k) == pytest.approx(float(missed), abs=1e-12)
    assert ma.miss_probability(n, m, k, exact=False) >= float(missed) - 1e-12


def test_miss_probability_of_large_numbers() -> None:
    n, m, k = 10**9, 10**6, 10**3
    # log C(n-m, k)/C(n, k) = sum log(1 - m/(n - j)), j < k: here -1.000500... by hand
    assert math.log(ma.miss_probability(n, m, k)) == pytest.approx(-1.0005003, abs=1e-6)


def test_problems() -> None:
    assert ma.Problem(n=200, m=1, horizon=10_000).alpha == pytest.approx(0.5)
    assert not ma.Problem(n=10**9, m=1, horizon=1000).within_reach
    assert ma.Problem.infinite(probability=0.005, horizon=10_000).alpha == pytest.approx(0.5)
    near = ma.Problem.near_optimal([0.5, 0.491, 0.489], horizon=10_000)
    assert (near.n, near.m) == (3, 2)
    assert ma.Problem.near_optimal([0.5, 0.4], horizon=100, epsilon=0.1).m == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ma.hardness(-1, 1, 10), r"`n` must be an integer >= 1 .* got -1"),
        (lambda: ma.hardness(5, 6, 10), r"`m` must be an integer >= 1 and <= 5, got 6"),
        (lambda: ma.miss_probability(5, 1, 6), r"`k` must be an integer >= 0 and <= 5, got 6"),
        (lambda: ma.Problem(n=math.inf, m=math.inf, horizon=5), r"Problem\.infinite"),
        (lambda: ma.Problem.infinite(probability=0, horizon=5), r"`probability` must be .* got 0"),
        (lambda: ma.Problem.near_optimal([], horizon=5), r"at least one mean"),
        (lambda: ma.hardness(9, MASKED, 9), "`m` must have no masked values, got 1 of 2"),
        (lambda: ma.miss_probability(9, 2, MASKED), "`k` must have no masked values"),
        (lambda: ma.theory.minimax_rate(MASKED), "`alpha` must have no masked values"),
        (lambda: pareto_position(([0.0, 1.0], MASKED)), "`rate` must have no masked values"),
        (lambda: ma.Problem(n=10, m=50, horizon=5, probability=0.1), r"`probability` must be"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        call()
