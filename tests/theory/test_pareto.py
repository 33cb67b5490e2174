"""Where rates stand: on the frontier, dominated (by which beta, and where), or impossible."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.errors import ParameterError
from manyarms.theory import (
    minimax_rate,
    moss_plus_plus_rate,
    pareto_position,
    quantile_rate,
    subset_rate,
)
from manyarms.theory.pareto import Span

GRID = np.arange(10_001) / 10_000
KINK = 0.674 / 2.89  # where Quantile's rate leaves 0.674


@given(st.integers(5000, 9999).map(lambda k: k / 10_000))
def test_moss_plus_plus_is_on_the_frontier(beta: float) -> None:
    position = pareto_position(partial(moss_plus_plus_rate, beta=beta))
    assert position.verdict == "on the frontier"
    assert position.betas == (beta, beta)
    assert (position.alphas, position.margin) == ((), 0.0)
    assert str(position) == f"on the frontier: the rate of MOSS++ with beta = {beta:g}"


def test_quantile_is_dominated() -> None:
    # 2.89 alpha passes 0.674 at alpha = 0.233218, and beta >= 1 + alpha - 0.674 there gives
    # 0.559218; beyond, 1 - 1.89 alpha falls. beta <= 0.674 is needed at hardness 0.
    grid = np.union1d(GRID, [KINK])
    exact = pareto_position((grid, quantile_rate(grid)))
    assert exact.verdict == "dominated"
    assert exact.betas == pytest.approx((0.5592179931, 0.674), abs=1e-9)
    # with beta = 0.674 the rate is below 1 until 0.674, where Quantile's is 1
    assert exact.alphas == (Span(0.0, 0.6739),)
    # the most is gained at 0.3461, the first point at which Quantile has 1 (2.89 alpha > 1): there
    # the minimax rate 0.67305 is attained, and 1 - 0.67305 = 0.32695
    assert exact.margin == pytest.approx(0.32695, abs=1e-6)
    assert str(pareto_position(quantile_rate)) == (
        "dominated by MOSS++ with beta in [0.5592, 0.674], which is better for hardness in "
        "[0, 0.6739], by up to 0.3269"
    )


@given(st.integers(0, 999).map(lambda k: k / 1000))
def test_the_subset_method_is_dominated_by_one_beta(exponent: float) -> None:
    # alpha = b needs beta >= 1 + b - (1 + b)/2 = (1 + b)/2, and alpha = 0 no more than that
    position = pareto_position(partial(subset_rate, exponent=exponent))
    middle = (1 + exponent) / 2
    assert position.verdict == "dominated"
    assert position.betas is not None
    assert position.betas == pytest.approx((middle, middle), abs=1e-12)
    # better from just after b to just before (1 + b)/2, on the grid of 1/10000
    (span,) = position.alphas
    assert span == pytest.approx((exponent + 1e-4, middle - 1e-4), abs=1e-9)
    assert position.margin == pytest.approx(1 - (middle + 1e-4 + exponent - (2 * middle - 1)))


@given(st.floats(0.5, 1.0), st.integers(0, 1000).map(lambda k: k / 1000))
def test_exactly_the_betas_in_the_interval_dominate(beta: float, exponent: float) -> None:
    mixed = np.minimum(1.0, 0.05 + np.maximum(quantile_rate(GRID), subset_rate(GRID, exponent=0.4)))
    for rates in (quantile_rate(GRID), subset_rate(GRID, exponent=exponent), mixed):
        position = pareto_position((GRID, rates))
        assert position.betas is not None
        low, high = position.betas
        if min(abs(beta - low), abs(beta - high)) > 1e-6:
            nowhere_worse = bool((moss_plus_plus_rate(GRID, beta=beta) <= rates + 1e-9).all())
            assert nowhere_worse == (low < beta < high)


def test_the_minimax_rate_is_impossible_without_knowing_the_hardness() -> None:
    position = pareto_position(minimax_rate)
    assert position.verdict == "impossible"
    assert position.betas is None
    # 1/2 + alpha against (1 + alpha)/2: most at 1/2, 1 against 0.75
    assert position.alphas == (Span(0.0001, 0.9999),)
    assert position.margin == 0.25
    assert str(position).startswith("impossible unless alpha or μ* is known: below the")
    assert str(pareto_position(lambda alpha: 0.6 + 0 * alpha)).startswith("impossible: below the")


def test_tolerance() -> None:
    # a straight line instead of a kink is off by a hair
    rates = moss_plus_plus_rate(GRID, beta=0.6) - 1e-4
    rates[-1] = 1.0
    assert pareto_position((GRID, rates)).verdict == "impossible"
    assert pareto_position((GRID, rates), tolerance=1e-3).verdict == "on the frontier"
    nearly = pareto_position(([0.0, 1.0], [0.5 - 1e-12, 1.0]))
    assert nearly.verdict == "on the frontier"
    assert nearly.betas == (0.5, 0.5)
    # a rate that is 1/2 at 0 but for rounding, and too large elsewhere
    above = pareto_position(([0.0, 0.1, 0.5], [0.5 - 1e-12, 0.9, 1.0]))
    assert (above.verdict, above.betas) == ("dominated", (0.5, 0.5))
    assert "MOSS++ with beta = 0.5, which" in str(above)
    assert above.margin == pytest.approx(0.3)  # 0.9 - (1 + 0.1 - 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pareto_position(([0.1, 1.0], [0.5, 1.0])), r"`alphas` must increase from 0, got"),
        (lambda: pareto_position(0.5), r"must be a function of hardness, or a pair .* got 0.5"),  # type: ignore[arg-type]
        (lambda: pareto_position(([0.0, 1.1], [0.5, 1.0])), r"`alphas` must contain .* got 1.1"),
        (lambda: pareto_position(([0.0, 1.0], [0.5])), r"one rate for each .* \(2,\) and \(1,\)"),
        (lambda: pareto_position(lambda alpha: 0.5), r"one rate for each hardness"),  # type: ignore[arg-type, return-value]
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
