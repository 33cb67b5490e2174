"""Playing events again: by compiled code if they are many and the code is there.

Both ways compute every choice anew and compare it with the one that was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import can_compile, compiled, compiling, is_cached, need_numba
from manyarms.core.memory import CHECKED
from manyarms.errors import CompilationError, ParameterError, SavedFileError
from manyarms.live import store
from manyarms.live.arms import ArmNumbers
from manyarms.live.game import MOST_REWARD, ArmTally, LiveGame
from manyarms.live.pull_ranges import PullRanges
from manyarms.live.saving import nonsense_refused
from manyarms.live.store import Events
from manyarms.protocol.in_flight import InFlight, land, launch, lose
from manyarms.protocol.policy import Policy, arrive, retire
from manyarms.protocol.state_dump import classes_in, constants, dump_state, restore_state

# CPython takes 4 to 22 µs for an event, which depends on the policy. To load compiled code takes a
# second; to compile it takes 4 to 8 seconds, once.
LONG = 200_000
VERY_LONG = 700_000  # here the wrong choice costs 8 s at most, by CPython or by the compiler
ROOM = 10_000_000  # pulls that arrays are made for; beyond, they would outgrow what is touched
_FIELDS = tuple(InFlight.__annotations__)


def replay(
    game: LiveGame, events: Events, what: str, *, long: int = LONG, very_long: int = VERY_LONG
) -> None:
    """Let all events happen again to the game that was saved before them.

    `what` names their store in errors. From `long` events on, compiled code plays them if it is
    in the cache; from `very_long` events on, it is compiled if need be.
    """
    _check(game, events, what)
    count = len(events.kind)
    pays = count >= long and (count >= very_long or _is_cached(game))
    if not pays or not replay_compiled(game, events):
        with nonsense_refused(game, what):
            replay_by_hand(game, events, what)


def _is_cached(game: LiveGame) -> bool:
    return is_cached(_play_again, *classes_in(game.state), checked=True)


def compile_replay(policy: Policy) -> None:
    """Compile what plays long games of the policy again, unless the cache has it already."""
    need_numba("to compile")
    game = LiveGame(policy, ArmNumbers(2), 2, 0, (0.0, 1.0))
    if not replay_compiled(game, Events.of([])):
        raise CompilationError(f"{policy.label} cannot be compiled: CPython replays its games.")


def _check(game: LiveGame, events: Events, what: str) -> None:
    """Raise unless the events make sense: compiled code would not notice."""
    kind, arm = events.kind, events.arm
    if not np.isin(kind, np.arange(store.ASKED, store.RESTORED + 1)).all():
        raise SavedFileError(f"{what} holds events of an unknown kind.")
    asked, told, came = (kind == k for k in (store.ASKED, store.TOLD, store.ARRIVED))
    seen = kind == store.OBSERVED
    ended = told | (kind == store.ABANDONED) | (kind == store.ANSWERED)
    ends = events.pull[ended]
    born = game.pulls + np.cumsum(asked)[ended]  # pulls asked for when a pull ended
    earlier = set(ends[ends < game.pulls].tolist())
    numbers = events.pull[asked]
    there = game.arms.count + np.cumsum(np.where(came, arm, 0))  # arms that ever were
    named = asked | (kind == store.RETIRED) | (kind == store.RESTORED) | seen
    sound = (
        bool((numbers == game.pulls + np.arange(len(numbers))).all())
        and (game.horizon is None or game.pulls + len(numbers) <= game.horizon)
        and bool(((arm >= 0) & (arm < there))[named].all())
        and bool((arm[came] > 0).all())
        and _can_come(game, events.names, int(arm[came].sum()))
        and _distinct(ends)
        and bool((ends < born).all())
        and earlier <= game.flight.keys()
        and _can_be(events.reward[told | seen], game.reward_range)
        and (game.can(arrive) or not (came | (kind == store.RESTORED)).any())
        and (game.can(retire) or not (kind == store.RETIRED).any())
    )
    if not sound:
        raise _contradiction(what)


def _contradiction(what: str) -> SavedFileError:
    return SavedFileError(f"{what} contradicts itself: its events cannot follow each other.")


def _can_come(game: LiveGame, names: Sequence[str | int], count: int) -> bool:
    if isinstance(game.arms, ArmNumbers):
        return not names
    try:
        return len(game.arms.fresh(names)) == count
    except ParameterError:
        return False


def _can_be(rewards: NDArray[Any], limits: tuple[float, float] | None) -> bool:
    low, high = limits or (-MOST_REWARD, MOST_REWARD)
    return bool(((rewards >= low) & (rewards <= high)).all())


def _distinct(numbers: NDArray[Any]) -> bool:
    return bool((np.diff(np.sort(numbers)) > 0).all())  # np.unique takes ten times as long


def replay_by_hand(game: LiveGame, events: Events, what: str) -> None:
    """Let CPython do it all again."""
    names = iter(events.names)
    rows = zip(*(column.tolist() for column in events[:4]), strict=True)
    for kind, number, arm, reward in rows:
        if kind == store.ASKED:
            game.ask()
            chosen = game.flight[number].arm
            if chosen != arm:
                raise SavedFileError(
                    f"{what} says that pull {number} was of arm {arm}, and {game.policy.label} "
                    f"now chooses arm {chosen}. Replay it with the version that wrote it."
                )
        elif kind == store.TOLD:
            game.tell(number, reward)
        elif kind == store.ABANDONED:
            game.abandon(number)
        elif kind == store.ARRIVED:
            new = list(islice(names, arm)) if events.names else arm
            game.arrive(game.arms.fresh(new))
        elif kind == store.RETIRED and arm not in game.retired and game.n_arms > 1:
            game.retire(arm)
        elif kind == store.RESTORED and arm in game.retired:
            game.restore(arm)
        elif kind == store.OBSERVED:
            game.observe(arm, [reward])
        elif (
            kind != store.ANSWERED
            or game.flight[number].arm not in game.stock
            or game.answer(number) != reward
        ):
            raise _contradiction(what)


def replay_compiled(game: LiveGame, events: Events, *, most: int = ROOM) -> bool:
    """Do the same by compiled code; return False, and change nothing, where that cannot be."""
    asked = events.kind == store.ASKED
    room = game.horizon or game.pulls + int(asked.sum())
    moved = game.retired or game.arms.count != game.first_arms or game.seats.arm_at
    other = game.stock or game.waiting or (events.kind > store.ABANDONED).any()
    if moved or other or room > most or not can_compile():  # arrays do not grow
        return False
    state = game.policy.new_state(CHECKED, n_arms=game.first_arms, pulls=room)
    if constants(state) != constants(game.state):
        return False
    try:
        restore_state(state, dump_state(game.state))
    except ValueError:  # of a file that manyarms did not write: CPython will see
        return False
    # pulls in flight, old and new, are numbered from 0
    old = np.array(list(game.flight), np.int64)
    numbers = np.concatenate([old, events.pull[asked]])
    index = np.searchsorted(numbers, events.pull)
    flight = cast("NDArray[Any]", CHECKED.records(len(numbers), InFlight))
    for k, pull in enumerate(game.flight.values()):
        flight[k] = tuple(getattr(pull, field) for field in _FIELDS)
    last = len(old) - 1 if game.pulls - 1 in game.flight else -1
    try:
        with compiling(game.policy.label):
            loop = compiled(_play_again, *classes_in(state), checked=True)
            wrong = loop(state, flight, last, events.kind, index, events.arm, events.reward)
    except CompilationError:
        return False
    if wrong >= 0:
        return False  # CPython decides
    restore_state(game.state, dump_state(state))
    game.columns = game.changed = None
    _rebuild_tally(game.tally, events, flight["arm"][index])
    ended = np.zeros(len(numbers), np.bool_)
    ended[index[~asked]] = True
    _rebuild_flight(game.flight, numbers[~ended], flight[: len(numbers)][~ended])
    game.pulls += int(asked.sum())
    lost = events.pull[events.kind == store.ABANDONED]
    game.abandoned = PullRanges(np.concatenate([game.abandoned.numbers(), lost]))
    return True


def _play_again(
    state: Any, flight: Any, last: int, kind: Any, index: Any, arm: Any, reward: Any
) -> int:
    """Return the first event that went otherwise, or -1. `last`: the last pull, if in flight."""
    for k in range(len(kind)):
        if kind[k] == store.ASKED:
            if launch(state, flight, index[k], last) != arm[k]:
                return k
            last = index[k]
        else:
            if kind[k] == store.TOLD:
                land(state, flight, index[k], reward[k])
            else:
                lose(state, flight, index[k])
            if index[k] == last:
                last = -1
    return -1


def _rebuild_tally(tally: dict[int, ArmTally], events: Events, arms: NDArray[Any]) -> None:
    """Count what was asked for and told; `arms` are those of the events."""
    met, first, which = np.unique(arms, return_index=True, return_inverse=True)
    for arm in met[np.argsort(first)].tolist():  # arms are listed in the order they were met in
        tally.setdefault(arm, ArmTally())
    seen = [tally[arm] for arm in met.tolist()]
    asked = np.bincount(which[events.kind == store.ASKED], minlength=len(met))
    told = events.kind == store.TOLD
    count = np.bincount(which[told], minlength=len(met))
    total = np.array([t.total for t in seen])
    np.add.at(total, which[told], events.reward[told])  # one by one, as the handle does
    for t, more, rewards, value in zip(
        seen, asked.tolist(), count.tolist(), total.tolist(), strict=True
    ):
        t.asked += more
        t.told += rewards
        t.total = value


def _rebuild_flight(
    flight: dict[int, InFlight], numbers: NDArray[Any], pulls: NDArray[Any]
) -> None:
    flight.clear()
    for number, row in zip(numbers.tolist(), pulls.tolist(), strict=True):
        for field, value in zip(_FIELDS, row, strict=True):
            setattr(flight[number], field, value)
