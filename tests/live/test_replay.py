"""Events played again: by compiled code as by hand, and only those that can follow each other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import replay
from manyarms.live.game import LiveGame
from manyarms.live.saving import restored, snapshot
from manyarms.live.store import Event, EventKind, Events
from tests.live.games import in_turn, new
from tests.live.stores import on_shelf


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        ma.MOSSPlusPlus(),
        pytest.param(ma.Doubling(ma.Parallel(best_mean=0.9)), marks=pytest.mark.long),
    ],
)
def test_compiled_replay_is_the_handle_s_own(policy: ma.Policy) -> None:
    chance = random.Random(2)
    live = policy.live(n_arms=60, horizon=None if policy.anytime else 3000, seed=3)
    for k in range(2000):
        if k == 500:
            saved, log = on_shelf(live)
        pending = live.pending
        if not pending or chance.random() < 0.55:
            live.ask()
        elif chance.random() < 0.05:
            live.abandon(chance.choice(pending))
        else:
            live.tell(chance.choice(pending), chance.random())
    events = Events.of(log)
    played = restored(saved, None, "it")
    assert replay.replay_compiled(played, events)
    assert snapshot(played) == live.to_bytes()
    events.arm[0] += 1
    again = restored(saved, None, "it")
    assert not replay.replay_compiled(again, events)
    assert snapshot(again) == saved
    with pytest.raises(ma.SavedFileError, match=r"pull \d+ was of arm \d+, and .* now chooses arm"):
        replay.replay(again, events, "it")


@pytest.mark.compiled
def test_long_histories_are_played_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    live = new(ma.MOSSPlusPlus())
    saved, log = on_shelf(live)
    in_turn(live, 60)
    played = restored(saved, None, "it")
    replay.compile_replay(ma.MOSSPlusPlus())  # as `manyarms warm --replay` does
    assert replay._is_cached(played)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "replay_by_hand", None)
        replay.replay(played, Events.of(log), "it", long=100)
    assert snapshot(played) == live.to_bytes()
    assert not replay.replay_compiled(restored(saved, None, "it"), Events.of(log), most=10)
    live.add_arms(3)  # arrays do not grow: by hand from here
    assert not replay.replay_compiled(restored(saved, None, "it"), Events.of(log))
    played = restored(saved, None, "it")
    replay.replay(played, Events.of(log), "it", long=100, very_long=100)
    assert snapshot(played) == live.to_bytes()


@pytest.mark.parametrize(("cached", "very_long", "compiles"), [(0, 99, 0), (1, 99, 1), (0, 20, 1)])
def test_the_compiler_is_waited_for_only_if_that_is_quicker(
    cached: int, very_long: int, compiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = new(ma.MOSS())
    saved, log = on_shelf(live)
    in_turn(live, 10)
    tried = []
    monkeypatch.setattr(replay, "_is_cached", lambda game: bool(cached))
    monkeypatch.setattr(replay, "replay_compiled", lambda game, events: tried.append(game))
    played = restored(saved, None, "it")
    replay.replay(played, Events.of(log), "it", long=20, very_long=very_long)
    assert len(tried) == compiles
    assert snapshot(played) == live.to_bytes()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_warm_code_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path))
    game = restored(on_shelf(ma.Quantile().live(n_arms=60))[0], None, "it")
    assert not replay._is_cached(game)
    replay.compile_replay(ma.Quantile())
    assert replay._is_cached(game)


def _begun() -> LiveGame:
    game = new()._game
    game.ask()
    return game


@pytest.mark.parametrize(
    "events",
    [
        [Event(EventKind.TOLD, 1, 0, 1.0)],
        [Event(EventKind.TOLD, 0, 0, float("nan"))],
        [Event(EventKind.TOLD, 0, 0, 1.0), Event(EventKind.ABANDONED, 0, 0)],
        [Event(EventKind.ASKED, 0, 0)],
        [Event(EventKind.ASKED, 2, 0)],
        [Event(EventKind.ASKED, 1, 12)],
        [Event(EventKind.ASKED, 1, -1)],
        [Event(EventKind.ASKED, 1, 3), Event(EventKind.TOLD, 2, 3, 1.0)],
        [Event(EventKind.ADDED, -1, 0)],
        [Event(EventKind.ADDED, -1, 2, names=("a",))],
        [Event(EventKind.ASKED, 1, 12), Event(EventKind.ADDED, -1, 1)],
        [Event(EventKind.RETIRED, -1, 12)],
        [Event(EventKind.RETIRED, -1, 3), Event(EventKind.RETIRED, -1, 3)],
        [Event(EventKind.RETIRED, -1, arm) for arm in range(12)],
        [Event(EventKind.RESTORED, -1, 3)],
        [Event(EventKind.OBSERVED, -1, 12, 1.0)],
        [Event(EventKind.OBSERVED, -1, 3, 2.0)],
        [Event(EventKind.ANSWERED, 0, 0, 1.0)],
        [Event(EventKind.OBSERVED, -1, 3, 1.0), Event(EventKind.ANSWERED, 0, 3, 1.0)],
        [Event(EventKind.REPORTED, 1, 3)],
    ],
)
def test_events_that_cannot_follow_each_other_are_refused(events: list[Event]) -> None:
    with pytest.raises(ma.SavedFileError, match="it contradicts itself|unknown kind"):
        replay.replay(_begun(), Events.of(events), "it")


@pytest.mark.parametrize("names", [("a",), ("c", "c"), ("c",), (), ("c", None)])
def test_arms_that_cannot_come_are_refused(names: Any) -> None:
    game = ma.MOSS().live(arms=["a", "b"], horizon=9)._game
    with pytest.raises(ma.SavedFileError, match="it contradicts itself"):
        replay.replay(game, Events.of([Event(EventKind.ADDED, -1, 2, names=names)]), "it")


@pytest.mark.parametrize(
    ("limits", "reward"), [((0.0, 1.0), 1.1), ((-1.0, 0.0), 0.5), (None, 1e308), (None, -1e308)]
)
def test_rewards_that_cannot_be_are_refused(limits: Any, reward: float) -> None:
    game = new(reward_range=limits)._game
    game.ask()
    with pytest.raises(ma.SavedFileError, match="it contradicts itself"):
        replay.replay(game, Events.of([Event(EventKind.TOLD, 0, 0, reward)]), "it")


def test_no_events() -> None:
    game = _begun()
    known = snapshot(game)
    replay.replay(game, Events.of([]), "it")
    assert snapshot(game) == known
