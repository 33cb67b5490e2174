"""Playing events again: every choice is computed anew, and compared with the one recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from manyarms.errors import ParameterError, SavedFileError, TurnError, UnknownArmError
from manyarms.live import commands
from manyarms.live.arms import ArmNames
from manyarms.live.commands import Change
from manyarms.live.control import OF_CONTROL
from manyarms.live.game import LiveGame
from manyarms.live.saving import blame_loaded_state
from manyarms.live.store import EventKind, Events


def replay(game: LiveGame, events: Events, what: str) -> None:
    """Play events again, on the game that was saved before them.

    `what` names their store in errors. After an error the game is of no use any more.
    """
    names = iter(events.names)
    rows = zip(*(column.tolist() for column in events[:4]), strict=True)
    with blame_loaded_state(game, what):
        for place, (kind, pull, arm, reward) in enumerate(rows):
            try:
                if kind == _ASKED:
                    _ask(game, pull, arm, what)
                else:
                    _command(kind)(game, pull, arm, reward, names)()
            except (TurnError, ParameterError, UnknownArmError) as error:
                raise SavedFileError(
                    f"{what} contradicts itself: event {place} cannot follow those before it. "
                    f"{error}"
                ) from error
    if next(names, None) is not None:
        raise SavedFileError(f"{what} contradicts itself: it names arms that never came.")


def _ask(game: LiveGame, number: int, arm: int, what: str) -> None:
    commands.check_horizon(game, 1)
    control = game.control
    if number >= OF_CONTROL or (control is not None and control.due):
        _ask_control(game, number)
        return
    if number != game.pulls:
        raise TurnError(f"Pull {number} was asked for, and the next one is {game.pulls}.")
    game.ask()
    chosen = game.flight[number].arm
    if chosen != arm:
        raise SavedFileError(
            f"{what} says that pull {number} was of arm {arm}, and {game.policy} now chooses "
            f"arm {chosen}. Open it with the manyarms that wrote it, and call live.close() there: "
            f"that keeps a snapshot, from which this one goes on."
        )


def _ask_control(game: LiveGame, number: int) -> None:
    control = game.control
    if control is None or not control.due or number != OF_CONTROL + control.asked:
        raise TurnError(f"Pull {number} was asked for, and it was not its turn.")
    game.ask_control()


def _tell(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    return commands.tell(game, pull, reward)


def _abandon(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    return commands.abandon(game, pull)


def _add(game: LiveGame, pull: int, count: int, reward: float, names: Iterator[Any]) -> Any:
    new: Any = count
    if isinstance(game.arms, ArmNames):
        new = list(islice(names, max(0, count)))
    if count < 1 or (new != count and len(new) != count):
        raise ParameterError(f"{count} arms were added, and not so many have names.")
    return commands.add_arms(game, new)


def _retire(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    return commands.retire(game, _name(game, arm))


def _restore(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    return commands.restore(game, _name(game, arm))


def _observe(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    return commands.observe(game, _name(game, arm), reward)


def _answer(game: LiveGame, pull: int, arm: int, reward: float, names: Iterator[Any]) -> Any:
    commands.tell(game, pull, reward)  # the same rules
    left = game.stock.get(game.flight[pull].arm)
    if not left or left[0] != reward:
        raise TurnError(f"Pull {pull} was answered with {reward}, which was not observed.")
    return lambda: game.answer(pull)


def _name(game: LiveGame, number: int) -> Any:
    if not 0 <= number < game.arms.count:
        raise UnknownArmError(f"Unknown arm {number}. There are {game.arms.count}.")
    return game.arms.name(number)


_ASKED = int(EventKind.ASKED)
_COMMANDS: dict[int, Callable[[LiveGame, int, int, float, Iterator[Any]], Change[Any]]] = {
    EventKind.TOLD: _tell,
    EventKind.ABANDONED: _abandon,
    EventKind.ADDED: _add,
    EventKind.RETIRED: _retire,
    EventKind.RESTORED: _restore,
    EventKind.OBSERVED: _observe,
    EventKind.ANSWERED: _answer,
}


def _command(kind: int) -> Callable[[LiveGame, int, int, float, Iterator[Any]], Change[Any]]:
    try:
        return _COMMANDS[kind]
    except KeyError:
        raise ParameterError(f"Events of kind {kind} are not known.") from None
