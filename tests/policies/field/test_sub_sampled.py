"""SubSampled, and SS-Greedy told the hardness: sizes, names, and what the policy within knows."""

from __future__ import annotations

import inspect

import pytest

import manyarms as ma
from manyarms.policies.field import Greedy, SSGreedyOracle, SubSampled
from manyarms.protocol.registry import maker


def test_the_size_of_the_set() -> None:
    assert SubSampled(ma.MOSS(), exponent=0.5).set_size(10**9, 10**6) == 1000
    assert SubSampled(ma.MOSS(), exponent=2 / 3).set_size(10**9, 10**6) == 10_000
    assert SubSampled(ma.MOSS(), exponent=0.5).set_size(30, 10**6) == 30
    assert SubSampled(ma.MOSS(), exponent=0.0).set_size(30, 10**6) == 1
    # n/m = T^0.4 with n = 2000, T = 5000 is m = 66.3
    assert SSGreedyOracle(alpha=0.4).set_size(2000, 5000) == 388
    assert 380 < SSGreedyOracle(m=66).set_size(2000, 5000) < 396
    assert SSGreedyOracle(m=1).set_size(10**9, 5000) == 1  # beyond a = 1 the formula gives none
    assert SSGreedyOracle(m=3).set_size(3, 1) == 1


def test_names_and_labels() -> None:
    assert SubSampled(Greedy(), exponent=0.5).label == "ss-greedy(exponent=0.5)"
    policy = SubSampled(ma.MOSS(exploration=0.5), size=7)
    assert (policy.name, policy.label) == ("ss-moss", "ss-moss(exploration=0.5, size=7)")
    assert SSGreedyOracle(m=3).label == "ss-greedy-oracle(m=3)"
    assert SubSampled(ma.HybridMOSSPlusPlus(), size=5).name == "ss-hybrid-moss++"


def test_makers() -> None:
    make = maker("ss-moss")
    assert make() == SubSampled(ma.MOSS(), exponent=0.5)
    assert make(size=3, sigma=1.0) == SubSampled(ma.MOSS(sigma=1.0), size=3)
    names = [*inspect.signature(make).parameters]
    assert names == ["sigma", "exploration", "count_late", "index", "size", "exponent"]


def test_what_the_policy_within_knows() -> None:
    assert SubSampled(ma.Parallel(), size=5).with_best_mean(0.9) == SubSampled(
        ma.Parallel(best_mean=0.9), size=5
    )
    assert SubSampled(ma.Quantile(), size=5).anytime
    assert not SubSampled(ma.Quantile(), exponent=0.5).anytime
    assert not SubSampled(ma.MOSS(), size=5).anytime
    live = SubSampled(ma.MOSSPlusPlus(), size=50).live(n_arms=10**6, horizon=100, seed=1)
    live.ask()
    assert live.policy.stage(live._experiment.state) == "iteration 1 of 3"


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
