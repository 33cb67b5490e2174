"""KL-MOSS, KL-UCB++ and kl-UCB-switch: their indices, and when they equal MOSS."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.policies.parts.kl import switch_at
from manyarms.policies.parts.moss_run import moss_index
from manyarms.protocol import ask, reset, tell
from manyarms.protocol.registry import described_policy, restored_policy
from tests.reference.field.kl import divergence


def index_after(policy: ma.Policy, rewards: list[float], horizon: int) -> float:
    """Return the index of the only arm after these rewards."""
    state = policy.with_reward_range((0.0, 1.0)).new_state(BOUNDED, n_arms=1, pulls=horizon)
    reset(state, 1, horizon)
    for reward in rewards:
        slot, _ = ask(state)
        tell(state, slot, reward)
    return moss_index(state.moss, 0, 0)


@pytest.mark.parametrize("rewards", [[0.0], [0.0, 1.0], [1.0, 0.0, 1.0], [0.25] * 5, [0.875] * 9])
def test_the_index_solves_its_equation(rewards: list[float]) -> None:
    index = index_after(ma.MOSS(index="kl"), rewards, 1000)
    pulls, mean = len(rewards), sum(rewards) / len(rewards)
    if index < 1 - 1e-9:
        level = math.log(1000 / pulls)
        assert pulls * divergence(mean, index) == pytest.approx(level, rel=1e-9)
    half = index_after(ma.MOSS(exploration=0.5), rewards, 1000)
    assert mean < index <= min(1.0, half)  # Pinsker


@pytest.mark.parametrize("rewards", [[0.0], [0.0, 1.0], [0.25] * 5, [0.875] * 9])
def test_the_level_of_kl_ucb_plus_plus(rewards: list[float]) -> None:
    index = index_after(ma.MOSS(index="kl++"), rewards, 1000)
    pulls, mean = len(rewards), sum(rewards) / len(rewards)
    y = 1000 / pulls
    level = math.log(y * (1 + math.log(y) ** 2))
    if index < 1 - 1e-9:
        assert pulls * divergence(mean, index) == pytest.approx(level, rel=1e-9)
    assert index_after(ma.MOSS(index="kl"), rewards, 1000) < index <= 1.0
    assert index_after(ma.MOSS(index="kl++"), rewards, pulls) == mean


def test_values_by_hand() -> None:
    # kl(0, q) = -log(1 - q) <= log(T/N)/N
    assert index_after(ma.MOSS(index="kl"), [0.0], 4) == 0.75
    assert index_after(ma.MOSS(index="kl"), [0.0, 0.0], 8) == pytest.approx(0.5, abs=1e-15)
    assert index_after(ma.MOSS(index="kl"), [1.0], 4) == 1.0
    assert index_after(ma.MOSS(index="kl"), [0.0] * 4, 4) == 0.0


def test_kl_ucb_switch_switches_to_moss() -> None:
    rewards = [1.0, 0.0]
    half = index_after(ma.MOSS(exploration=0.5), rewards, 31)
    assert index_after(ma.MOSS(index="switch"), rewards, 31) == half
    assert index_after(ma.MOSS(index="switch"), rewards, 32) == index_after(
        ma.MOSS(index="kl"), rewards, 32
    )
    for members in (1, 3, 20_000):
        for root in (1, 2, 3, 10):
            at = members * root**5
            assert switch_at(members, at) == root
            assert switch_at(members, at - 1) == root - 1
            assert Fraction(switch_at(members, at)) ** 5 <= Fraction(at, members)


def test_moss_has_a_name_for_each_index() -> None:
    names = {"moss": "moss", "kl-moss": "kl", "kl-ucb++": "kl++", "kl-ucb-switch": "switch"}
    for name, index in names.items():
        policy = ma.policy(name, exploration=2.0)
        assert policy == ma.MOSS(index=index, exploration=2.0)
        assert str(policy) == f"{name}(exploration=2.0)"
    with pytest.raises(ma.UnknownNameError, match="parameter of 'kl-moss': 'index'"):
        ma.policy("kl-moss", index="kl")


def test_kl_moss_is_stored_as_moss() -> None:
    assert restored_policy(described_policy(ma.MOSS(index="kl"))) == ma.MOSS(index="kl")
