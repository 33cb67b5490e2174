"""Rules that drop arms, and Uniform and Greedy, against exact numbers and late rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms.instances import BetaMeans, Instance, reservoir
from manyarms.policies.field import Greedy, KFailure, MRun, TwoTarget, Uniform


@pytest.mark.parametrize("horizon", [53, 54, 55, 127, 128, 129, 2 * 10**9, 2 * 4096**3])
def test_targets_are_exact(horizon: int) -> None:
    live = TwoTarget(m=2).live(n_arms=3, horizon=horizon)
    target = live._experiment.state.target[0]
    assert target.first**3 <= horizon / 2 < (target.first + 1) ** 3
    assert target.second**2 <= 4 * horizon / 2 < (target.second + 1) ** 2


def fails_at(j: int) -> float:
    """Return the probability that an arm of uniform mean fails first at its j-th pull."""
    return 1 / (j * (j + 1))


def failures(horizon: int, m: int) -> float:
    """Return the expected failures in so many pulls, if m straight successes keep an arm.

    After m successes the mean of the arm is Beta(m + 1, 1): it fails with probability 1/(m + 2).
    """
    expected = [0.0]
    for pulls in range(1, horizon + 1):
        kept = max(0, pulls - m) / ((m + 1) * (m + 2))
        lost = (fails_at(j) * (1 + expected[pulls - j]) for j in range(1, min(m, pulls) + 1))
        expected.append(kept + sum(lost))
    return expected[horizon]


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "m"), [(KFailure(), 400), (MRun(recall=False), 20), (MRun(recall=False, m=5), 5)]
)
def test_the_expected_regret_for_uniform_means(policy: ma.Policy, m: int) -> None:
    """The mean of 4000 runs within 5 standard errors: a false alarm in 10^6 tests."""
    regret = _final_regret(policy, reservoir(BetaMeans(1, 1)), 400, 4000)
    mean, error = regret.mean(), regret.std() / math.sqrt(len(regret))
    assert abs(mean - failures(400, m)) < 5 * error


@pytest.mark.compiled
@pytest.mark.slow
def test_two_targets_are_better_than_one_run() -> None:
    """For uniform means the sources have sqrt(2T) and 2 sqrt(T), as T grows.

    At T = 10^4, 3000 runs give about 170 and 193, with standard errors of 2 and 2.5: each
    comparison here holds by more than 7 of them.
    """
    uniform, horizon = reservoir(BetaMeans(1, 1)), 10_000
    two = _final_regret(TwoTarget(), uniform, horizon, 3000)
    one = _final_regret(MRun(recall=False), uniform, horizon, 3000)
    assert two.mean() < 1.35 * math.sqrt(2 * horizon)
    assert one.mean() < 1.15 * 2 * math.sqrt(horizon)
    assert two.mean() < one.mean()


def _final_regret(
    policy: ma.Policy, instance: Instance, horizon: int, replications: int
) -> NDArray[np.float64]:
    result = ma.simulate(
        policy, instance, horizon=horizon, replications=replications, workers=1, progress=False
    )
    return result.regret[0, :, -1]


def test_uniform_is_uniform() -> None:
    """Chi-square with 9 degrees of freedom: above 49 with probability below 2 in 10^7."""
    live = Uniform().live(n_arms=10, seed=3)
    counts = [0] * 10
    for _ in range(5000):
        pull = live.ask()
        counts[pull.arm] += 1
        live.tell(pull, 1.0)
    assert sum((count - 500) ** 2 / 500 for count in counts) < 49


def test_an_arm_that_was_left_does_not_count_any_more() -> None:
    live = KFailure(k=2).live(n_arms=1000, seed=1)
    pulls = live.ask(6)
    assert len({pull.arm for pull in pulls}) == 1  # no failure is known yet
    live.tell(pulls[4], 0.0)
    live.tell(pulls[1], 0.0)
    following = live.ask()
    assert following.arm != pulls[0].arm
    for pull in (pulls[0], pulls[2], pulls[3], pulls[5]):
        live.tell(pull, 0.0)  # of the arm before
    live.tell(following, 0.0)
    assert live.ask().arm == following.arm


def test_a_kept_arm_stays_whatever_comes_late() -> None:
    for policy in (MRun(m=2), MRun(recall=False, m=2), TwoTarget(m=1)):
        live = policy.live(n_arms=1000, horizon=100, seed=1)
        pulls = live.ask(20)
        for pull in pulls[10:]:
            live.tell(pull, 1.0)
        for pull in pulls[:10]:
            live.tell(pull, 0.0)
        assert live.ask().arm == pulls[0].arm


def test_greedy_opens_all_arms_before_the_rewards_come() -> None:
    live = Greedy().live(n_arms=50, seed=1)
    pulls = live.ask(50)
    assert len({pull.arm for pull in pulls}) == 50
    live.tell(pulls[7], 1.0)
    again = live.ask(49)  # those never observed, each once more
    assert {pull.arm for pull in again} == {pull.arm for pull in pulls} - {pulls[7].arm}
    for pull in [*pulls[:7], *pulls[8:], *again]:
        live.tell(pull, 0.0)
    assert live.ask().arm == pulls[7].arm


def test_stages() -> None:
    policy = TwoTarget(m=1)
    live = policy.live(n_arms=10, horizon=2)
    assert policy.stage(live._experiment.state) == "exploring"
    live.tell(live.ask(), 1.0)
    assert policy.stage(live._experiment.state) == "exploiting"
