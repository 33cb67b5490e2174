"""What may be asked, and the cases that follow."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.advice.question import Question, question
from manyarms.instances import UniformMeans, from_means, grouped, reservoir

_NOTHING = dict.fromkeys(
    ("m_at_least", "alpha_at_most", "best_mean", "best_between", "others", "instance", "policies")
)


def ask(**given: Any) -> Question:
    return question(**{"n": 100, "horizon": 50, "in_flight": 0, **_NOTHING, **given})


def counts(asked: Question) -> list[int]:
    return [int(case.problem.m) for case in asked.cases()]


def test_five_hardnesses_in_equal_steps() -> None:
    # n = 2 * 10^6, T = 10^3: hardness 1 is n/m = 2000, m = 1000; steps of 0.2 divide n/(2m) by
    # 1000^0.2 = 3.9811, so m = ceil(10^6 / 3.9811^k)
    asked = ask(n=2_000_000, horizon=1000, best_mean=0.9)
    assert counts(asked) == [251189, 63096, 15849, 3982, 1000]
    alphas = [round(case.problem.alpha, 3) for case in asked.cases()]
    assert alphas == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_three_hardnesses_where_best_means_differ() -> None:
    # 1000^(1/3) = 10
    asked = ask(n=2_000_000, horizon=1000)
    assert counts(asked) == [100_000, 100_000, 10_000, 10_000, 1000, 1000]
    assert [case.instance.best_mean for case in asked.cases()] == [0.9, 0.5] * 3
    clicks = ask(best_between=(0.01, 0.05)).cases()
    assert {case.instance.best_mean for case in clicks} == {0.01, 0.05}
    assert {case.instance.best_mean for case in ask(others=[0.7]).cases()} == {0.9}
    assert {case.instance.best_mean for case in ask(best_between=[0.3, 0.3]).cases()} == {0.3}


def test_a_bound_ends_the_curve() -> None:
    bounded = ask(n=2_000_000, horizon=1000, m_at_least=10_000)
    assert counts(bounded)[-1] == 10_000
    assert bounded.hardest.alpha == pytest.approx(2 / 3)  # log 100 / log 1000
    assert ask(n=2_000_000, horizon=1000, alpha_at_most=0.5).fewest == math.ceil(10**6 / 10**1.5)
    assert not ask().bounded


def test_what_is_out_of_reach_is_one_point() -> None:
    beyond = ask(n=2_000_000, horizon=1000, m_at_least=3, best_mean=0.5)
    assert counts(beyond)[-2:] == [1000, 3]
    assert [case.problem.within_reach for case in beyond.cases()] == [True] * 4 + [False]


@given(
    n=st.integers(1, 10**9),
    horizon=st.integers(2, 10**7),
    share=st.floats(0, 1),
    kind=st.sampled_from(("nothing", "m", "alpha")),
)
def test_problems_are_in_order_and_end_with_the_hardest(
    n: int, horizon: int, share: float, kind: str
) -> None:
    known: dict[str, Any] = {"best_mean": 0.9}
    if kind == "m":
        known |= {"m_at_least": max(1, min(n, round(n**share)))}
    elif kind == "alpha":
        known |= {"alpha_at_most": share}
    asked = ask(n=n, horizon=horizon, **known)
    found = counts(asked)
    assert 1 <= len(found) <= 5
    assert found == sorted(set(found), reverse=True)
    assert found[-1] == asked.fewest
    assert all(1 <= m <= n for m in found)
    assert sum(not case.problem.within_reach for case in asked.cases()) <= 1


def test_the_others_keep_the_papers_proportions() -> None:
    (case, *_) = ask(best_mean=0.45).cases()
    world = case.instance.world(50)
    assert list(world.values)[1:] == [0.05, 0.1, 0.15, 0.2, 0.25]
    assert case.instance.largest_gap == pytest.approx(0.4)


def test_with_arms_of_ones_own_there_is_one_case() -> None:
    # within 1/sqrt(100) = 0.1 of the best are 0.95 and 1
    asked = ask(n=None, horizon=100, instance=from_means([0.2, 0.95, 1.0, 0.3]))
    assert (asked.n, counts(asked), asked.fewest) == (4, [2], 2)
    groups = grouped(sizes=[3, 7], means=[0.9, 0.2])
    assert counts(ask(n=None, instance=groups)) == [3]
    assert ask(n=None, instance=groups, m_at_least=1).fewest == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, r"`n` must be an integer >= 1 .* got 0"),
        ({"n": None}, r"`n` must be the number of arms, got None"),
        ({"horizon": 0}, r"`horizon` must be an integer >= 1 .* got 0"),
        ({"horizon": 10**8}, "`horizon` must be .* <= 10000000, got 100000000. Ask for that many"),
        ({"m_at_least": 0}, "`m_at_least` must be .* got 0. There are n = 100 arms"),
        ({"m_at_least": 101}, "`m_at_least` must be .* <= 100, got 101. There are n = 100 arms"),
        ({"m_at_least": 5, "alpha_at_most": 0.4}, "`alpha_at_most` must be left out .* 0.4 and 5"),
        ({"alpha_at_most": 1.5}, "`alpha_at_most` must be .* <= 1, got 1.5. Hardness 0 is easy"),
        ({"alpha_at_most": math.nan}, "`alpha_at_most` must be .* got nan"),
        ({"best_mean": 0.0}, "`best_mean` must be a number > 0 and <= 1, got 0.0. .* rescale"),
        ({"best_mean": 0.4, "best_between": (0.1, 0.5)}, "`best_between` must be left out with"),
        ({"best_between": (0.5, 0.1)}, "`best_between` must be two numbers, the smaller one first"),
        ({"best_between": [0.5]}, "`best_between` must be two numbers"),
        ({"best_between": (0.0, 0.1)}, "`best_between` must be a number > 0"),
        ({"others": [0.9]}, "`others` must be .* < 0.9, got 0.9. .* `best_mean` sets it"),
        ({"others": [-0.1]}, "`others` must be a number >= 0 .* got -0.1"),
        ({"others": []}, r"`others` must be a list with at least one number, got \[\]"),
        ({"others": 0.5}, "`others` must be a list with at least one number, got 0.5"),
        ({"in_flight": 50}, "`in_flight` must be an integer >= 0 and <= 49, got 50"),
        ({"instance": 652}, "`instance` must be an Instance such as"),
        ({"instance": from_means([0.2])}, "`n` must be left out with arms of your own, got 100"),
        ({"n": None, "instance": from_means([0.2]), "others": [0.1]}, "`others` must be left out"),
        ({"n": None, "instance": reservoir(UniformMeans(0, 1))}, "number of best arms of .* known"),
        ({"policies": []}, "`policies` must be a list of names and policies"),
        ({"policies": [ma.MOSS]}, "`policies` must be a list of names and policies"),
        ({"policies": ["mosss"]}, "Did you mean 'moss'"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ma.ParameterError, ma.UnknownNameError), match=message):
        ask(**given)
