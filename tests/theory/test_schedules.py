"""Schedules: exact arithmetic, and the identities that the paper's proofs use."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from manyarms.theory.schedules import (
    epoch_length,
    iteration_arms,
    iteration_pulls,
    iterations,
    quantile_arms,
    subroutines,
    subset_size,
)

HORIZONS = st.one_of(
    st.integers(1, 2**22),
    st.integers(0, 22).map(lambda k: 2**k),
    st.integers(1, 22).map(lambda k: 2**k + 1),
    st.integers(1, 22).map(lambda k: 2**k - 1),
)
BETAS = st.integers(50, 100).map(lambda hundredths: Fraction(hundredths, 100))


def _exact_iterations(horizon: int, beta: Fraction) -> int:
    """The smallest p with 2^p >= T^beta, that is 2^(p d) >= T^c for beta = c/d."""
    p = 0
    while 2 ** (p * beta.denominator) < horizon**beta.numerator:
        p += 1
    return p


@given(HORIZONS, BETAS)
def test_iterations_are_exact(horizon: int, beta: Fraction) -> None:
    assert iterations(horizon, float(beta)) == _exact_iterations(horizon, beta)


@given(st.integers(2, 2**22), BETAS, st.integers(1, 10**9))
def test_iterations_reach_the_horizon(horizon: int, beta: Fraction, n: int) -> None:
    p = iterations(horizon, float(beta))
    lengths = [iteration_pulls(p, i, horizon) for i in range(1, p + 1)]
    assert sum(lengths) >= horizon
    for i, length in enumerate(lengths, 1):
        real = iteration_arms(p, i, n)
        assert real == min(2 ** (p + 2 - i), n)
        assert length == min(2 ** (p + i), horizon)
        # the proof needs |S_i| <= Delta T_i unless the horizon cuts the iteration short
        assert real + i - 1 <= length or length == horizon


@given(st.integers(1, 10))
def test_uncut_lengths_add_up_as_in_the_proof(p: int) -> None:
    endless = 2**60
    total = sum(iteration_pulls(p, i, endless) for i in range(1, p + 1))
    assert total == 2 * (2 ** (2 * p) - 2**p)  # the paper prints 2 (2^(2p) - 1), a slip


@given(st.integers(1, 10**7), st.integers(0, 100), st.integers(1, 10**9))
def test_subsets(horizon: int, hundredths: int, n: int) -> None:
    alpha = hundredths / 100
    wanted = math.ceil(2 * horizon**alpha * math.log(math.sqrt(horizon)) * (1 - 1e-12))
    size = subset_size(horizon, alpha, 2.0, n)
    assert abs(size - max(1, min(wanted, horizon, n))) <= 1  # the guard may shift a tie
    assert 1 <= size <= min(horizon, n)


def test_numbers_of_the_papers_setting() -> None:
    assert iterations(50_000, 0.5) == 8
    assert subroutines(50_000) == 11
    assert epoch_length(50_000) == 224
    # 2^(0.347 l): 1.27, 1.62, 2.06, 2.62, 3.33 by hand
    assert [quantile_arms(k, 0.347, 100) for k in range(1, 6)] == [2, 2, 3, 3, 4]
    assert quantile_arms(40, 0.347, 100) == 100


@given(st.integers(1, 2**45))
def test_epochs_are_rounded_up_roots(horizon: int) -> None:
    root = epoch_length(horizon)
    assert (root - 1) ** 2 < horizon <= root**2
