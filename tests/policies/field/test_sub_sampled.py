"""SubSampled: sizes, names, the inner policy's knowledge, and greedy."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.policies.field import UCB, Greedy, SubSampled
from manyarms.protocol.registry import parameters_of
from tests.helpers import state_of


def test_the_size_of_the_set() -> None:
    assert SubSampled(ma.MOSS(), exponent=0.5).set_size(10**9, 10**6) == 1000
    assert SubSampled(ma.MOSS(), exponent=2 / 3).set_size(10**9, 10**6) == 10_000
    assert SubSampled(ma.MOSS(), exponent=0.5).set_size(30, 10**6) == 30
    assert SubSampled(ma.MOSS(), exponent=0.0).set_size(30, 10**6) == 1


def test_parameters_go_to_the_layer_that_has_them() -> None:
    assert ma.policy("ss-ucb") == SubSampled(UCB())
    assert ma.policy("ss-ucb", size=3, sigma=1.0) == SubSampled(UCB(sigma=1.0), size=3)
    assert {*parameters_of("ss-ucb")} == {"sigma", "size", "exponent"}


def test_what_the_inner_policy_knows() -> None:
    assert SubSampled(ma.Parallel(), size=5).with_best_mean(0.9) == SubSampled(
        ma.Parallel(best_mean=0.9), size=5
    )
    assert SubSampled(ma.Quantile(), size=5).anytime
    assert not SubSampled(ma.Quantile(), exponent=0.5).anytime
    assert not SubSampled(ma.MOSS(), size=5).anytime
    live = SubSampled(ma.MOSSPlusPlus(), size=50).live(n_arms=10**6, horizon=100, seed=1)
    live.ask()
    assert live.policy.stage(state_of(live)) == "iteration 1 of 3"


@pytest.mark.parametrize("late", [1, 7, 30])
def test_late_rewards(late: int) -> None:
    policies = [SubSampled(ma.MOSSPlusPlus(), size=60), SubSampled(Greedy(), size=60)]
    for policy in policies:
        live = policy.live(n_arms=10**6, horizon=300, seed=late)
        waiting = []
        arms = set()
        for _ in range(300):
            waiting.append(live.ask())
            arms.add(waiting[-1].arm)
            if len(waiting) > late:
                live.tell(waiting.pop(0), 0.0)
        assert len(arms) <= 60


def test_greedy_opens_all_arms_before_rewards_come() -> None:
    live = Greedy().live(n_arms=50, seed=1)
    pulls = live.ask(50)
    assert len({pull.arm for pull in pulls}) == 50
    live.tell(pulls[7], 1.0)
    again = live.ask(49)  # those without rewards, each once more
    assert {pull.arm for pull in again} == {pull.arm for pull in pulls} - {pulls[7].arm}
    for pull in [*pulls[:7], *pulls[8:], *again]:
        live.tell(pull, 0.0)
    assert live.ask().arm == pulls[7].arm
