"""CBT, empirical CBT and uniform: published targets, and rewards in any order."""

from __future__ import annotations

import math

import pytest

import manyarms as ma
from manyarms.core.rng import draw, unit
from manyarms.policies.field import CBT, EmpiricalCBT, Uniform
from tests.helpers import state_of


@pytest.mark.parametrize(
    ("b", "weight", "target"),
    [
        (1.0, 1.0, math.sqrt(2 / 10_000)),
        (2.0, math.pi**2 / 4, (2 * 2 * 3 / (math.pi**2 * 10_000)) ** (1 / 3)),
        (3.0, math.pi**2 / 6, (2 * 3 * 4 / (math.pi**2 * 10_000)) ** (1 / 4)),
    ],
    ids=["Uniform", "Sine", "Cosine"],
)
def test_targets_are_those_of_the_r_package(b: float, weight: float, target: float) -> None:
    live = CBT(b=b, weight=weight).live(n_arms=3, horizon=10_000)
    assert state_of(live).clock[0].target == pytest.approx(target, rel=1e-12)


def test_a_reward_of_an_arm_that_was_left_is_ignored() -> None:
    live = CBT(target=0.4, factor=1.0).live(n_arms=1000, horizon=100, seed=1)
    pulls = live.ask(6)
    assert len({pull.arm for pull in pulls}) == 1  # no failure yet
    live.tell(pulls[4], 0.0)  # a mean loss of 1 exceeds the target
    following = live.ask()
    assert following.arm != pulls[0].arm
    for pull in (*pulls[:4], pulls[5]):
        live.tell(pull, 0.0)  # of the previous arm
    live.tell(following, 1.0)
    assert live.ask().arm == following.arm


@pytest.mark.parametrize("policy", [CBT(), EmpiricalCBT()], ids=lambda p: p.name)
def test_rewards_in_any_order(policy: ma.Policy) -> None:
    """With late, reordered or missing rewards, arms stay in range and the run ends."""
    for n in (1, 3, 500):
        live = policy.live(n_arms=n, horizon=400, seed=2)
        pending: list[ma.Pull] = []
        for k in range(400):
            pending.append(live.ask())
            assert 0 <= pending[-1].arm < n
            while len(pending) > 8 or (pending and k % 3 == 0):
                pull = pending.pop(int(unit(draw(9, 1000 * n + k)) * len(pending)))
                if k % 5 == 4:
                    live.abandon(pull)
                else:
                    live.tell(pull, 1.0 if unit(draw(11, k)) < 0.3 else 0.0)
                if k % 3 == 0 and len(pending) < 4:
                    break


def test_late_first_rewards_when_no_arm_is_left() -> None:
    live = EmpiricalCBT().live(n_arms=3, horizon=400, seed=1)
    pulls = live.ask(9)
    assert sorted(pull.arm for pull in pulls) == [0, 0, 0, 1, 1, 1, 2, 2, 2]  # fewest pending
    live.tell(pulls[4], 1.0)
    assert live.ask().arm == pulls[4].arm  # the others have no reward yet


def test_an_arm_whose_only_pull_was_abandoned_is_pulled_again() -> None:
    live = EmpiricalCBT().live(n_arms=3, horizon=400, seed=1)
    pulls = live.ask(3)
    live.tell(pulls[0], 1.0)
    live.tell(pulls[1], 1.0)
    live.abandon(pulls[2])
    assert live.ask().arm == pulls[2].arm


def test_uniform_is_uniform() -> None:
    """Chi-square with 9 degrees of freedom: above 49 with probability below 2 in 10^7."""
    live = Uniform().live(n_arms=10, seed=3)
    counts = [0] * 10
    for _ in range(5000):
        pull = live.ask()
        counts[pull.arm] += 1
        live.tell(pull, 1.0)
    assert sum((count - 500) ** 2 / 500 for count in counts) < 49
