"""UCB1, UCB, KL-UCB and IMOSS: batches, abandoned pulls, the index by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.memory import ENDLESS
from manyarms.policies.field import IMOSS, KLUCB, UCB, UCB1
from manyarms.protocol import ask, reset, tell


@pytest.mark.parametrize("policy", [UCB1(), UCB(), KLUCB()], ids=lambda p: p.name)
def test_a_batch_goes_through_all_arms_before_any_is_repeated(policy: ma.Policy) -> None:
    live = policy.live(n_arms=10, seed=3)
    first = live.ask(10)
    assert {pull.arm for pull in first} == set(range(10))
    again = live.ask(10)
    assert {pull.arm for pull in again} == set(range(10))
    for pull in reversed(first + again):
        live.tell(pull, 1.0 if pull.arm == 4 else 0.0)
    assert [live.ask().arm for _ in range(3)] == [4, 4, 4]


def test_an_abandoned_first_pull_is_made_up_for() -> None:
    live = UCB1().live(n_arms=3, seed=1)
    lost, *others = live.ask(3)
    for pull in others:
        live.tell(pull, 1.0)
    live.abandon(lost)
    assert live.ask().arm == lost.arm


def test_the_index_is_that_of_the_source() -> None:
    # after one pull each, t = 2: the bonus is the same, so the better mean wins; after that
    # 1/2 + sqrt(2 log 3 / 2) = 1.548 against 0 + sqrt(2 log 3) = 1.482
    live = UCB1().live(n_arms=2, seed=0)
    good = live.ask()
    live.tell(good, 1.0)
    live.tell(live.ask(), 0.0)
    third = live.ask()
    assert third.arm == good.arm
    live.tell(third, 0.0)
    assert math.sqrt(math.log(3)) + 0.5 > math.sqrt(2 * math.log(3))
    assert live.ask().arm == good.arm


@pytest.mark.interpreted
def test_imoss_opens_about_t_to_the_b_arms() -> None:
    for b, arms in ((0.5, 30), (0.25, 6), (1.0, 900)):
        result = ma.simulate(
            IMOSS(b=b), ma.instances.planted(n=10**6, m=10), horizon=900, replications=1, workers=1
        )
        assert result.distinct_arms[0, 0] == arms


@pytest.mark.parametrize("policy", [UCB1(), UCB(), KLUCB(), IMOSS()], ids=lambda p: p.name)
def test_pulls_go_on_though_nobody_says_that_rewards_are_late(policy: ma.Policy) -> None:
    state: Any = policy.new_state(ENDLESS, n_arms=2, pulls=20)
    reset(state, 1, 0)
    slots = [ask(state)[0] for _ in range(5)]
    tell(state, slots[0], 1.0)
    slots += [ask(state)[0] for _ in range(5)]
    assert set(slots) <= {1, 2}
    assert slots[-1] == slots[0]
