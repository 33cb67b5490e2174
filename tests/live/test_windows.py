"""Reward windows: pulls without a reward expire, also after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.errors import RewardWarning


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1e9

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def begun(clock: Clock, **given: Any) -> ma.Live:
    return ma.MOSS().live(n_arms=5, horizon=500, seed=1, window=600, now=clock, **given)


def test_an_expired_pull_is_abandoned(clock: Clock) -> None:
    live = begun(clock)
    first, second = live.ask(2)
    clock.time += 599
    live.tell(first, 1.0)
    assert live.pending == [second]
    clock.time += 1
    assert live.pending == []
    assert live.progress().abandoned == 1
    with pytest.raises(ma.TurnError, match="or its window of 600 s has ended"):
        live.tell(second, 1.0)
    live.tell(second, 1.0, again="ignore")


def test_an_expired_pull_gets_the_reward_for_missing_ones(clock: Clock) -> None:
    live = begun(clock, missing=0)
    live.ask(3)
    clock.time += 601
    how = live.progress()
    assert (how.told, how.pending, how.abandoned, how.reward) == (3, 0, 0, 0.0)


def test_held_rewards_count_when_the_window_ends(clock: Clock) -> None:
    live = begun(clock, missing=0.0, hold=True)
    first, second = live.ask(2)
    live.tell(first, 1.0)
    assert live.progress().told == 0
    assert live.pending == [second]
    with pytest.raises(ma.TurnError, match="already been told"):
        live.tell(first, 0.0)
    clock.time += 600
    assert (live.progress().told, live.progress().reward) == (2, 1.0)


def test_a_held_reward_may_be_abandoned(clock: Clock) -> None:
    live = begun(clock, hold=True)
    pull = live.ask()
    live.tell(pull, 1.0)
    live.abandon(pull)
    clock.time += 600
    assert (live.progress().told, live.progress().abandoned) == (0, 1)


def test_windows_end_after_a_restart_also_for_the_control(clock: Clock, tmp_path: Path) -> None:
    given: dict[str, Any] = {"missing": 0.0, "control": "today", "share": 0.5}
    with begun(clock, **given, store=tmp_path / "shop.db") as live:
        today = [pull for pull in live.ask(40) if pull.arm == "today"]
        assert today
    clock.time += 600
    with ma.load(tmp_path / "shop.db", now=clock) as live:
        assert live.pending == []
        assert live._experiment.ledger.control is not None
        assert live._experiment.ledger.control.told == len(today)
        assert not any(event.kind == "expired" for event in live.events())  # nothing is written
        clock.time += 1
        kept = live.ask()
        kinds = [event.kind for event in live.events()]
        assert (kinds.count("asked"), kinds.count("expired")) == (41, 40)
    with ma.load(tmp_path / "shop.db", now=clock) as live:
        assert live.pending == [kept]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"window": 0.0}, "`window` must be a number >= 0.1"),
        ({"window": None, "missing": 0.0}, "`missing` needs `window`"),
        ({"window": None, "hold": True}, "`hold` needs `window`"),
        ({"missing": 7.0}, "Cannot fill in reward 7.0"),
        ({"hold": "yes"}, "`hold` must be"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ma.ParameterError, match=said):
        ma.MOSS().live(n_arms=5, horizon=9, **{"window": 60.0} | given)


def test_a_warning_if_only_ones_are_told(clock: Clock) -> None:
    live = ma.MOSS().live(n_arms=5, horizon=5000, seed=1)
    for k, pull in enumerate(live.ask(255)):
        if k % 5 == 0:
            live.tell(pull, 1.0)
    with pytest.warns(
        RewardWarning, match="report a reward of 0 for each, or start an experiment with `window`"
    ):
        live.ask()
    live.ask(256)  # no second warning
    assert "the largest possible" in live.progress().warning
    assert "the largest possible" in str(live.verdict())
    assert live.progress().warning in str(live.progress())


@pytest.mark.parametrize("hold", [False, True])
def test_expired_pulls_without_a_reward_count_as_missing(clock: Clock, hold: bool) -> None:
    live = ma.MOSS().live(n_arms=5, seed=1, horizon=5000, window=600, hold=hold, now=clock)
    live.tell_many([(pull, 1.0) for pull in live.ask(1000)[::5]])
    clock.time += 601
    assert (live.progress().pending, live.progress().abandoned) == (0, 800)
    assert "800 of 1000 pulls have no reward" in live.progress().warning
    with pytest.warns(RewardWarning, match="800 of 1000 pulls have no reward"):
        live.ask(1000)  # also in batches


def test_a_warning_after_asks_in_batches(recwarn: pytest.WarningsRecorder) -> None:
    live = ma.MOSS().live(n_arms=5, seed=1, horizon=100_000)
    for _ in range(3):
        live.tell_many([(pull, 1.0) for pull in live.ask(1000)[::5]])
    (warning,) = recwarn.list
    assert warning.category is RewardWarning
    assert "800 of 1000 pulls have no reward" in str(warning.message)


@pytest.mark.parametrize("hold", [False, True])
def test_differing_late_rewards_are_detected_unless_held(clock: Clock, hold: bool) -> None:
    """Clicks come early; zeros are reported late, or filled in when the window ends."""
    live = begun(clock, missing=0.0, hold=hold)
    for k in range(400):
        pull = live.ask()
        if k % 3 == 0:
            live.tell(pull, 1.0)
        elif k % 3 == 1:
            clock.time += 100
            live.tell(pull, 0.0)
        else:
            clock.time += 600
    assert ("depends on the delay" in live.progress().warning) == (not hold)
    assert ("depends on the delay" in live.verdict().warning) == (not hold)


@pytest.mark.parametrize("wait", [100, 600])
def test_filled_in_zeros_are_neither_missing_nor_late(clock: Clock, wait: int) -> None:
    live = begun(clock, missing=0.0)
    for k in range(400):
        pull = live.ask()
        if k % 3 == 0:
            live.tell(pull, 1.0)
        clock.time += wait
    assert live.progress().warning == ""
