"""The documented example of a user's own policy: live and simulated alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from tests.helpers import play_live

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def own_policy() -> ma.Policy:
    from own_policy import ExploreThenCommit

    policy = ExploreThenCommit(arms=10, tries=3)
    assert isinstance(policy, ma.Policy)
    return policy


@pytest.mark.slow
def test_live_and_simulated_runs_pick_the_same_arms(own_policy: ma.Policy) -> None:
    # rewards that depend on the arm alone, so that live rewards are known without a tape
    means = np.random.default_rng(1).integers(0, 2, 500).astype(float)
    result = ma.simulate(
        own_policy,
        ma.instances.from_means(means),
        horizon=100,
        replications=1,
        seed=4,
        record_arms=True,
    )
    live = own_policy.live(n_arms=500, horizon=100, seed=4)
    assert result.arms is not None
    assert play_live(live, 100, lambda arm, k: means[arm]) == result.arms[0, 0].tolist()


def test_with_late_rewards_it_tries_the_same_arms(own_policy: ma.Policy) -> None:
    in_turn, late = (own_policy.live(n_arms=500, horizon=40, seed=4) for _ in range(2))
    arms = play_live(in_turn, 31, lambda arm, k: float(arm % 7 == 0))
    batch = late.ask(30)  # all tries of all candidates
    assert [pull.arm for pull in batch] == arms[:30]
    late.tell_many([(pull, float(pull.arm % 7 == 0)) for pull in batch])
    assert late.ask().arm == arms[30]
    assert len({pull.arm for pull in batch}) == 10


def test_it_has_a_name_in_the_registry(own_policy: ma.Policy) -> None:
    assert ma.policy("explore-then-commit", arms=10, tries=3) == own_policy


@pytest.mark.slow
@pytest.mark.compiled
def test_the_example_runs_as_a_script() -> None:
    script = EXAMPLES / "own_policy.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "pull 4: arm" in done.stdout
    assert "explore-then-commit - empmoss++" in done.stdout
