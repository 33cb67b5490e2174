"""Rates against hand-computed numbers, and their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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


BY_HAND: dict[str, tuple[Callable[[float], float], dict[float, float]]] = {
    # 1 + alpha - 0.5, cut at 1
    "moss++, 0.5": (partial(moss_plus_plus_rate, beta=0.5), {0: 0.5, 0.25: 0.75, 0.5: 1, 0.9: 1}),
    # max(0.7, 0.3 + alpha); the kink, at 0.4, is where it meets the minimax rate
    "moss++, 0.7": (partial(moss_plus_plus_rate, beta=0.7), {0.1: 0.7, 0.4: 0.7, 0.6: 0.9}),
    "moss++, 0.75": (partial(moss_plus_plus_rate, beta=0.75), {1: 1}),
    "moss++, 1": (partial(moss_plus_plus_rate, beta=1.0), {0: 1}),
    "minimax": (minimax_rate, {0: 0.5, 0.25: 0.625, 0.8: 0.9, 1: 1}),
    "subset, 0": (partial(subset_rate, exponent=0.0), {0: 0.5}),
    "subset, 0.4": (partial(subset_rate, exponent=0.4), {0: 0.7, 0.4: 0.7, 0.41: 1}),
    "subset, 1": (partial(subset_rate, exponent=1.0), {1: 1}),
    # 2.89 alpha passes 0.674 at alpha = 0.2332, and 1 at 0.3460
    "quantile": (quantile_rate, {0: 0.674, 0.23: 0.674, 0.25: 0.7225, 0.34: 0.9826, 0.35: 1}),
    "frontier, 0.5": (partial(frontier_rate, rate_at_zero=0.5), {0: 0.5, 0.25: 0.75, 0.75: 1}),
    # 1 + 0.25 - 0.75 is less than 0.75
    "frontier, 0.75": (partial(frontier_rate, rate_at_zero=0.75), {0.25: 0.75, 0.625: 0.875}),
    "frontier, 1": (partial(frontier_rate, rate_at_zero=1.0), {0: 1, 1: 1}),
    # |2 beta - alpha - 1| / 2 below beta, (1 - alpha) / 2 from there on
    "cost, 0.5": (
        partial(adaptation_cost, beta=0.5),
        {0: 0, 0.25: 0.125, 0.5: 0.25, 0.75: 0.125, 1: 0},
    ),
    "cost, 0.75": (partial(adaptation_cost, beta=0.75), {0: 0.25, 0.5: 0, 0.625: 0.0625}),
    "cost, 1": (partial(adaptation_cost, beta=1.0), {0: 0.5, 1: 0}),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_numbers_by_hand(name: str) -> None:
    rate, known = BY_HAND[name]
    for alpha, expected in known.items():
        assert rate(alpha) == pytest.approx(expected, abs=1e-12)


@given(st.floats(0.5, 1.0))
def test_the_cost_of_adaptation_is_what_is_above_the_minimax_rate(beta: float) -> None:
    above = moss_plus_plus_rate(GRID, beta=beta) - minimax_rate(GRID)
    assert adaptation_cost(GRID, beta=beta) == pytest.approx(above, abs=1e-12)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimax_rate(1.5), r"`alpha` must be .* got 1.5. Above 1 no policy can"),
        (lambda: quantile_rate(np.array([0.5, math.nan])), r"`alpha` must contain .* got nan"),
        (lambda: moss_plus_plus_rate(0.5, beta=0.4), r"`beta` must be .*>= 0.5 .* got 0.4"),
        (lambda: frontier_rate(0.5, 0.4), r"`rate_at_zero` must be .*>= 0.5 .* got 0.4"),
        (lambda: subset_rate(0.5, exponent=-1), r"`exponent` must be .* got -1"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
