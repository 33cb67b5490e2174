"""Rates against hand-computed numbers, and who beats whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.errors import ParameterError
from manyarms.theory.rates import (
    adaptation_cost,
    frontier_rate,
    minimax_rate,
    moss_plus_plus_rate,
    quantile_rate,
    subset_rate,
)

GRID = np.linspace(0.0, 1.0, 1001)


@pytest.mark.parametrize(
    ("alpha", "beta", "rate"),
    [
        (0.0, 0.5, 0.5),
        (0.25, 0.5, 0.75),
        (0.5, 0.5, 1.0),
        (0.9, 0.5, 1.0),  # 1.4, cut at 1
        (0.1, 0.7, 0.7),  # max(0.7, 0.4)
        (0.4, 0.7, 0.7),  # the kink, where it meets the minimax rate
        (0.6, 0.7, 0.9),
        (0.0, 1.0, 1.0),
        (1, 0.75, 1.0),
    ],
)
def test_moss_plus_plus(alpha: float, beta: float, rate: float) -> None:
    assert moss_plus_plus_rate(alpha, beta=beta) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(("alpha", "rate"), [(0, 0.5), (0.25, 0.625), (0.8, 0.9), (1, 1.0)])
def test_minimax(alpha: float, rate: float) -> None:
    assert minimax_rate(alpha) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("alpha", "exponent", "rate"),
    [(0.0, 0.4, 0.7), (0.4, 0.4, 0.7), (0.41, 0.4, 1.0), (0.0, 0.0, 0.5), (1.0, 1.0, 1.0)],
)
def test_subset(alpha: float, exponent: float, rate: float) -> None:
    assert subset_rate(alpha, exponent=exponent) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("alpha", "rate"),
    [(0.0, 0.674), (0.23, 0.674), (0.25, 0.7225), (0.3, 0.867), (0.34, 0.9826), (0.35, 1.0)],
)
def test_quantile(alpha: float, rate: float) -> None:
    # 2.89 alpha passes 0.674 at alpha = 0.2332, and 1 at 0.3460
    assert quantile_rate(alpha) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "rate_at_zero", "rate"),
    [
        (0.0, 0.5, 0.5),
        (0.25, 0.5, 0.75),
        (0.75, 0.5, 1.0),  # 1.25, cut at 1
        (0.25, 0.75, 0.75),  # 1 + 0.25 - 0.75 is less
        (0.625, 0.75, 0.875),
        (0.0, 1.0, 1.0),
        (1.0, 1.0, 1.0),
    ],
)
def test_frontier(alpha: float, rate_at_zero: float, rate: float) -> None:
    assert frontier_rate(alpha, rate_at_zero) == rate


@pytest.mark.parametrize(
    ("alpha", "beta", "cost"),
    [
        (0.0, 0.5, 0.0),  # 2 * 0.5 - 0 - 1
        (0.25, 0.5, 0.125),  # |1 - 1.25| / 2
        (0.5, 0.5, 0.25),  # beta = alpha: (1 - 0.5) / 2
        (0.75, 0.5, 0.125),
        (1.0, 0.5, 0.0),
        (0.0, 0.75, 0.25),  # 0.5 / 2
        (0.5, 0.75, 0.0),
        (0.625, 0.75, 0.0625),
        (0.0, 1.0, 0.5),
        (1.0, 1.0, 0.0),
    ],
)
def test_adaptation_cost(alpha: float, beta: float, cost: float) -> None:
    assert adaptation_cost(alpha, beta=beta) == cost


@given(st.floats(0.5, 1.0))
def test_the_cost_of_adaptation_is_what_is_above_the_minimax_rate(beta: float) -> None:
    above = moss_plus_plus_rate(GRID, beta=beta) - minimax_rate(GRID)
    assert adaptation_cost(GRID, beta=beta) == pytest.approx(above, abs=1e-12)


@pytest.mark.parametrize("beta", [0.5, 0.55, 0.6, 0.75, 0.9, 1.0])
def test_moss_plus_plus_meets_the_frontier_condition_with_equality(beta: float) -> None:
    # the condition written out once more, with θ(0) measured
    grid = np.linspace(0.0, 1.0, 100_001)
    rates = moss_plus_plus_rate(grid, beta=beta)
    least = np.clip(np.where(grid > 2 * rates[0] - 1, 1 + grid - rates[0], rates[0]), None, 1.0)
    assert np.abs(rates - least).max() <= 1e-15
    assert np.array_equal(frontier_rate(grid, float(rates[0])), rates)


@given(st.floats(0.0, 1.0))
def test_arrays_and_numbers_agree(alpha: float) -> None:
    rates: list[Any] = [
        lambda a: moss_plus_plus_rate(a, beta=0.6),
        minimax_rate,
        lambda a: subset_rate(a, exponent=0.3),
        quantile_rate,
        lambda a: frontier_rate(a, 0.6),
        lambda a: adaptation_cost(a, beta=0.6),
    ]
    for rate in rates:
        both = rate(np.array([[alpha], [0.5]]))
        assert isinstance(both, np.ndarray)
        assert both.shape == (2, 1)
        number = rate(alpha)
        assert type(number) is float
        assert both[0, 0] == number
        assert type(rate(np.float64(alpha))) is float


@given(st.floats(0.5, 1.0))
def test_moss_plus_plus_touches_the_minimax_rate_once(beta: float) -> None:
    gap = moss_plus_plus_rate(GRID, beta=beta) - minimax_rate(GRID)
    assert gap.min() >= -1e-12
    assert moss_plus_plus_rate(2 * beta - 1, beta=beta) == pytest.approx(
        minimax_rate(2 * beta - 1), abs=1e-12
    )


@given(st.floats(0.0, 1.0))
def test_the_subset_method_is_dominated(exponent: float) -> None:
    ours = moss_plus_plus_rate(GRID, beta=(1 + exponent) / 2)
    assert (ours <= subset_rate(GRID, exponent=exponent) + 1e-12).all()


@pytest.mark.parametrize(
    ("beta", "dominates"),
    [(0.5592, True), (0.6, True), (0.674, True), (0.55, False), (0.68, False)],
)
def test_quantile_is_dominated_for_the_betas_of_the_paper(beta: float, dominates: bool) -> None:
    # 1 + alpha - beta <= 0.674 at alpha = 0.2332 gives beta >= 0.5592; beta <= 0.674 is needed at 0
    worse = moss_plus_plus_rate(GRID, beta=beta) > quantile_rate(GRID) + 1e-4
    assert worse.any() != dominates


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimax_rate(1.5), r"`alpha` must be .* got 1.5. Above 1 no policy can"),
        (lambda: minimax_rate(math.nan), r"`alpha` must be .* got nan"),
        (lambda: minimax_rate("0.5"), r"`alpha` must be .* got '0.5'"),  # type: ignore[type-var]
        (lambda: quantile_rate(np.array([0.5, -0.1])), r"contain numbers >= 0 and <= 1, got -0.1"),
        (lambda: quantile_rate(np.array([0.5, math.nan])), r"`alpha` must contain .* got nan"),
        (lambda: quantile_rate(np.array(["a"])), r"`alpha` must contain numbers, got <U1 values"),
        (lambda: moss_plus_plus_rate(0.5, beta=0.4), r"`beta` must be .*>= 0.5 .* got 0.4"),
        (lambda: moss_plus_plus_rate(0.5, beta=1.1), r"`beta` must be .*<= 1, got 1.1"),
        (lambda: adaptation_cost(0.5, beta=0.4), r"`beta` must be .*>= 0.5 .* got 0.4"),
        (lambda: frontier_rate(0.5, 0.4), r"`rate_at_zero` must be .*>= 0.5 .* got 0.4"),
        (lambda: subset_rate(0.5, exponent=-1), r"`exponent` must be .* got -1"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
