"""SubSampled around several policies beside its slow reference, and SS-Greedy told the hardness."""

from __future__ import annotations

import inspect

import pytest

import manyarms as ma
from manyarms.policies.field.greedy import Greedy
from manyarms.policies.field.ss_greedy_oracle import SSGreedyOracle
from manyarms.policies.field.sub_sampled import SubSampled, sub_sampling
from tests.field.oracle import ARMS, check_all, check_live
from tests.reference.doubling import Doubling
from tests.reference.field_sub_sampled import GREEDY, by_exponent, for_greedy
from tests.reference.field_sub_sampled import SubSampled as Reference
from tests.reference.hybrid_moss_plus_plus import HybridMossPlusPlus
from tests.reference.moss import Moss, Player
from tests.reference.quantile import Quantile


def fixed(size: int) -> Player:
    return Reference(Moss(), lambda _: size)


PAIRS: dict[str, tuple[ma.Policy, Player]] = {
    "moss-1/2": (SubSampled(ma.MOSS(), exponent=0.5), Reference(Moss(), by_exponent("1/2"))),
    "moss-2/3": (SubSampled(ma.MOSS(), exponent=2 / 3), Reference(Moss(), by_exponent("2/3"))),
    "moss-7": (SubSampled(ma.MOSS(), size=7), fixed(7)),
    "greedy-1/2": (SubSampled(Greedy(), exponent=0.5), Reference(GREEDY, by_exponent("1/2"))),
    "quantile-20": (SubSampled(ma.Quantile(), size=20), Reference(Quantile(), lambda _: 20)),
    "hybrid-20": (
        SubSampled(ma.HybridMOSSPlusPlus(), size=20),
        Reference(HybridMossPlusPlus(), lambda _: 20),
    ),
    "of a subset": (
        SubSampled(SubSampled(ma.MOSS(), size=5), size=25),
        Reference(fixed(5), lambda _: 25),
    ),
    "of doubling": (
        SubSampled(ma.Doubling(ma.MOSS()), size=9),
        Reference(Doubling(Moss()), lambda _: 9),
    ),
    "in doubling": (ma.Doubling(SubSampled(ma.MOSS(), size=9)), Doubling(fixed(9))),
    "oracle-0": (SSGreedyOracle(alpha=0), Reference(GREEDY, for_greedy("0"))),
    "oracle-0.4": (SSGreedyOracle(alpha=0.4), Reference(GREEDY, for_greedy("0.4"))),
    "oracle-0.8": (SSGreedyOracle(alpha=0.8), Reference(GREEDY, for_greedy("0.8"))),
}


LIVE_ONLY = ("quantile-20", "of a subset", "of doubling", "in doubling")  # compiling them is slow


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in LIVE_ONLY])
def test_same_arms_as_the_reference(name: str) -> None:
    check_all(*PAIRS[name])


@pytest.mark.parametrize("name", LIVE_ONLY)
def test_same_arms_as_the_reference_live(name: str) -> None:
    for n in ARMS:
        check_live(*PAIRS[name], n)


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
    make = sub_sampling(ma.MOSS)
    assert make() == SubSampled(ma.MOSS(), exponent=0.5)
    assert make(size=3, sigma=1.0) == SubSampled(ma.MOSS(sigma=1.0), size=3)
    names = [*inspect.signature(make).parameters]
    assert names == ["sigma", "exploration", "count_late", "size", "exponent"]


def test_what_the_policy_within_knows() -> None:
    assert SubSampled(ma.Parallel(), size=5).with_best_mean(0.9) == SubSampled(
        ma.Parallel(best_mean=0.9), size=5
    )
    assert SubSampled(ma.Quantile(), size=5).anytime
    assert not SubSampled(ma.Quantile(), exponent=0.5).anytime
    assert not SubSampled(ma.MOSS(), size=5).anytime
    live = SubSampled(ma.MOSSPlusPlus(), size=50).live(n_arms=10**6, horizon=100, seed=1)
    live.ask()
    assert live.policy.stage(live._game.state) == "iteration 1 of 3"


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


def test_parameters() -> None:
    with pytest.raises(ma.ParameterError, match="`policy` must be a policy such as MOSS"):
        SubSampled("moss", size=3)  # type: ignore[arg-type]
    for both in ({}, {"size": 3, "exponent": 0.5}):
        with pytest.raises(ma.ParameterError, match="`size` or `exponent` must be given, one"):
            SubSampled(ma.MOSS(), **both)  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="`size` must be an integer >= 1, got 0"):
        SubSampled(ma.MOSS(), size=0)
    with pytest.raises(ma.ParameterError, match="`exponent` must be a number >= 0 and <= 1"):
        SubSampled(ma.MOSS(), exponent=1.1)
    for alpha, m in ((None, None), (0.5, 3)):
        with pytest.raises(ma.ParameterError, match="`alpha` or `m` must be given, one of them"):
            SSGreedyOracle(alpha=alpha, m=m)
    with pytest.raises(ma.ParameterError, match="`m` must be an integer >= 1 and <= 10, got 11"):
        SSGreedyOracle(m=11).live(n_arms=10, horizon=5)
    with pytest.raises(ma.ParameterError, match="made for one horizon. Give it `size`"):
        ma.Doubling(SubSampled(ma.MOSS(), exponent=0.5))
