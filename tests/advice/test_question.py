"""What may be asked, and the hardnesses that follow."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.advice.question import Question, question


def ask(**given: Any) -> Question:
    nothing = dict.fromkeys(("m_at_least", "alpha_at_most", "best_mean", "others"))
    return question(**{"n": 100, "horizon": 50, "betas": [0.5], **nothing, **given})


def test_five_hardnesses_in_equal_steps() -> None:
    # n = 2 * 10^6, T = 10^3: hardness 1 is n/m = 2000, m = 1000; steps of 0.2 divide n/(2m) by
    # 1000^0.2 = 3.9811, so m = ceil(10^6 / 3.9811^k)
    problems = ask(n=2_000_000, horizon=1000).problems()
    assert [problem.m for problem in problems] == [251189, 63096, 15849, 3982, 1000]
    assert [round(problem.alpha, 3) for problem in problems] == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_a_bound_ends_the_curve() -> None:
    bounded = ask(n=2_000_000, horizon=1000, m_at_least=10_000)
    assert bounded.problems()[-1].m == 10_000
    assert bounded.hardest.alpha == pytest.approx(2 / 3)  # log 100 / log 1000
    assert ask(n=2_000_000, horizon=1000, alpha_at_most=0.5).fewest == math.ceil(10**6 / 10**1.5)
    assert not ask().bounded


def test_what_is_out_of_reach_is_one_point() -> None:
    beyond = ask(n=2_000_000, horizon=1000, m_at_least=3).problems()
    assert [problem.m for problem in beyond[-2:]] == [1000, 3]
    assert [problem.within_reach for problem in beyond] == [True] * 4 + [False]


@given(
    n=st.integers(1, 2**50),
    horizon=st.integers(1, 10**7),
    share=st.floats(0, 1),
    kind=st.sampled_from(["m", "alpha", "nothing"]),
)
def test_problems_are_in_order_and_end_with_the_hardest(
    n: int, horizon: int, share: float, kind: str
) -> None:
    known: dict[str, Any] = {}
    if kind == "m":
        known = {"m_at_least": max(1, min(n, round(n**share)))}
    elif kind == "alpha":
        known = {"alpha_at_most": share}
    asked = ask(n=n, horizon=horizon, **known)
    counts = [int(problem.m) for problem in asked.problems()]
    assert 1 <= len(counts) <= 5
    assert counts == sorted(set(counts), reverse=True)
    assert counts[-1] == asked.fewest
    assert all(1 <= m <= n for m in counts)
    beyond = [problem for problem in asked.problems() if not problem.within_reach]
    assert len(beyond) <= 1


def test_the_others_keep_the_papers_proportions() -> None:
    assert ask().others == ask(best_mean=0.9).others == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert ask(best_mean=0.45).others == (0.05, 0.1, 0.15, 0.2, 0.25)
    assert ask(betas=[0.75, 0.5, 0.75]).betas == (0.5, 0.75)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, r"`n` must be an integer >= 1 .* got 0"),
        ({"n": 2.5}, r"`n` must be an integer .* got 2.5"),
        ({"horizon": 0}, r"`horizon` must be an integer >= 1 .* got 0"),
        ({"horizon": 10**8}, "`horizon` must be .* <= 10000000, got 100000000. Ask for that many"),
        ({"m_at_least": 0}, "`m_at_least` must be .* got 0. There are n = 100 arms"),
        ({"m_at_least": 101}, "`m_at_least` must be .* <= 100, got 101. There are n = 100 arms"),
        ({"m_at_least": 5, "alpha_at_most": 0.4}, "`alpha_at_most` must be left out .* 0.4 and 5"),
        ({"alpha_at_most": 1.5}, "`alpha_at_most` must be .* <= 1, got 1.5. Hardness 0 is easy"),
        ({"alpha_at_most": -0.1}, "`alpha_at_most` must be a number >= 0 .* got -0.1"),
        ({"alpha_at_most": math.nan}, "`alpha_at_most` must be .* got nan"),
        ({"best_mean": 0.0}, "`best_mean` must be a number > 0 and <= 1, got 0.0. .* rescale"),
        ({"best_mean": 1.01}, "`best_mean` must be .* got 1.01"),
        ({"others": [0.9]}, "`others` must be .* < 0.9, got 0.9. .* `best_mean` sets it"),
        ({"others": [-0.1]}, "`others` must be a number >= 0 .* got -0.1"),
        ({"others": []}, r"`others` must be a list with at least one number, got \[\]"),
        ({"others": 0.5}, "`others` must be a list with at least one number, got 0.5"),
        ({"betas": [0.4]}, "`betas` must be a number >= 0.5 and <= 1, got 0.4"),
        ({"betas": "0.5"}, "`betas` must be a list with at least one number, got '0.5'"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ask(**given)
