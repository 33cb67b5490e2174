"""Schedules: exact arithmetic, and the identities that the paper's proofs use."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manyarms.errors import ParameterError
from manyarms.policies.moss_oracle import subset_size
from manyarms.policies.moss_plus_plus import iteration_arms, iteration_pulls, iterations
from manyarms.policies.parallel import epoch_length, subroutines
from manyarms.policies.quantile import quantile_arms
from manyarms.theory import moss_plus_plus_schedule

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


@given(st.integers(2, 2**40), BETAS, st.integers(1, 10**9))
def test_iterations_reach_the_horizon(horizon: int, beta: Fraction, n: int) -> None:
    # T^beta >= sqrt(T), so 2^(2p) >= T, and 2 (2^(2p) - 2^p) >= 2^(2p) for p >= 1
    p = iterations(horizon, float(beta))
    assert 2 ** (2 * p) >= horizon
    lengths = [iteration_pulls(p, i, horizon) for i in range(1, p + 1)]
    assert sum(lengths) >= horizon
    for i, length in enumerate(lengths, 1):
        real = iteration_arms(p, i, n)
        assert real == min(2 ** (p + 2 - i), n)
        assert length == min(2 ** (p + i), horizon)
        # the proof needs |S_i| <= Delta T_i unless the horizon cuts the iteration short
        assert real + i - 1 <= length or length == horizon


@given(st.integers(1, 28), st.integers(1, 28))
def test_iterations_trade_arms_for_pulls(p: int, i: int) -> None:
    assume(i <= p)
    endless = 1 << 60
    arms, pulls = iteration_arms(p, i, endless), iteration_pulls(p, i, endless)
    assert arms * pulls == 2 ** (2 * p + 2)  # so every iteration has the same sqrt(K_i Delta T_i)
    assert arms >= iteration_arms(p, p, endless) == 4
    assert pulls <= iteration_pulls(p, p, endless) == 2 ** (2 * p)
    so_far = sum(iteration_pulls(p, j, endless) for j in range(1, i + 1))
    assert so_far == 2 * (2 ** (p + i) - 2**p)  # of all, the paper prints 2 (2^(2p) - 1), a slip
    assert so_far < 2 * pulls  # what came before is no longer than the iteration itself
    # mixture-arms included: |S_i| <= Delta T_i, and |S_i| Delta T_i <= (p + 3) 2^(2p)
    members = arms + i - 1
    assert members <= pulls
    assert members * pulls <= (p + 3) * 2 ** (2 * p)


@given(st.integers(2, 2**30))
def test_beta_1_is_one_iteration(horizon: int) -> None:
    p = iterations(horizon, 1.0)
    assert iteration_pulls(p, 1, horizon) == horizon
    assert iteration_arms(p, 1, 1 << 60) >= 2 * horizon


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
    # so there are no more epochs than an epoch has pulls, and a cut one costs sqrt(T) + 1 at most
    root = epoch_length(horizon)
    assert (root - 1) ** 2 < horizon <= root**2


def test_the_schedule_as_a_table() -> None:
    # sqrt(1000) = 31.6 <= 2^5: K_i = 64, 32, 16, 8, 4 of 40 arms; 64, 128, …, the last 1024 cut
    schedule = moss_plus_plus_schedule(1000, beta=0.5, n=40)
    assert schedule.iterations == 5
    assert schedule.arms.tolist() == [40, 32, 16, 8, 4]
    assert schedule.mixtures.tolist() == [0, 1, 2, 3, 4]
    assert schedule.pulls.tolist() == [64, 128, 256, 512, 1000]
    assert moss_plus_plus_schedule(1, beta=0.5).arms.tolist() == []
    huge = moss_plus_plus_schedule(2**40, beta=1.0)
    assert (huge.arms[0], huge.pulls[0], huge.arms[-1]) == (2**41, 2**40, 4)


@pytest.mark.parametrize(
    ("horizon", "beta", "n", "message"),
    [
        (0, 0.5, 10, "`horizon` must be an integer >= 1"),
        (10, 0.4, 10, "`beta` must be a number >= 0.5 and <= 1, got 0.4"),
        (10, 0.5, 0, "`n` must be an integer >= 1"),
    ],
)
def test_schedules_that_are_none(horizon: int, beta: float, n: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        moss_plus_plus_schedule(horizon, beta=beta, n=n)
