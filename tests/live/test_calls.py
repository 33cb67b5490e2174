"""Calls check and may refuse; only the change that they return changes the experiment."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import arm_calls, calls
from manyarms.live.calls import Context
from manyarms.live.snapshots import snapshot


def _played() -> Context:
    """Return five arms: one with a told pull, one abandoned, one pending, one retired."""
    live = ma.MOSS().live(arms=["a", "b", "c", "d", "e"], horizon=6, seed=3)
    told, lost, _ = live.ask(3)
    live.tell(told, 1.0)
    live.abandon(lost)
    live.retire("e")
    return live._context


CHANGES: dict[str, Callable[[Context], Any]] = {
    "ask": lambda context: calls.ask(context),
    "ask 2": lambda context: calls.ask(context, 2),
    "tell": lambda context: calls.tell(context, 2, 1.0),
    "tell_many": lambda context: calls.tell_many(context, [(2, 1.0)]),
    "abandon": lambda context: calls.abandon(context, 2),
    "observe": lambda context: calls.observe(context, "a", [1.0, 0.0]),
    "add_arms": lambda context: arm_calls.add_arms(context, ["f"]),
    "retire": lambda context: arm_calls.retire(context, ["a", "b"]),
    "restore": lambda context: arm_calls.restore(context, "e"),
}


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_changes_nothing_before_its_change_is_applied(command: str) -> None:
    context = _played()
    context.experiment.log = []
    before = snapshot(context.experiment)
    change = CHANGES[command](context)
    assert snapshot(context.experiment) == before
    assert context.experiment.log == []
    change()
    assert snapshot(context.experiment) != before
    assert len(context.experiment.log) > 0


@pytest.mark.parametrize(
    ("refused", "facts"),
    [
        (lambda context: calls.ask(context, 4), {"reason": "horizon", "left": 3}),
        (lambda context: calls.tell(context, 0, 1.0), {"reason": "told", "pull": 0}),
        (lambda context: calls.tell(context, 1, 1.0), {"reason": "abandoned", "pull": 1}),
        (lambda context: calls.abandon(context, 9), {"reason": "unknown pull", "pull": 9}),
        (
            lambda context: calls.tell(context, ma.Pull("no", 2), 1.0),
            {"reason": "other arm", "pull": 2, "arm": "c"},
        ),
        (
            lambda context: calls.tell_many(context, [(2, 1.0), (2, 0.0)]),
            {"reason": "twice", "pull": 2},
        ),
        (lambda context: arm_calls.retire(context, ["a", "e"]), {"reason": "retired", "arm": "e"}),
        (lambda context: arm_calls.retire(context, list("abcd")), {"reason": "last arm"}),
        (
            lambda context: arm_calls.restore(context, ["e", "a"]),
            {"reason": "not retired", "arm": "a"},
        ),
    ],
)
def test_a_refusal_carries_its_facts(refused: Any, facts: dict[str, Any]) -> None:
    context = _played()
    before = snapshot(context.experiment)
    with pytest.raises(ma.TurnError) as caught:
        refused(context)
    told = {name: value for name, value in vars(caught.value).items() if value is not None}
    assert facts.items() <= told.items()
    assert snapshot(context.experiment) == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)
