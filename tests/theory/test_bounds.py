"""Bounds against hand-computed numbers, their conditions, and relations of their constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.errors import ParameterError
from manyarms.theory import (
    anytime_moss_plus_plus_bound,
    informative_from,
    learning_error_bound,
    lower_bound,
    minimax_order,
    moss_bound,
    moss_plus_plus_bound,
    parallel_bound,
    share_of_horizon,
    subroutine_bound,
)

DIGITS = 1e-8


@pytest.mark.parametrize(
    ("bound", "by_hand"),
    [
        (moss_bound(4, 10_000), 4100.0),  # 20.5 * sqrt(4 * 10000) = 20.5 * 200
        (moss_bound(4, 10_000, sum_of_gaps=0.0), 3900.0),  # 39/2 * 200
        (moss_bound(4, 10_000, sum_of_gaps=2.5), 3902.5),
        (moss_bound(4, 10_000, sigma=1.0), 8000.0),  # (39 + 1) * 200
        (moss_bound(4, 10_000, sigma=0.1, sum_of_gaps=3.0), 783.0),  # 3.9 * 200 + 3
        (moss_bound(4, 10_000, exploration=0.5), 3600.0),  # 18 * 200
        (moss_bound(1, 1), 20.5),
        (moss_bound(1, 1, sum_of_gaps=0), 19.5),
        (moss_bound(49, 49, exploration=0.5), 18 * 49.0),
        # 19 * sqrt(e) = 31.3257041433; log 10000 = 9.210340372; their product 288.520397553
        (subroutine_bound(0, 10_000), 28852.0397553),  # times 10000^(1/2)
        (subroutine_bound(0.5, 10_000), 288520.397553),  # times 10000^(3/4)
        (subroutine_bound(1, 10_000), 2885203.97553),
        (subroutine_bound(0, 2), 30.707276588),  # 31.3257041433 * 0.69314718056 * 1.41421356237
        # q = ceil(log 100) = ceil(4.605) = 5. The subroutine's bound is half of 288.520397553,
        # times 100^(1/2): 1442.601987765. Luck: 4 sqrt(100 log(2 * 1000 * 5)) = 4 sqrt(921.0340372)
        # = 121.394170348. 5 * (1442.601987765 + 121.394170348) + 10
        (parallel_bound(0, 100), 7829.980790565),
        (parallel_bound(1, 100), 72747.070240),  # 5 * (14426.01987765 + 121.394170348) + 10
        (lower_bound(0.5, 2**20, budget=2**10), 2.0**10),  # -10 + 30 - 10
        (lower_bound(0.5, 2**20, budget=2**19), 2.0),
        (lower_bound(1.0, 2**20, budget=2**20), 2.0**10),  # -10 + 40 - 20
        (lower_bound(0.1, 2**20, budget=32), 2.0**7),  # T^0.1 = 4, K = 3 >= max(1, 2)
        (lower_bound(1.0, 3, budget=3), 3 / 1024),  # K = 2 is enough
        (lower_bound(0.5, 9, budget=3), 9 / 1024),  # 9^1.5 / 3
        (minimax_order(1010, 10, 10_000), 1000.0),  # sqrt(10^4 * 100)
        (minimax_order(2, 1, 1), 1.0),
        (minimax_order(7, 7, 10**6), 0.0),
    ],
)
def test_numbers_by_hand(bound: float, by_hand: float) -> None:
    assert bound == pytest.approx(by_hand, rel=DIGITS)


@pytest.mark.parametrize(
    ("alpha", "beta", "horizon", "bound"),
    [
        # (log2 2^16)^(5/2) = 4^5 = 1024, and 160 * 1024 = 163840
        (0.25, 0.5, 2**16, 163840 * 2**12),
        (0.25, 0.75, 2**16, 163840 * 2**12),  # max(3/4, 1/2)
        (1.0, 1.0, 2**16, 163840 * 2**16),
        (0.0, 0.5, 2**4, 160 * 32 * 4),  # 4^(5/2) = 32
        (0.0, 1.0, 2, 320),
    ],
)
def test_moss_plus_plus(alpha: float, beta: float, horizon: int, bound: float) -> None:
    assert moss_plus_plus_bound(alpha, horizon, beta=beta) == pytest.approx(bound, rel=DIGITS)
    anytime = anytime_moss_plus_plus_bound(alpha, horizon, beta=beta)
    assert anytime == pytest.approx(bound / 160 * 924, rel=DIGITS)


def test_learning_error() -> None:
    # T = 2^16, beta = 1/2: p = 8, K_7 = 2^(8 + 2 - 7) = 8, six mixture-arms, 2^15 pulls:
    # sqrt(14 * 32768) = sqrt(458752) = 677.3123356
    horizon = 2**16
    assert learning_error_bound(horizon, 7, beta=0.5, n=1000) == pytest.approx(20.5 * 677.3123356)
    half = learning_error_bound(horizon, 7, beta=0.5, n=1000, exploration=0.5)
    assert half == pytest.approx(18 * 677.3123356)
    # five arms only: sqrt(11 * 32768) = sqrt(360448) = 600.3732173
    assert learning_error_bound(horizon, 7, beta=0.5, n=5) == pytest.approx(20.5 * 600.3732173)
    # the first iteration has as many arms as pulls: sqrt(512^2)
    assert learning_error_bound(horizon, 1, beta=0.5, n=1000) == 20.5 * 512
    # more arms than pulls, 256 for 100: more than 100 pulls can lose, and so true
    many = learning_error_bound(100, 1, beta=1.0, n=1000)
    assert many == pytest.approx(20.5 * 160)
    assert many > 100
    with pytest.raises(ParameterError, match=r"`exploration` must be 1, or 1/2"):
        learning_error_bound(100, 1, beta=1.0, n=1000, exploration=0.7)


@given(st.integers(3, 10**6), st.floats(0.01, 1.0))
def test_numbers_and_arrays_agree(horizon: int, alpha: float) -> None:
    calls: list[Callable[[Any, Any], Any]] = [
        moss_bound,
        subroutine_bound,
        lambda a, t: moss_plus_plus_bound(a, t, beta=0.6),
        lambda a, t: anytime_moss_plus_plus_bound(a, t, beta=0.6),
        parallel_bound,
        lambda a, t: lower_bound(a, t, budget=10**7),
        lambda k, t: minimax_order(k, 1, t),
        share_of_horizon,
    ]
    for call in calls:
        first: Any = 2 if call in (calls[0], calls[6]) else alpha
        if call is calls[5] and horizon**alpha < 3:
            continue
        number = call(first, horizon)
        assert type(number) is float
        assert call(np.array([first]), horizon) == pytest.approx([number], rel=1e-14)
        many = call(first, np.array([[horizon], [10**6]]))
        assert many.shape == (2, 1)
        assert many[0, 0] == pytest.approx(number, rel=1e-14)  # array loops round differently


def test_the_horizon_from_which_bounds_are_informative() -> None:
    # at T = 2^41: 160 * 41^2.5 = 160 * 1681 * 6.403124 = 1.722e6 > 2^20.5 = 1.483e6;
    # at T = 2^42: 160 * 42^2.5 = 160 * 1764 * 6.480741 = 1.829e6 < 2^21 = 2.097e6
    first = informative_from(lambda horizon: moss_plus_plus_bound(0.0, horizon, beta=0.5))
    assert first is not None
    assert 2**41 < first < 2**42
    at_first = share_of_horizon(moss_plus_plus_bound(0.0, first, beta=0.5), first)
    just_before = share_of_horizon(moss_plus_plus_bound(0.0, first - 1, beta=0.5), first - 1)
    assert at_first < 1.0 <= just_before
    # 20.5 sqrt(10 T) < T from T > 4202.5 on; with the sum of gaps 19.5 sqrt(10 T) + 5: at 3812
    # 19.5 * 195.243 + 5 = 3812.2, at 3813 19.5 * 195.269 + 5 = 3812.7
    assert informative_from(lambda horizon: moss_bound(10, max(horizon, 10))) == 4203
    sharper = informative_from(lambda t: moss_bound(10, max(t, 10), sum_of_gaps=5))
    assert sharper == 3813
    assert informative_from(lambda horizon: float(horizon)) is None
    assert informative_from(lambda horizon: 0.0) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: moss_bound(10, 4),
            r"`horizon` must be >= arms = 10 for this bound, got 4, 6 too few",
        ),
        (lambda: moss_bound(2, 4, exploration=2), r"`exploration` must be 1, or 1/2 .* got 2"),
        (
            lambda: subroutine_bound(0.5, 1),
            r"`horizon` must be an integer >= 2, got 1. One pull may",
        ),
        (
            lambda: learning_error_bound(2**16, 9, beta=0.5, n=10),
            r"`iteration` must be .* <= 8, got 9. MOSS\+\+ has p = 8 of them",
        ),
        (lambda: lower_bound(0.5, 2**20, budget=1000), r"`budget` must be >= T\^alpha = 1024.*24"),
        (
            lambda: lower_bound(0.5, 2**20, budget=2000, alpha_prime=0.75),
            r"`alpha_prime` must be < alpha = 0.5, got 0.75.* 0.25 ",
        ),
        (lambda: lower_bound(0.1, 100, budget=50), r"⌊T\^alpha⌋ - 1 >= max.* 2 too few"),
        (lambda: minimax_order(5, 7, 10), r"`m` must be <= n, the number of arms, got 2 too many"),
        (lambda: informative_from(lambda t: 0.0, at_most=1), r"`at_most` must be .* got 1"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
