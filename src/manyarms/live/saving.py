"""The service's games as bytes, and back."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.errors import ManyarmsError, SavedFileError
from manyarms.inference.question import check_setting
from manyarms.live.arms import ArmNames, ArmNumbers, Seats, arms_of
from manyarms.live.checks import check_range, check_reward_name
from manyarms.live.control import OF_CONTROL, Control, check_control
from manyarms.live.game import ArmTally, LiveGame
from manyarms.live.packing import MALFORMED_ERRORS, pack, taken, unpack
from manyarms.protocol.in_flight import InFlight
from manyarms.protocol.policy import MOST_ARMS, Policy
from manyarms.protocol.registry import described_policy, policy_from
from manyarms.protocol.state_dump import (
    Columns,
    column_of_each,
    dump_state,
    restore_state,
    set_each,
)

_TALLY: dict[str, type[np.generic]] = {"asked": np.int64, "told": np.int64, "total": np.float64}
# the columns of pulls in flight, as they are called in files, and the fields of a pull
_IN_FLIGHT = dict(zip(("slot", "arm", "era", "late"), InFlight.__annotations__, strict=True))


def snapshot(game: LiveGame) -> bytes:
    """Return the game as bytes. Equal games give equal bytes."""
    columns = {
        "retired": _whole(sorted(game.retired)),
        "abandoned": np.sort(_whole(game.abandoned)),
        **_dump_tally(game.tally),
        **_dump_flight(game.flight),
        **_dump_observed(game),
        **_dump_control(game.control),
        **dump_state(game.state),
    }
    about = describe(game) | {"pulls": game.pulls}
    counts = {"returned": game.seats.count - game.arms.count, "skipped": game.skipped}
    about |= {name: count for name, count in counts.items() if count > 0}
    if game.epsilon is not None:
        about["epsilon"] = game.epsilon
    return pack(about, {name: c for name, c in columns.items() if len(c) > 0})


def restored(data: bytes, policy: Policy | None, what: str) -> LiveGame:
    """Return the game of a snapshot; `what` names the file in errors."""
    about, columns = unpack(data, what)
    try:
        policy = _policy_from(about, policy, what)
        first = ArmNumbers(about["first_arms"])
        game = LiveGame(policy, first, about["horizon"], about["seed"], about["reward_range"])
        game.arms = arms_of(about["arms"].get("count"), about["arms"].get("names"))
        game.pulls = check_int("pulls", about["pulls"])
        game.epsilon = check_setting(about.get("epsilon"), game.reward_range)
        game.retired = set(taken(columns, "retired"))
        game.abandoned = set(taken(columns, "abandoned"))
        game.tally = _read_tally(columns)
        _read_flight(game.flight, columns)
        _read_observed(game, about, columns)
        _read_control(game, about, columns)
        game.reward = check_reward_name(about.get("reward", ""))
        restore_state(game.state, columns)
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        raise SavedFileError(
            f"{what} does not fit this manyarms and its policies: {error!r}."
        ) from error
    game.from_file = game.pulls > 0 or bool(game.tally)
    return game


@contextlib.contextmanager
def blame_loaded_state(game: LiveGame, what: str) -> Iterator[None]:
    """Turn errors of a policy whose state was loaded from a file into `SavedFileError`.

    Whether a loaded state makes sense is not checked: so it shows when the policy plays on.
    """
    try:
        yield
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        if not game.from_file:
            raise
        raise SavedFileError(
            f"{what} ended midway with {error!r}: {game.policy} cannot go on from the state "
            f"that was loaded. The file was not written by manyarms, or the policy has a bug. Use "
            f"another copy of the file."
        ) from error


def describe(game: LiveGame) -> dict[str, Any]:
    """Return what was fixed when the game began, and its arms."""
    arms, control = game.arms, game.control
    known: dict[str, Any] = {"reward": game.reward} if game.reward else {}
    if control is not None:
        known["control"] = [control.name, control.share]
    return known | {
        "policy": described_policy(game.policy),
        "horizon": game.horizon,
        "seed": game.seed,
        "reward_range": game.reward_range,
        "first_arms": game.first_arms,
        "arms": {"names": arms.names} if isinstance(arms, ArmNames) else {"count": arms.count},
    }


def _policy_from(about: dict[str, Any], given: Policy | None, what: str) -> Policy:
    """Return the policy that a file describes, using the given one if it matches."""
    described, limits = about["policy"], check_range(about["reward_range"])
    try:
        made = policy_from(described, given, limits)
    except ManyarmsError as error:
        _refuse_unless(given is None, given, described, what)
        raise SavedFileError(
            f"{what} needs the policy {described['label']}, which cannot be made here: {error} "
            f"Import the module that registers it, or pass `policy`."
        ) from error
    if given is not None:
        same = given.with_reward_range(limits) == made.with_reward_range(limits)
        _refuse_unless(same, given, described, what)
    return made


def _refuse_unless(same: bool, given: Policy | None, described: dict[str, Any], what: str) -> None:
    if not same and given is not None:
        raise SavedFileError(
            f"{what} was saved with the policy {described['label']}, not with {given}. "
            f"Pass that one."
        )


def _whole(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64)


def _dump_tally(tally: dict[int, ArmTally]) -> Columns:
    columns = {"arm": _whole(tally)} | column_of_each(tally.values(), _TALLY)
    return {f"tally {name}": column for name, column in columns.items()}


def _read_tally(columns: Columns) -> dict[int, ArmTally]:
    arms = taken(columns, "tally arm")
    seen = [taken(columns, f"tally {name}", kind) for name, kind in _TALLY.items()]
    tally = dict(zip(arms, map(ArmTally, *seen), strict=True))
    if len(tally) < len(arms) or any(len(column) != len(arms) for column in seen):
        raise ValueError("an arm has two tallies, or half of one")
    return tally


def _dump_flight(flight: dict[int, Any]) -> Columns:
    pulls = column_of_each(flight.values(), dict.fromkeys(_IN_FLIGHT.values(), np.int64))
    named = {f"flight {name}": pulls[field] for name, field in _IN_FLIGHT.items()}
    return {"flight number": _whole(flight)} | named


def _read_flight(flight: dict[int, Any], columns: Columns) -> None:
    pulls = [flight[number] for number in taken(columns, "flight number")]  # made by looking
    for name, field in _IN_FLIGHT.items():
        set_each(pulls, field, np.array(taken(columns, f"flight {name}"), np.int64))


def _dump_observed(game: LiveGame) -> Columns:
    """Return the columns that only games with observed rewards or restored arms have."""
    rewards = [(arm, reward) for arm, some in game.stock.items() for reward in some]
    begins, shifts = game.seats.shifts()
    return {
        "stock arm": _whole(arm for arm, _ in rewards),
        "stock reward": np.array([reward for _, reward in rewards], np.float64),
        "waiting": _whole(game.drawn_next),
        "named": _whole(sorted(game.named)),
        "met": _whole(game.met),
        "seat arm": _whole(game.seats.seat_of),
        "seat number": _whole(game.seats.seat_of.values()),
        "seat begin": _whole(begins),
        "seat shift": _whole(shifts),
    }


def _read_observed(game: LiveGame, about: dict[str, Any], columns: Columns) -> None:
    arms, rewards = taken(columns, "stock arm"), taken(columns, "stock reward", np.float64)
    for arm, reward in zip(arms, rewards, strict=True):
        game.stock.setdefault(arm, deque()).append(reward)
    game.drawn_next = dict.fromkeys(taken(columns, "waiting"))
    game.named = set(taken(columns, "named"))
    game.met = dict.fromkeys(taken(columns, "met"))
    game.skipped = check_int("skipped", about.get("skipped", 0))
    arms, numbers, begins, shifts = (
        taken(columns, f"seat {name}") for name in ("arm", "number", "begin", "shift")
    )
    returned = check_int("returned", about.get("returned", 0), at_most=MOST_ARMS)
    seated = zip(arms, numbers, strict=True)
    game.seats = Seats.restored(game.arms.count, returned, seated, (begins, shifts))


def _dump_control(control: Control | None) -> Columns:
    if control is None:
        return {}
    return {
        "control count": _whole((control.turns, control.asked, control.told)),
        "control total": np.array([control.total], np.float64),
        "control flight": _whole(control.flight),
        "control abandoned": np.sort(_whole(control.abandoned)),
    }


def _read_control(game: LiveGame, about: dict[str, Any], columns: Columns) -> None:
    if "control" not in about:
        return
    chosen = check_control(*about["control"])
    if chosen is None:
        raise ValueError("the control has no name")
    control = Control(*chosen, game.seed)
    control.turns, control.asked, control.told = taken(columns, "control count")
    (control.total,) = taken(columns, "control total", np.float64)
    flying, abandoned = (taken(columns, f"control {name}") for name in ("flight", "abandoned"))
    control.flight, control.abandoned = dict.fromkeys(flying), set(abandoned)
    numbers = flying + abandoned
    given = range(OF_CONTROL, OF_CONTROL + control.asked)
    if not (control.turns >= control.asked >= 0 and control.told >= 0):
        raise ValueError("the control has more pulls than there were")
    if len({*numbers}) != len(numbers) or any(number not in given for number in numbers):
        raise ValueError("the control has pulls that it was not given")
    game.control = control
