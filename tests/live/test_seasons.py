"""Seasons, observed rewards and restored arms."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.counts import in_random_order
from tests.fixed import Fixed
from tests.helpers import EVERY_POLICY, label
from tests.inference.random_events import new
from tests.live.stores import copied, known


def tape(arm: Any, k: int) -> float:
    """Return the k-th reward of an arm, which does not depend on the policy."""
    return float(random.Random(f"{arm} {k}").random() < (int(arm) % 10) / 10)


def remembered(live: ma.Live) -> dict[int, list[float]]:
    """Return the rewards that the policy of a new season gets."""
    experiment = live._experiment
    limits, seed = experiment.settings.reward_range, experiment.settings.seed
    return {
        arm: in_random_order(arm, counts, limits, seed)
        for arm, counts in experiment.counts.items()
        if counts.known
    }


def play_tape(live: ma.Live, pulls: int, seen: dict[Any, int]) -> list[Any]:
    """Ask and tell `pulls` times; return the arms."""
    arms = []
    for _ in range(pulls):
        pull = live.ask()
        arms.append(pull.arm)
        live.tell(pull, tape(pull.arm, seen.setdefault(pull.arm, 0)))
        seen[pull.arm] += 1
    return arms


POLICIES = [ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Prospector(), ma.MOSSPlusPlus()]


def test_a_season_begins_with_known_rewards() -> None:
    """The policy makes the same choices as if it had pulled these arms."""
    live = ma.EmpMOSSPlusPlus().live(n_arms=40, horizon=150, seed=3)
    play_tape(live, 150, {})
    known_before = {arm.arm: arm for arm in live.arms()}
    live.season(horizon=250, policy=ma.Prospector(), seed=5)
    rewards = remembered(live)
    assert {arm: len(some) for arm, some in rewards.items()} == {
        arm: one.told for arm, one in known_before.items()
    }
    other = ma.Prospector().live(n_arms=40, horizon=400, seed=5)
    for arm in rewards:  # the same order of arms without rewards, so it must pull them all
        other._experiment.drawn_next[arm] = None
    used = {arm: iter(some) for arm, some in rewards.items()}
    for _ in range(100):
        pull = live.ask()
        while (theirs := other.ask().arm) in used and (
            known := next(used[theirs], None)
        ) is not None:
            other.tell(other.pulls - 1, known)
        assert theirs == pull.arm
        reward = tape(theirs, pull.id)
        live.tell(pull, reward)
        other.tell(other.pulls - 1, reward)


def test_a_season_keeps_known_and_pending_rewards() -> None:
    live = new(ma.MOSS(), horizon=200)
    play_tape(live, 190, {})
    late = live.ask(10)
    live.retire([0, 1])
    live.add_arms(2)
    before = live.arms()
    live.season(horizon=50)
    assert (live.pulls, live.horizon, live.n_arms) == (200, 250, 12)
    assert live.arms() == before
    assert live.pending == late
    play_tape(live, 50, {})
    assert not {0, 1} & {pull.arm for pull in live.pending[10:]}
    with pytest.raises(ma.TurnError, match="all 250 pulls of the horizon are made"):
        live.ask()
    for pull in late:
        live.tell(pull, 1.0)
    assert live.progress().told == 250
    with pytest.raises(ma.ParameterError, match="`policy` must support retired arms"):
        live.season(policy=Fixed(arm=3))
    for wrong in ({"policy": 3}, {"horizon": 0}, {"horizon": None}, {"horizon": 9, "seed": -1}):
        with pytest.raises(ma.ParameterError):
            live.season(**wrong)
    live.season(policy=ma.Prospector())
    assert live.horizon is None


def test_chained_seasons_lose_nothing() -> None:
    live = ma.Prospector().live(n_arms=30, seed=3)
    seen: dict[Any, int] = {}
    for season in range(4):
        play_tape(live, 100, seen)
        live.season(policy=POLICIES[season], horizon=None if POLICIES[season].anytime else 200)
        assert {arm.arm: arm.told for arm in live.arms()} == seen
        assert live._experiment.unused == live.progress().told == 100 * (season + 1)


def test_a_reward_of_an_earlier_season_reaches_the_policy() -> None:
    live = new(ma.MOSS(), n_arms=3, horizon=50)
    late = live.ask()
    live.season(horizon=20)
    live.tell(late, 1.0)
    assert dict(live._experiment.stock) == {late.arm: deque([1.0])}
    play_tape(live, 5, {})
    assert live._experiment.stock == {}


def test_0_1_rewards_return_in_random_order_and_others_as_their_mean() -> None:
    live = new(ma.MOSS(), n_arms=3)
    live.observe(1, [1.0] * 20 + [0.0] * 20)
    rewards = remembered(live)[1]
    assert sorted(rewards) == [0.0] * 20 + [1.0] * 20 != rewards
    other = new(ma.MOSS(), reward_range=(0.0, 10.0), horizon=50)
    other.observe(3, [1.0, 9.5])
    assert remembered(other) == {3: [5.25, 5.25]}


def test_beginning_a_season_takes_no_time_per_reward() -> None:
    """Rewards of an arm get their order when the policy first chooses it, or when one is added."""
    live = ma.Prospector().live(n_arms=500, seed=2, now=lambda: 1e9)
    live.tell_many([(pull, 1.0) for pull in live.ask(300)])
    late = live.ask(20)
    live.season()
    experiment = live._experiment
    assert (experiment.stock, live.progress().observed) == ({}, 300)
    before = remembered(live)
    assert any(pull.arm in before for pull in late)
    for pull in late:
        live.tell(pull, 0.0)
        arm = pull.arm
        before[arm] = [*before.get(arm, ()), 0.0]
        assert list(experiment.stock[arm]) == before[arm]
    assert live.progress().observed == 320
    live.ask(20)
    assert live.progress().observed < 320
    again = copied(live)
    assert again.ask(200) == live.ask(200)
    assert known(again) == known(live)


def test_observed_arms_are_drawn_first_and_their_rewards_used() -> None:
    live = ma.MOSS().live(n_arms=10**6, horizon=1000, seed=1)
    live.observe(77, [0.0, 1.0])
    live.observe(999_999, 1.0)
    assert [arm.arm for arm in live.arms()] == [77, 999_999]
    pull = live.ask()
    assert pull.arm not in (77, 999_999)  # rewards of these were used
    assert (pull.id, live.pulls, live.horizon) == (0, 1, 998)
    assert live.progress().observed == 1
    assert "1 observed reward not used yet" in str(live.progress())


def test_observed_rewards_do_not_refuse_a_batch_halfway() -> None:
    live = new(ma.MOSS(), n_arms=2, horizon=6)
    live.observe(0, [1.0] * 50)
    assert len(live.ask(5)) == 5  # at most one could be used
    assert live.pulls == live.horizon == 5
    with pytest.raises(ma.TurnError, match="all 5 pulls of the horizon are made"):
        live.ask()


def test_a_policy_with_a_fixed_arm_gets_no_observed_arm() -> None:
    live = Fixed(arm=3).live(n_arms=10, seed=1)
    live.observe(7, [1.0])
    live.observe(3, [1.0])
    pull = live.ask()
    assert (pull.arm, live._experiment.turns) == (3, 2)


def test_restored_arms_are_drawn_next() -> None:
    live = new(ma.MOSS(), n_arms=1000)
    tried = [pull.arm for pull in live.ask(5)]
    for pull in live.pending:
        live.tell(pull, 1.0)
    live.retire(tried[:2])
    assert live.n_arms == 998
    with pytest.raises(ma.TurnError, match=f"Cannot restore arm {tried[2]}: it is not retired"):
        live.restore([tried[0], tried[2]])
    assert live.n_arms == 998
    live.restore(tried[:2])
    assert live.n_arms == 1000
    assert [pull.arm for pull in live.ask(2)] == tried[:2]
    live.add_arms(5)
    assert {pull.arm for pull in live.ask(1001)} >= {1000, 1001, 1002, 1003, 1004}
    assert next(arm for arm in live.arms() if arm.arm == tried[0]).pulls >= 2


def test_retiring_many_is_all_or_nothing() -> None:
    live = new(n_arms=4)
    live.retire(2)
    for arms, message in (
        ([0, 2], "Cannot retire arm 2: it is already retired"),
        ([0, 9], "Unknown arm 9"),
        ([0, 1, 3], "Cannot retire 3 arms: none would be left"),
    ):
        with pytest.raises(ma.ManyarmsError, match=message):
            live.retire(arms)
        assert live.n_arms == 3
    live.retire([])
    live.retire([0, 0, 1])
    assert live.n_arms == 1


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_every_policy_can_observe_and_has_seasons(policy: ma.Policy) -> None:
    live, luck = policy.live(n_arms=60, horizon=400, seed=3), random.Random(1)
    for k in range(120):
        if k % 12 == 0:
            live.observe(luck.randrange(60), [0.0, 1.0])
        live.tell(live.ask(), float(luck.random() < 0.4))
    live.season(horizon=70)
    assert known(copied(live)) == known(live)
    for _ in range(60):
        live.tell(live.ask(), 1.0)
    again = copied(live)
    assert again.verdict() == live.verdict()
    assert again.ask() == live.ask()


def test_a_refused_policy_of_a_season_changes_nothing() -> None:
    live = ma.Prospector().live(n_arms=50, seed=1)
    with pytest.raises(ma.ParameterError, match="`best_mean` must be given to Parallel"):
        live.season(policy=ma.Parallel(), horizon=100)
    assert live.ask().id == 0


def test_a_replay_keeps_unused_known_rewards() -> None:
    first = Fixed(arm=0).live(n_arms=1, horizon=20, seed=1)
    first.tell(first.ask(), 1.0)
    first.season(horizon=5)
    again = copied(first)
    assert first._experiment.ask(more=100) == again._experiment.ask(exactly=0) == 1
    assert [list(one._experiment.stock[0]) for one in (first, again)] == [[1.0], [1.0]]
    assert again._experiment.unused == 1
