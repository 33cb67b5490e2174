"""The rules of a turn: what each call of a handle, or request to a service, may do to a game.

A command looks at the game and at what it was given. It raises where it refuses, and changes
nothing in any case: it returns the change, a function to be called next, or None where there is
nothing to do. So whatever raises before `change()` is a refusal, and whatever raises within it has
left the game half changed.

    change = commands.tell(game, pull, 1.0)  # may refuse
    if change is not None:
        change()  # events are in `game.log`

Refusals are `TurnError`, whose `reason` is for programs, `UnknownArmError` and `ParameterError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from manyarms.core.checks import check_choice, check_int
from manyarms.errors import ParameterError, TurnError
from manyarms.live.calls import in_list, pairs_of
from manyarms.live.checks import check_reward
from manyarms.live.control import OF_CONTROL
from manyarms.live.game import LiveGame
from manyarms.live.pulls import Pull
from manyarms.protocol.policy import arrive
from manyarms.protocol.policy import retire as retire_arm

T = TypeVar("T")
Change: TypeAlias = Callable[[], T]

MOST_PULLS = 1_000_000  # of one ask: some 300 bytes each


def ask(game: LiveGame, k: Any = None, most: int = 0) -> Change[Pull | list[Pull]]:
    """Return a change that returns the next pull, or a list of the next `k`.

    Pulls for which a reward was observed are answered, and not among them; `most` is as for
    `LiveGame.ask_for`.
    """
    if k is None:
        check_horizon(game, 1)
        return partial(_ask_one, game) if game.stock or game.control else game.ask
    fix = "Pass the number of pulls, or nothing for a single one."
    if isinstance(k, int) and k > MOST_PULLS:
        fix = "Ask again for more: each pull takes memory until its reward is told."
    count = check_int("k", k, at_least=1, at_most=MOST_PULLS, fix=fix)
    check_horizon(game, count)
    return partial(game.ask_for, count, most)


def _ask_one(game: LiveGame) -> Pull:
    return game.ask_for(1)[0]


def check_horizon(game: LiveGame, count: int) -> None:
    """Raise unless the horizon has room for so many pulls."""
    if game.horizon is None or game.pulls + count <= game.horizon:
        return
    left = game.horizon - game.pulls
    message = (
        f"Cannot ask: all {game.horizon} pulls of the horizon are made. Go on with "
        f"live.season(horizon=...), a new game that remembers this one; or start without a "
        f"horizon, with an anytime policy such as Prospector()."
    )
    if left > 0:
        message = (
            f"Cannot ask for {count} pulls: {left} of {game.horizon} are left. Ask for {left}."
        )
    raise TurnError(message, reason="horizon", left=left)


def tell(game: LiveGame, pull: Any, reward: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that tells a reward; None if its pull has ended and `again` is "ignore"."""
    value = check_reward(reward, game.reward_range)
    number = _in_flight(game, pull, again, "tell")
    return None if number is None else lambda: game.tell(number, value)


def tell_many(game: LiveGame, rewards: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that tells several rewards; if one is refused, none is told."""
    check_choice("again", again, ("refuse", "ignore"))
    values: dict[int, float] = {}
    for place, (pull, reward) in enumerate(pairs_of(rewards)):
        try:
            value = check_reward(reward, game.reward_range)
            number = _in_flight(game, pull, again, "tell")
            if number in values and again == "refuse":
                raise TurnError(f"Cannot tell pull {number} twice.", reason="twice", pull=number)
        except (ParameterError, TurnError) as error:
            raise error.framed(f"{in_list(place, pull)}: ", " Nothing was told.") from None
        if number is not None:
            values.setdefault(number, value)
    return partial(_tell_all, game, values) if values else None


def _tell_all(game: LiveGame, values: dict[int, float]) -> None:
    for number, value in values.items():
        game.tell(number, value)


def abandon(game: LiveGame, pull: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that gives up a pull; None if it has ended and `again` is "ignore"."""
    number = _in_flight(game, pull, again, "abandon")
    return None if number is None else partial(game.abandon, number)


def observe(game: LiveGame, arm: Any, rewards: Any) -> Change[None] | None:
    """Return a change that keeps rewards of an arm which no pull of this game earned."""
    several = rewards if isinstance(rewards, Iterable) else [rewards]
    values = [check_reward(reward, game.reward_range, "observe") for reward in several]
    number = game.arms.number(arm)
    return partial(game.observe, number, values) if values else None


def add_arms(game: LiveGame, arms: Any) -> Change[Sequence[Any]]:
    """Return a change that adds arms, and returns their names."""
    game.check_can(arrive)
    return partial(_add, game, game.arms.fresh(arms))


def _add(game: LiveGame, names: Any) -> Any:
    if len(names) > 0:
        game.arrive(names)
    return names


def retire(game: LiveGame, arms: Any) -> Change[None]:
    """Return a change that retires an arm or several; if one is refused, none is retired."""
    game.check_can(retire_arm)
    chosen = _numbers(game, arms)
    for number in chosen:
        if number in game.retired:
            name = game.arms.name(number)
            message = f"Cannot retire arm {name!r}: it is retired already."
            raise TurnError(message, reason="retired", arm=name)
    if game.n_arms <= len(chosen):
        what = f"{len(chosen)} arms: none would be left"
        if len(chosen) == 1:
            what = f"arm {game.arms.name(chosen[0])!r}: it is the last one"
        raise TurnError(f"Cannot retire {what}. Add others first.", reason="last arm")
    return partial(_each, game.retire, chosen)


def restore(game: LiveGame, arms: Any) -> Change[None]:
    """Return a change that brings a retired arm back, or several; all of them, or none."""
    game.check_can(arrive)
    chosen = _numbers(game, arms)
    for number in chosen:
        if number not in game.retired:
            name = game.arms.name(number)
            message = f"Cannot restore arm {name!r}: it is not retired."
            raise TurnError(message, reason="not retired", arm=name)
    return partial(_each, game.restore, chosen)


def _each(change: Callable[[int], None], chosen: list[int]) -> None:
    for number in chosen:
        change(number)


def _numbers(game: LiveGame, arms: Any) -> list[int]:
    """Return the numbers of one arm or of several, each once."""
    many = isinstance(arms, Iterable) and not isinstance(arms, str | bytes)
    return list(dict.fromkeys(map(game.arms.number, arms if many else [arms])))


def _in_flight(game: LiveGame, pull: Any, again: str, verb: str) -> int | None:
    """Return the number of a pull in flight; None if it has ended and that may be ignored."""
    if again != "refuse":
        check_choice("again", again, ("refuse", "ignore"))
    whole = type(pull) is Pull  # else only its id is known
    number = pull.id if whole else pull
    if type(number) is not int:
        fix = "Pass what ask() returned, or its id."
        if isinstance(number, list | tuple):
            fix = "Tell a batch with tell_many([(pull, reward), ...])."
        number = check_int("pull", number, fix=fix)
    arm = game.flying(number)
    if arm is None:
        _check_ended(game, number, again, verb)
        return None
    if whole and pull.arm != (ours := game.called(arm)):
        raise TurnError(
            f"Cannot {verb} pull {number} of arm {pull.arm!r}: this handle's pull {number} is of "
            f"arm {ours!r}. Was it asked of another handle?",
            reason="other arm",
            pull=number,
            arm=ours,
        )
    return number


def _check_ended(game: LiveGame, number: int, again: str, verb: str) -> None:
    """Raise unless a pull that is not in flight has ended, and that may be ignored."""
    control = game.control
    lost = game.abandoned
    known = 0 <= number < game.pulls
    if number >= OF_CONTROL and control is not None:
        known, lost = number < OF_CONTROL + control.asked, control.abandoned
    if not known:
        last = f"The last one is {game.pulls - 1}." if game.pulls else "None was yet."
        raise TurnError(
            f"Cannot {verb} pull {number}: it was not asked for. {last}",
            reason="unknown pull",
            pull=number,
        )
    if again == "refuse":
        gone = number in lost
        done = "it was abandoned" if gone else "its reward was told already"
        raise TurnError(
            f"Cannot {verb} pull {number}: {done}. Pass again='ignore' if you retry.",
            reason="abandoned" if gone else "told",
            pull=number,
        )
