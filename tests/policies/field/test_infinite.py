"""Empirical CBT, UCB-F, UCB-AIR and CorralIGW: exact numbers, and rewards in any order."""

from __future__ import annotations

import math

import pytest

import manyarms as ma
from manyarms.core.rng import draw, unit
from manyarms.policies.field import UCBAIR, UCBF, CorralIGW, EmpiricalCBT
from manyarms.policies.field.ucb_air import opening_time
from manyarms.policies.field.ucb_f import arms_for
from tests.reference.field.infinite import log_barrier_step


def test_numbers_of_arms_are_exact() -> None:
    assert arms_for(1000, 1 / 3, 10**6) == 10
    assert arms_for(1001, 1 / 3, 10**6) == 11
    assert arms_for(10**12, 0.5, 10**9) == 10**6
    assert arms_for(1, 0.5, 7) == 1
    assert arms_for(10**12, 0.5, 7) == 7
    for count in range(1, 200):
        assert opening_time(count, 1 / 3) == count**3 + 1
        assert opening_time(count, 1 / 2) == count**2 + 1
    assert opening_time(50, 0.01 / 2) == 1 << 60  # not within any horizon


def test_corral_keeps_probabilities() -> None:
    live = CorralIGW(eta=0.9).live(n_arms=50, seed=1)
    for k in range(2000):
        pull = live.ask()
        live.tell(pull, unit(draw(5, k)))
        inverse = [live._experiment.state.inverse[j] for j in range(8)]
        assert min(inverse) >= 1.0
        assert math.isclose(sum(1 / number for number in inverse), 1.0, rel_tol=1e-9)


def test_corral_weighs_a_late_reward_by_its_own_probability() -> None:
    live = CorralIGW(bases=2).live(n_arms=50, seed=1)
    first = live.ask()
    base = live._experiment.state.pull[0].base
    for _ in range(30):
        live.tell(live.ask(), 1.0)
    before = [1 / live._experiment.state.inverse[j] for j in range(2)]
    live.tell(first, 1.0)
    expected = log_barrier_step(before, base, -0.125 * 2.0)  # its probability was 1/2
    for j in range(2):
        assert math.isclose(1 / live._experiment.state.inverse[j], expected[j], rel_tol=1e-9)


@pytest.mark.parametrize("policy", [EmpiricalCBT(), UCBF(), UCBAIR(), CorralIGW()])
def test_rewards_in_any_order(policy: ma.Policy) -> None:
    """Late, out of order or never: arms stay within range, and the game ends."""
    for n in (1, 3, 500):
        live = policy.live(n_arms=n, horizon=400, seed=2)
        waiting: list[ma.Pull] = []
        for k in range(400):
            waiting.append(live.ask())
            assert 0 <= waiting[-1].arm < n
            while len(waiting) > 8 or (waiting and k % 3 == 0):
                pull = waiting.pop(int(unit(draw(9, 1000 * n + k)) * len(waiting)))
                if k % 5 == 4:
                    live.abandon(pull)
                else:
                    live.tell(pull, 1.0 if unit(draw(11, k)) < 0.3 else 0.0)
                if k % 3 == 0 and len(waiting) < 4:
                    break


@pytest.mark.parametrize("policy", [EmpiricalCBT(), UCBF()])
def test_a_batch_opens_arms(policy: ma.Policy) -> None:
    live = policy.live(n_arms=1000, horizon=400, seed=1)
    assert len({pull.arm for pull in live.ask(20)}) == 20


@pytest.mark.parametrize("policy", [EmpiricalCBT(), UCBF(b=9.0), UCBAIR(b=9.0)])
def test_late_first_rewards_when_no_arm_is_left(policy: ma.Policy) -> None:
    live = policy.live(n_arms=3, horizon=400, seed=1)
    pulls = live.ask(9)
    assert sorted(pull.arm for pull in pulls) == [0, 0, 0, 1, 1, 1, 2, 2, 2]  # fewest in flight
    live.tell(pulls[4], 1.0)
    assert live.ask().arm == pulls[4].arm  # the others wait for their first reward


@pytest.mark.parametrize("policy", [EmpiricalCBT(), UCBF(b=9.0)])
def test_an_arm_whose_only_pull_was_abandoned_comes_again(policy: ma.Policy) -> None:
    live = policy.live(n_arms=3, horizon=400, seed=1)
    pulls = live.ask(3)
    live.tell(pulls[0], 1.0)
    live.tell(pulls[1], 1.0)
    live.abandon(pulls[2])
    assert live.ask().arm == pulls[2].arm
