"""Commands: they look and may refuse; only the change that they return changes the game."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import commands
from manyarms.live.game import LiveGame
from manyarms.live.saving import snapshot


def _played() -> LiveGame:
    """Return a game of five arms, with one pull told, one abandoned, one in flight, one retired."""
    live = ma.MOSS().live(arms=["a", "b", "c", "d", "e"], horizon=6, seed=3)
    told, lost, _ = live.ask(3)
    live.tell(told, 1.0)
    live.abandon(lost)
    live.retire("e")
    return live._game


CHANGES: dict[str, Callable[[LiveGame], Any]] = {
    "ask": lambda game: commands.ask(game),
    "ask 2": lambda game: commands.ask(game, 2),
    "tell": lambda game: commands.tell(game, 2, 1.0),
    "tell_many": lambda game: commands.tell_many(game, [(2, 1.0)]),
    "abandon": lambda game: commands.abandon(game, 2),
    "observe": lambda game: commands.observe(game, "a", [1.0, 0.0]),
    "add_arms": lambda game: commands.add_arms(game, ["f"]),
    "retire": lambda game: commands.retire(game, ["a", "b"]),
    "restore": lambda game: commands.restore(game, "e"),
}


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_changes_nothing_before_its_change_is_called(command: str) -> None:
    game = _played()
    game.log = []
    before = snapshot(game)
    change = CHANGES[command](game)
    assert snapshot(game) == before
    assert game.log == []
    change()
    assert snapshot(game) != before
    assert len(game.log) > 0


def test_what_has_ended_may_be_ignored() -> None:
    game = _played()
    assert commands.tell(game, 0, 1.0, "ignore") is None
    assert commands.abandon(game, 1, "ignore") is None
    assert commands.tell_many(game, [(0, 1.0), (1, 0.0)], "ignore") is None


@pytest.mark.parametrize(
    ("refused", "facts"),
    [
        (lambda game: commands.ask(game, 4), {"reason": "horizon", "left": 3}),
        (lambda game: commands.tell(game, 0, 1.0), {"reason": "told", "pull": 0}),
        (lambda game: commands.tell(game, 1, 1.0), {"reason": "abandoned", "pull": 1}),
        (lambda game: commands.abandon(game, 9), {"reason": "unknown pull", "pull": 9}),
        (
            lambda game: commands.tell(game, ma.Pull("no", 2), 1.0),
            {"reason": "other arm", "pull": 2, "arm": "c"},
        ),
        (
            lambda game: commands.tell_many(game, [(2, 1.0), (2, 0.0)]),
            {"reason": "twice", "pull": 2},
        ),
        (lambda game: commands.retire(game, ["a", "e"]), {"reason": "retired", "arm": "e"}),
        (lambda game: commands.retire(game, list("abcd")), {"reason": "last arm"}),
        (lambda game: commands.restore(game, ["e", "a"]), {"reason": "not retired", "arm": "a"}),
    ],
)
def test_a_refusal_carries_its_facts(refused: Any, facts: dict[str, Any]) -> None:
    game = _played()
    before = snapshot(game)
    with pytest.raises(ma.TurnError) as caught:
        refused(game)
    told = {name: value for name, value in vars(caught.value).items() if value is not None}
    assert facts.items() <= told.items()
    assert snapshot(game) == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)


def test_a_reward_that_is_refused_names_its_parameter() -> None:
    game = _played()
    with pytest.raises(
        ma.ParameterError, match=r"^Cannot tell .*The pull is still in flight\.$"
    ) as e:
        commands.tell(game, 2, 7.0)
    assert e.value.parameter == "reward"
    with pytest.raises(ma.ParameterError, match=r"^Cannot observe reward 7.0: .*`reward_range`\.$"):
        commands.observe(game, "a", [0.5, 7.0])
