"""Calls check and may refuse; only the change that they return changes the experiment."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import calls
from manyarms.live.calls import Arena
from manyarms.live.snapshots import snapshot


def _played() -> Arena:
    """Return five arms: one with a told pull, one abandoned, one pending, one retired."""
    live = ma.MOSS().live(arms=["a", "b", "c", "d", "e"], horizon=6, seed=3)
    told, lost, _ = live.ask(3)
    live.tell(told, 1.0)
    live.abandon(lost)
    live.retire("e")
    return live._arena


CHANGES: dict[str, Callable[[Arena], Any]] = {
    "ask": lambda arena: calls.ask(arena),
    "ask 2": lambda arena: calls.ask(arena, 2),
    "tell": lambda arena: calls.tell(arena, 2, 1.0),
    "tell_many": lambda arena: calls.tell_many(arena, [(2, 1.0)]),
    "abandon": lambda arena: calls.abandon(arena, 2),
    "observe": lambda arena: calls.observe(arena, "a", [1.0, 0.0]),
    "add_arms": lambda arena: calls.add_arms(arena, ["f"]),
    "retire": lambda arena: calls.retire(arena, ["a", "b"]),
    "restore": lambda arena: calls.restore(arena, "e"),
}


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_changes_nothing_before_its_change_is_called(command: str) -> None:
    arena = _played()
    arena.experiment.log = []
    before = snapshot(arena.experiment)
    change = CHANGES[command](arena)
    assert snapshot(arena.experiment) == before
    assert arena.experiment.log == []
    change()
    assert snapshot(arena.experiment) != before
    assert len(arena.experiment.log) > 0


@pytest.mark.parametrize(
    ("refused", "facts"),
    [
        (lambda arena: calls.ask(arena, 4), {"reason": "horizon", "left": 3}),
        (lambda arena: calls.tell(arena, 0, 1.0), {"reason": "told", "pull": 0}),
        (lambda arena: calls.tell(arena, 1, 1.0), {"reason": "abandoned", "pull": 1}),
        (lambda arena: calls.abandon(arena, 9), {"reason": "unknown pull", "pull": 9}),
        (
            lambda arena: calls.tell(arena, ma.Pull("no", 2), 1.0),
            {"reason": "other arm", "pull": 2, "arm": "c"},
        ),
        (
            lambda arena: calls.tell_many(arena, [(2, 1.0), (2, 0.0)]),
            {"reason": "twice", "pull": 2},
        ),
        (lambda arena: calls.retire(arena, ["a", "e"]), {"reason": "retired", "arm": "e"}),
        (lambda arena: calls.retire(arena, list("abcd")), {"reason": "last arm"}),
        (lambda arena: calls.restore(arena, ["e", "a"]), {"reason": "not retired", "arm": "a"}),
    ],
)
def test_a_refusal_carries_its_facts(refused: Any, facts: dict[str, Any]) -> None:
    arena = _played()
    before = snapshot(arena.experiment)
    with pytest.raises(ma.TurnError) as caught:
        refused(arena)
    told = {name: value for name, value in vars(caught.value).items() if value is not None}
    assert facts.items() <= told.items()
    assert snapshot(arena.experiment) == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)
