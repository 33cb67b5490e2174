"""What people see of a handle: estimates, intervals, progress, words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.statistics import uniform_half_width
from tests.helpers import ALL_POLICIES, label, play_live


def _told(rewards: dict[Any, list[float]], **arguments: Any) -> ma.Live:
    """Return a handle that was told these rewards; a batch before the first spreads evenly."""
    live = ma.MOSS().live(arms=list(rewards), horizon=10_000, **arguments)
    left = {arm: list(values) for arm, values in rewards.items()}
    for pull in live.ask(len(rewards) * max(map(len, rewards.values()))):
        if left[pull.arm]:
            live.tell(pull, left[pull.arm].pop(0))
        else:
            live.abandon(pull)
    assert not any(left.values())
    return live


def test_estimates_are_those_computed_by_hand() -> None:
    live = _told({"a": [1.0, 0.0, 1.0, 1.0], "b": [0.5]})
    a, b = sorted(live.arms(), key=lambda arm: str(arm.arm))
    # sigma = 1/2: (1/2) / 4 * sqrt((4 + 12.5) log((4 + 12.5) / (12.5 * 0.05^2))) = 1.27...
    assert uniform_half_width(4, 0.5) == pytest.approx(0.125 * math.sqrt(16.5 * math.log(528)))
    assert (a.estimate, a.interval, a.told) == (0.75, (0.0, 1.0), 4)
    assert (b.estimate, b.interval, b.told, b.retired) == (0.5, (0.0, 1.0), 1, False)
    assert live.recommend() == a


def test_limits_by_hand_where_the_range_does_not_cut_them() -> None:
    live = ma.MOSS().live(n_arms=1, horizon=400, reward_range=(-1.0, 3.0))
    for pull in live.ask(400):
        live.tell(pull, float(pull.id % 2))
    half = 2.0 / 400 * math.sqrt(412.5 * math.log(412.5 / (12.5 * 0.0025)))
    assert live.recommend().interval == pytest.approx((0.5 - half, 0.5 + half))


@pytest.mark.parametrize("policy", [ma.MOSS(sigma=3.0), ma.Doubling(ma.MOSSPlusPlus(sigma=3.0))])
def test_without_a_range_the_interval_has_the_policys_sigma(policy: ma.Policy) -> None:
    live = policy.live(n_arms=1, horizon=100, reward_range=None)
    play_live(live, 100, lambda arm, k: 5.0)
    half = uniform_half_width(100, 3.0)
    assert live.recommend().interval == pytest.approx((5.0 - half, 5.0 + half))


def test_intervals_hold_at_all_times_at_once() -> None:
    """1000 arms, each watched for 2000 rewards: at most 5 % may ever leave their interval.

    With probability 1 - 1e-9 at most 88 of 1000 do if each does with probability 0.05 (the upper
    1e-9 quantile of the binomial distribution is 95). Means are those where Bernoulli rewards
    vary most, and less.
    """
    generator = np.random.default_rng(5)
    counts = np.arange(1, 2001)
    halves = np.array([uniform_half_width(int(count), 0.5) for count in counts])
    for mean in (0.5, 0.1):
        rewards = generator.random((1000, 2000)) < mean
        errors = np.abs(np.cumsum(rewards, axis=1) / counts - mean)
        ever_wrong = int((errors > halves).any(axis=1).sum())
        assert ever_wrong <= 95
        # and the interval is no idle one: a tenth as wide it fails for most arms
        assert int((errors > halves / 10).any(axis=1).sum()) > 500


def test_an_arm_that_was_lucky_once_does_not_win() -> None:
    live = _told({"lucky": [1.0], "proved": [1.0] * 30 + [0.0] * 10, "poor": [0.0] * 40})
    assert [arm.arm for arm in live.top(10)] == ["proved", "poor", "lucky"]
    assert [arm.arm for arm in live.top(2)] == ["proved", "poor"]
    live.retire("proved")
    assert live.recommend().arm == "poor"
    assert {arm.arm for arm in live.arms() if arm.retired} == {"proved"}


def test_there_is_nothing_to_recommend_before_the_first_reward() -> None:
    live = ma.MOSS().live(arms=["a", "b"], horizon=10)
    with pytest.raises(ma.TurnError, match="Cannot recommend an arm: .* no reward was told yet"):
        live.recommend()
    first = live.ask()
    with pytest.raises(ma.TurnError, match="no reward was told yet"):
        live.recommend()
    live.tell(first, 1.0)
    assert live.recommend().arm == first.arm
    live.retire(first.arm)
    with pytest.raises(ma.TurnError, match="no reward was told yet"):
        live.recommend()
    with pytest.raises(ma.ParameterError, match="`k` must be an integer >= 1"):
        live.top(0)


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_progress_adds_up(policy: ma.Policy) -> None:
    live = policy.live(n_arms=30, horizon=200, seed=2)
    pulls = live.ask(120)
    live.tell_many([(pull, pull.id % 4 / 4) for pull in pulls[:80]])
    for pull in pulls[80:90]:
        live.abandon(pull)
    progress = live.progress()
    assert (progress.pulls, progress.horizon) == (120, 200)
    assert (progress.told, progress.pending, progress.abandoned) == (80, 30, 10)
    assert progress.reward == 80 * 1.5 / 4
    assert progress.mean_reward == 0.375
    assert progress.arms_touched == len({pull.arm for pull in pulls})
    assert progress.n_arms == 30
    assert sum(arm.pulls for arm in live.arms()) == 120
    assert sum(arm.told for arm in live.arms()) == 80
    assert progress.stage == policy.stage(live._game.state)


def test_words() -> None:
    live = ma.MOSSPlusPlus().live(arms=["a", "b\nc"], horizon=64, seed=1)
    assert str(live) == (
        "moss++\n0 of 64 pulls (0 %)\n0 rewards told, 0 pending, 0 abandoned\n"
        "0 arms tried; 2 to choose from"
    )
    for pull in live.ask(2):
        live.tell(pull, 0.25)
    live.retire("a")
    live.ask()
    assert str(live.progress()) == (
        "3 of 64 pulls (4.69 %), iteration 1 of 3\n"
        "2 rewards told, 1 pending, 0 abandoned; mean reward 0.25\n"
        "2 arms tried; 1 to choose from"
    )
    assert str(live).splitlines()[-2:] == [
        "best arms so far:",
        r"  'b\nc'                     0.25 in [0, 1], 1 told",
    ]
    assert repr(live) == "<Live moss++: 3 of 64 pulls on 1 arms, 1 pending>"
    words = {arm.arm: str(arm) for arm in live.arms()}
    assert words["a"] == "arm 'a': 0.25, between 0 and 1 (1 pull, 1 reward told, retired)"
    live.add_arms(["x" * 200])
    asked = next(pull for pull in live.ask(60) if pull.arm[0] == "x")
    long = next(arm for arm in live.arms() if arm.arm == asked.arm)
    assert str(long).startswith("arm 'xxxxx")
    assert "…: nothing known (" in str(long)
    assert len(str(long)) < 120


def test_words_without_a_horizon() -> None:
    live = ma.Quantile().live(n_arms=5)
    live.tell(live.ask(), 1.0)
    assert str(live.progress()).startswith("1 pull, round 1\n1 reward told")
    assert math.isnan(live.progress().share)


def test_a_dataframe_has_a_row_for_every_arm_touched() -> None:
    live = _told({"a": [1.0, 0.0], "b": [0.5]})
    live.retire("b")
    table = live.to_dataframe().set_index("arm")
    columns = ["estimate", "low", "high", "pulls", "told", "retired"]
    assert list(table.columns) == columns
    assert table.loc["a", ["estimate", "low", "high", "told", "retired"]].tolist() == [
        *(0.5, 0.0, 1.0, 2),
        False,
    ]
    assert bool(table.loc["b", "retired"])
    empty = ma.MOSS().live(n_arms=3, horizon=3).to_dataframe()
    assert list(empty.columns) == ["arm", *columns]
    assert len(empty) == 0
