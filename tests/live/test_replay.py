"""Events played again: the same game, and only events that can follow each other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.live import replay
from manyarms.live.game import LiveGame
from manyarms.live.saving import restored, snapshot
from manyarms.live.store import Event, EventKind, Events
from tests.inference.games import new
from tests.live.stores import on_shelf


@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.Doubling(ma.Parallel(best_mean=0.9))])
def test_what_is_played_again_is_the_handle_s_own_game(policy: ma.Policy) -> None:
    chance = random.Random(2)
    live = policy.live(n_arms=60, horizon=None if policy.anytime else 3000, seed=3)
    for k in range(500):
        if k == 100:
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
    replay.replay(played, events, "it")
    assert snapshot(played) == live.to_bytes()
    events.arm[np.flatnonzero(events.kind == EventKind.ASKED)[-1]] += 1
    again = restored(saved, None, "it")
    with pytest.raises(ma.SavedFileError, match=r"pull \d+ was of arm \d+, and .* now chooses arm"):
        replay.replay(again, events, "it")


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
    with pytest.raises(ma.SavedFileError, match="it contradicts itself|now chooses arm"):
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
