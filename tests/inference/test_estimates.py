"""What a handle shows: estimates, intervals, progress and text."""

from __future__ import annotations

import math
from typing import Any

import pytest

import manyarms as ma
from manyarms.inference.confidence_sequences import uniform_half_width
from manyarms.policies import SubSampled
from tests.helpers import ALL_POLICIES, label, play_live, state_of
from tests.live.stores import copied


def _told(rewards: dict[Any, list[float]], **arguments: Any) -> ma.Live:
    """Return a handle with these rewards; the pulls of the first batch are spread evenly."""
    live = ma.MOSS().live(arms=list(rewards), horizon=10_000, **arguments)
    left = {arm: list(values) for arm, values in rewards.items()}
    for pull in live.ask(len(rewards) * max(map(len, rewards.values()))):
        if left[pull.arm]:
            live.tell(pull, left[pull.arm].pop(0))
        else:
            live.abandon(pull)
    assert not any(left.values())
    return live


def test_estimates_by_hand() -> None:
    live = _told({"a": [1.0, 0.0, 1.0, 1.0], "b": [0.5]})
    a, b = sorted(live.arms(), key=lambda arm: str(arm.arm))
    assert (a.estimate, a.told) == (0.75, 4)
    # B(3.5, 1.5) = pi / 16 * 5 / 8, and the first arm has the error 6 * 0.05 / pi^2
    error = 0.3 / (math.pi * (1 + [arm.arm for arm in live.arms()].index("a"))) ** 2
    for mean in a.interval:
        assert 5 / 128 / (mean**3 * (1 - mean)) == pytest.approx(1 / error)
    # B(1, 1) = 1: a mean m is possible while 1 / (pi sqrt(m (1 - m))) is below 1 / error
    assert (b.estimate, b.told, b.retired) == (0.5, 1, False)
    error = 0.3 / (math.pi * (1 + [arm.arm for arm in live.arms()].index("b"))) ** 2
    root = math.sqrt(0.25 - (error / math.pi) ** 2)
    assert b.interval == pytest.approx((0.5 - root, 0.5 + root))
    assert live.recommend() == a


def test_intervals_are_scaled_to_the_range() -> None:
    rewards = [float(k % 2) for k in range(400)]
    narrow, wide = (
        _told({"a": [scale * reward - shift for reward in rewards]}, reward_range=limits)
        for scale, shift, limits in ((1.0, 0.0, (0.0, 1.0)), (4.0, 1.0, (-1.0, 3.0)))
    )
    low, high = narrow.recommend().interval
    assert wide.recommend().interval == pytest.approx((4 * low - 1, 4 * high - 1))


@pytest.mark.parametrize(
    "policy",
    [
        ma.MOSS(sigma=3.0),
        ma.Doubling(ma.MOSSPlusPlus(sigma=3.0)),
        ma.Doubling(SubSampled(ma.MOSS(sigma=3.0), size=2)),
        ma.Guarded(ma.MOSS(), sigma=3.0, bottom=0.0, top=10.0),
        ma.Guarded(ma.MOSS(sigma=3.0), bound="mean", sigma=1.0, bottom=0.0, top=10.0),
    ],
)
def test_without_a_range_the_interval_uses_the_policys_sigma(policy: ma.Policy) -> None:
    live = policy.live(n_arms=1, horizon=100, reward_range=None)
    play_live(live, 100, lambda arm, k: 5.0)
    half = float(uniform_half_width(100, 3.0, error=0.3 / math.pi**2))
    assert live.recommend().interval == pytest.approx((5.0 - half, 5.0 + half))


def test_an_arm_with_one_good_reward_is_not_recommended() -> None:
    live = _told({"lucky": [1.0], "proved": [1.0] * 30 + [0.0] * 10, "poor": [0.0] * 40})
    assert [arm.arm for arm in live.top(10)] == ["proved", "lucky", "poor"]
    assert [arm.arm for arm in live.top(2)] == ["proved", "lucky"]
    live.retire("proved")
    assert live.recommend().arm == "lucky"
    assert {arm.arm for arm in live.arms() if arm.retired} == {"proved"}


def test_there_is_nothing_to_recommend_before_the_first_reward() -> None:
    live = ma.MOSS().live(arms=["a", "b"], horizon=10)
    with pytest.raises(
        ma.TurnError, match="Cannot recommend an arm: no available arm has a reward yet"
    ):
        live.recommend()
    first = live.ask()
    with pytest.raises(ma.TurnError, match="no available arm has a reward yet"):
        live.recommend()
    live.tell(first, 1.0)
    assert live.recommend().arm == first.arm
    live.retire(first.arm)
    with pytest.raises(ma.TurnError, match="no available arm has a reward yet"):
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
    assert progress.stage == policy.stage(state_of(live))


def test_printed_progress_and_arms() -> None:
    live = ma.MOSSPlusPlus().live(arms=["a", "b\nc"], horizon=64, seed=1)
    assert str(live) == (
        "moss++\n0 of 64 pulls (0 %)\n0 rewards told, 0 pending, 0 abandoned\n"
        "0 arms tried; 2 available"
    )
    for pull in live.ask(2):
        live.tell(pull, 0.25)
    live.retire("a")
    live.ask()
    assert str(live.progress()) == (
        "3 of 64 pulls (4.69 %), iteration 1 of 3\n"
        "2 rewards told, 1 pending, 0 abandoned; mean reward 0.25\n"
        "2 arms tried; 1 available"
    )
    low, high = live.recommend().interval
    assert str(live).splitlines()[-3:] == [
        "best arms so far, by lower bound",
        "(95 % confidence, valid for all arms at once and at any time):",
        rf"  'b\nc'                     0.25 in [{low:.3g}, {high:.3g}], 1 told",
    ]
    assert repr(live) == "<Live moss++: 3 of 64 pulls on 1 arm, 1 pending>"
    words = {arm.arm: str(arm) for arm in live.arms()}
    assert words["a"].startswith("arm 'a': 0.25, between ")
    assert words["a"].endswith(
        " (1 pull, 1 reward told, retired; 95 % confidence, valid for all arms at once and at any "
        "time)"
    )
    live.add_arms(["x" * 200])
    asked = next(pull for pull in live.ask(60) if pull.arm[0] == "x")
    long = next(arm for arm in live.arms() if arm.arm == asked.arm)
    assert str(long).startswith("arm 'xxxxx")
    assert "…: no rewards yet (" in str(long)
    assert len(str(long)) < 120


def test_a_dataframe_has_a_row_for_every_touched_arm() -> None:
    live = _told({"a": [1.0, 0.0], "b": [0.5]})
    live.retire("b")
    table = live.to_dataframe().set_index("arm")
    columns = ["estimate", "low", "high", "pulls", "told", "retired"]
    assert list(table.columns) == columns
    a = next(arm for arm in live.arms() if arm.arm == "a")
    assert table.loc["a", ["estimate", "low", "high", "told", "retired"]].tolist() == [
        *(0.5, *a.interval, 2),
        False,
    ]
    assert bool(table.loc["b", "retired"])
    empty = ma.MOSS().live(n_arms=3, horizon=3).to_dataframe()
    assert list(empty.columns) == ["arm", *columns]
    assert len(empty) == 0


def test_means_of_0_1_rewards_are_percentages() -> None:
    """After a reward other than 0 and 1, means are not percentages any more."""
    live = ma.MOSS().live(arms=["a"], horizon=64, seed=1)
    for reward in (1.0, 0.0, 0.0, 0.0):
        live.tell(live.ask(), reward)
    low, high = (f"{100 * end:.3g} %" for end in live.recommend().interval)
    assert str(live.recommend()).startswith(f"arm 'a': 25 %, between {low} and {high} (")
    assert "mean reward 25 %" in str(live.progress())
    assert f"25 % in [{low}, {high}]" in str(live)
    assert live.verdict(target=0.9).goal == "its mean is above 90 %"
    assert "is 25 % so far" in live.verdict(target=0.9).why
    html = live._repr_html_()
    assert ">25 % <" in html
    assert ">100 %</text>" in html
    for mean in ("0.3", "0.333"):  # two halves add up to an integer, but are not rewards of 0 or 1
        live.tell(live.ask(), 0.5)
        assert f"mean reward {mean}\n" in str(live.progress())
        assert live.verdict(target=0.9).goal == "its mean is above 0.9"
    loaded = copied(live)
    loaded.tell(loaded.ask(), 0.5)
    assert "mean reward 0.357\n" in str(loaded.progress())


@pytest.mark.parametrize(
    ("limits", "name", "shown"),
    [((0.0, 1.0), "score", "30 %"), ((0.0, 2.0), None, "0.3"), (None, "clicks", "0.3 per pull")],
    ids=str,
)
def test_a_reward_name_makes_means_from_0_to_1_percentages(
    limits: Any, name: Any, shown: str
) -> None:
    live = ma.MOSS(sigma=2.0).live(arms=["a"], horizon=9, seed=1, reward_range=limits, reward=name)
    live.tell(live.ask(), 0.3)
    assert f"{shown}\n" in str(live.progress())
