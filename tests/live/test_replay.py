"""Replaying events gives the same experiment, and refuses impossible sequences."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.calls import Context
from manyarms.live.replaying import replay
from manyarms.store import Event
from tests.inference.random_events import new
from tests.live.stores import copied, known


@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.Doubling(ma.Parallel(best_mean=0.9))])
def test_a_replayed_log_gives_the_same_experiment(policy: ma.Policy) -> None:
    chance = random.Random(2)
    live = policy.live(n_arms=60, horizon=None if policy.anytime else 3000, seed=3)
    events: list[Event] = []
    for k in range(500):
        if k == 100:
            before = copied(live)
            live._experiment.log = events
        pending = live.pending
        if not pending or chance.random() < 0.5:
            live.ask()
        elif chance.random() < 0.05:
            live.abandon(chance.choice(pending))
        elif chance.random() < 0.05:
            live.observe(chance.randrange(60), 1.0)
        else:
            live.tell(chance.choice(pending), chance.random())
    again = copied(before)
    replay(*again._context, events, "it", None)
    assert known(again) == known(live)
    last = max(k for k, event in enumerate(events) if event.kind == "asked")
    events[last] = events[last]._replace(arm=(events[last].arm or 0) + 1)
    with pytest.raises(
        ma.SavedFileError,
        match=r"it says that pull \d+ was of arm \d+, but .* now chooses arm \d+: its code has",
    ):
        replay(*before._context, events, "it", None)


def _begun(**given: Any) -> Context:
    live = new(**given)
    live.ask()
    return live._context


def _event(
    kind: str, pull: Any = None, arm: Any = None, reward: Any = None, **detail: Any
) -> Event:
    return Event(1, 0.0, kind, pull, arm, reward, detail or None)


ARM = _begun().experiment.ledger.pending[0].arm  # of the first pull


@pytest.mark.parametrize(
    "events",
    [
        [_event("told", 1, 0, 1.0)],
        [_event("told", 0, ARM, float("nan"))],
        [_event("told", 0, ARM + 1, 1.0)],
        [_event("told", 0, ARM, 1.0), _event("abandoned", 0, ARM)],
        [_event("asked", 2, 0)],
        [_event("asked", 1, 99)],
        [_event("added", count=1 << 60)],
        [_event("retired", None, 12)],
        [_event("retired", None, 3), _event("retired", None, 3)],
        [_event("retired", None, arm) for arm in range(12)],
        [_event("restored", None, 3)],
        [_event("observed", None, 12, 1.0)],
        [_event("observed", None, 3, 2.0)],
        [_event("expired", 0, ARM, 1.0)],
        [_event("season")],
        [_event("season", policy={"name": "moss", "parameters": {}}, horizon=9, seed=-1)],
        [_event("nonsense")],
    ],
)
def test_impossible_sequences_of_events_are_refused(events: list[Event]) -> None:
    with pytest.raises(ma.SavedFileError, match="is inconsistent|now chooses arm"):
        replay(*_begun(), events, "it", None)
