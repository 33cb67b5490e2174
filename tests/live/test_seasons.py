"""Seasons, observed rewards and restored arms."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.protocol.policy import layers
from tests.fixed import Fixed
from tests.helpers import EVERY_POLICY, label
from tests.inference.random_events import new
from tests.live.opener import Opener, opened
from tests.live.stores import copied, known


def tape(arm: Any, k: int) -> float:
    """Return the k-th reward of an arm, which does not depend on the policy."""
    return float(random.Random(f"{arm} {k}").random() < (int(arm) % 10) / 10)


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
    """The policy gets them once, as sums, in the order in which arms were first pulled."""
    live = ma.EmpMOSSPlusPlus().live(n_arms=40, horizon=150, seed=3)
    play_tape(live, 150, {})
    live.retire(live.arms()[1].arm)
    known_before = {arm.arm: arm for arm in live.arms() if not arm.retired}
    live.season(horizon=5, policy=Opener(first=0))
    assert (live.horizon, live._experiment.ledger.left) == (155, 5)
    first = live.ask()
    assert list(opened(live)) == list(known_before)
    for arm, (count, total, squares) in opened(live).items():
        before = known_before[arm]
        assert (count, total / count, squares) == (before.told, before.estimate, total)
    best = max(known_before.values(), key=lambda arm: arm.estimate)
    assert first.arm == best.arm
    assert (live.pulls, live._experiment.ledger.left) == (151, 4)


@pytest.mark.parametrize("seed", range(3))
def test_a_season_keeps_what_prospector_knows(seed: int) -> None:
    """It pulls good arms at once; without known rewards it would search first, for 300 pulls."""
    live, luck = ma.Prospector().live(n_arms=3000, seed=seed), random.Random(seed)

    def play(pulls: int) -> int:
        good = 0
        for _ in range(pulls):
            pull = live.ask()
            good += (is_good := pull.arm % 50 == 7)
            live.tell(pull, float(luck.random() < (0.4 if is_good else 0.02)))
        return good

    play(3000)
    live.season(horizon=2000)
    assert play(2000) >= 1900


def test_what_the_policy_is_told_uses_no_promised_pull() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=1200, seed=1)
    late = live.ask(1000)
    live.season(horizon=200)
    live.tell_many([(pull, 1.0) for pull in late])
    live.observe(1, [1.0] * 50)
    assert len(live.ask(200)) == 200
    with pytest.raises(ma.TurnError, match="all 1200 pulls of the horizon are made"):
        live.ask()


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
        assert live._experiment.ledger.known == live.progress().told == 100 * (season + 1)


def test_known_rewards_reach_the_policy_before_the_next_pull() -> None:
    """Late rewards of an earlier season, imported ones, and those of restored arms."""
    live = Opener().live(arms=["a", "b", "c", "d"], seed=1)
    first, second, third = live.ask(3)
    live.tell_many([(first, 1.0), (second, 0.5)])
    live.season(policy=Opener(first=0))
    live.tell(second.id + 1, 0.25)  # of "c", after the season began
    live.observe("d", [0.5, 1.0])
    live.observe("d", [0.5])
    live.retire("b")
    assert opened(live) == {}
    live.ask()
    assert opened(live) == {"a": (1, 1, 1), "c": (1, 0.25, 0.0625), "d": (3, 2.0, 1.5)}
    live.restore("b")
    live.observe("a", [0.0])
    live.ask()
    assert opened(live)["b"] == (1, 0.5, 0.25)
    assert opened(live)["a"] == (2, 1.0, 1.0)
    assert third.arm == "c"


def test_an_arm_that_is_back_before_the_next_pull_was_never_away() -> None:
    live = Opener(first=2).live(n_arms=4, seed=1)
    first, second = live.ask(2)
    live.tell(first, 0.5)
    live.retire([0, 1])
    live.restore([1, 0])
    live.tell(second, 1.0)
    assert live.ask().arm == 1
    assert opened(live) == {0: (1, 0.5, 0.25), 1: (1, 1.0, 1.0)}
    live.retire(1)
    late = live.ask()
    assert late.arm == 0
    live.tell(late.id - 1, 0.75)  # of the retired arm
    live.restore(1)
    live.ask()
    assert opened(live)[1] == (2, 1.75, 1.5625)


def test_a_policy_that_cannot_be_told_known_rewards_says_so() -> None:
    live = Fixed(arm=3).live(n_arms=10, seed=1)
    live.tell(live.ask(), 1.0)
    assert "not used" not in str(live)
    live.observe(7, [1.0])
    assert live.ask().arm == 3
    assert "1 earlier reward not used" in str(live.progress())
    live.season()
    assert "2 earlier rewards not used" in live.progress().stage
    assert live.recommend().arm == 3


@pytest.mark.parametrize("policy", [ma.Prospector(), Opener(first=5)], ids=label)
def test_reasons_are_recorded_unless_arms_are_drawn_at_random(policy: ma.Policy) -> None:
    live = policy.live(n_arms=6, seed=1)
    live.observe(2, [0.0])
    log = live._experiment.log = []
    for _ in range(40):
        live.tell(live.ask(), 0.0)
    live.retire([0, 5])
    live.ask()
    live.add_arms(1)
    live.restore(5)
    for _ in range(400):
        live.tell(live.ask(), 0.0)
    reasons = {event.arm: event.detail for event in log if event.detail and event.arm is not None}
    if isinstance(policy, Opener):
        assert {"why": "by number"} in reasons.values()
        return
    assert reasons[6] == {"why": "new"}
    assert live._experiment.ledger.named <= {2, 5}


def test_comings_and_goings_count_once() -> None:
    """An arm without rewards that comes and goes counts as one that could not be drawn."""
    live = new(ma.MOSS(), n_arms=8, horizon=500)
    for _ in range(5):
        live.retire(3)
        live.ask()
        live.restore(3)
        live.ask()
    assert live._experiment.ledger.missed == {3}


def test_restoring_many_is_all_or_nothing() -> None:
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
    live.add_arms(5)
    assert {pull.arm for pull in live.ask(1001)} >= {1000, 1001, 1002, 1003, 1004}
    assert next(arm for arm in live.arms() if arm.arm == tried[0]).pulls >= 1


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


def test_the_sigma_of_rewards_without_bounds_stays() -> None:
    live = ma.MOSS(sigma=10.0).live(n_arms=3, horizon=100, seed=1, reward_range=None)
    for pull in live.ask(60):
        live.tell(pull, 50.0 + pull.id % 7)
    before, again = live.arms(), copied(live)
    for season in (ma.EmpMOSSPlusPlus(), ma.Doubling(ma.MOSSPlusPlus()), ma.MOSS(sigma=10.0)):
        horizon = None if season.anytime else 50
        again.season(policy=season, horizon=horizon)
        assert again.arms() == copied(again).arms() == before
        played = again._experiment.settings.scaled(again.policy)
        assert {getattr(layer, "sigma", None) or 10.0 for layer in layers(played)} == {10.0}
    refusals = {
        ma.MOSS(sigma=3.0): "`sigma` must be 10 in every season",
        ma.Prospector(): "`bottom`, `top` must be given to prospector",
        ma.MOSS(index="kl"): r"`reward_range` must lie in \[0, 1\] for kl-moss",
    }
    for policy, message in refusals.items():
        with pytest.raises(ma.ParameterError, match=message):
            live.season(policy=policy, horizon=10)
    assert live.arms() == before
