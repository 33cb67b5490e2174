"""The lower bound's family: numbers by hand, conditions, and the identities of the proof."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manyarms.errors import ParameterError
from manyarms.theory.hardness import hardness
from manyarms.theory.lower_bound_family import LowerBoundFamily


def test_by_hand() -> None:
    # T^0.5 = 100, T^(0.5 - 0.25) = 10: K = 99, m_0 = 3 * 10, n = 30 + 99 * 3
    family = LowerBoundFamily(horizon=10_000, alpha=0.5, alpha_prime=0.25, m=3, budget=200)
    assert (family.hidden_groups, family.open_arms, family.n_arms) == (99, 30, 327)
    assert family.gap == pytest.approx(99 / 32 / 200)
    assert family.settled == pytest.approx(77.34375)  # 10^4 * 0.01546875 / 2
    assert family.floor == pytest.approx(19.3359375)  # 10^4 * 99 / 200 / 256
    # 2 * 0.01546875 * 100 / 99 = 0.03125, and its root is 0.1767767
    assert family.tradeoff(100) == pytest.approx(77.34375 * (1 - 1 / 99 - 0.1767766953))
    assert family.tradeoff(100_000) < 0  # nothing is clipped


def test_powers_that_are_whole_but_for_rounding() -> None:
    # 2^(20 * 0.3) = 64, and 0.4 - 0.1 is not 0.3 in floating point
    assert LowerBoundFamily(horizon=2**20, alpha=0.3, budget=64).hidden_groups == 63
    family = LowerBoundFamily(horizon=2**20, alpha=0.4, alpha_prime=0.1, budget=256)
    assert family.open_arms == 64
    assert LowerBoundFamily(horizon=3**10, alpha=0.1, budget=3).hidden_groups == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 31}, "`budget` must be >= T^alpha = 32, got 31, 1 too little"),
        ({"alpha_prime": 0.7}, "`alpha_prime` must be < alpha = 0.5, got 0.7, which is 0.2 above"),
        (
            {"alpha": 0.15},
            r"= 2 hidden groups, got 1, 1 too few.*horizon >= 1517 or alpha >= 0.158",
        ),
    ],
)
def test_each_condition_names_itself(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"horizon": 1024, "alpha": 0.5, "budget": 32}
    LowerBoundFamily(**good)
    with pytest.raises(ParameterError, match=message.replace("^", r"\^")):
        LowerBoundFamily(**good | change)


def test_a_fix_is_named_only_if_there_is_one() -> None:
    with pytest.raises(ParameterError, match=r"must be >= 3: take alpha >= 0.080\.$"):
        LowerBoundFamily(horizon=10**6, alpha=0.001, budget=10)  # no horizon is long enough
    with pytest.raises(ParameterError, match=r"must be >= 3: take a horizon >= 3\.$"):
        LowerBoundFamily(horizon=2, alpha=1.0, budget=10)  # nor any alpha large enough


def test_large_powers_are_not_rounded_up() -> None:
    family = LowerBoundFamily(horizon=2**60, alpha=1.0, budget=2**60)
    assert (family.hidden_groups, family.open_arms) == (2**60 - 1, 2**60)
    assert family.gap <= 2**-5


@given(
    horizon=st.integers(2, 2**40),
    alpha=st.floats(0.01, 1.0),
    easier=st.floats(0.0, 0.99),
    m=st.integers(1, 10**6),
    above=st.floats(1.0, 100.0),
)
def test_what_the_proof_needs(
    horizon: int, alpha: float, easier: float, m: int, above: float
) -> None:
    assume(easier < alpha)
    assume(horizon**alpha >= 3.001)
    budget = above * horizon**alpha
    family = LowerBoundFamily(horizon=horizon, alpha=alpha, alpha_prime=easier, m=m, budget=budget)
    assert hardness(family.n_arms, family.open_arms, horizon) <= easier + 1e-9
    assert hardness(family.n_arms, m, horizon) <= alpha + 1e-9
    assert 0 < family.gap <= 2**-5
    # the root is 1/4 at R_0 = B, and 1/K is at most 1/2; K is at least T^alpha/4
    assert family.tradeoff(budget) >= family.floor * (1 - 1e-9)
    assert family.floor >= 2**-10 * horizon ** (1 + alpha) / budget * (1 - 1e-9)


def test_two_policies_that_need_no_simulation() -> None:
    family = LowerBoundFamily(horizon=2**20, alpha=0.5, budget=1024)
    always_open = (0.0, family.settled)  # R_0 and R_i of pulling S_0 all the time
    everywhere = 1 - 1 / family.hidden_groups  # of hidden pulls, the part in wrong groups
    always_hidden = (family.settled, family.horizon * family.gap * everywhere)
    for easy, hard in (always_open, always_hidden):
        assert hard >= family.tradeoff(easy)
    # and the first is tight, but for 1/K
    assert family.tradeoff(0.0) == pytest.approx(family.settled * everywhere)
