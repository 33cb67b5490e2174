"""Playing the events of a journal again: by compiled code where they are many.

Both ways compute every choice anew and compare it with the one that was recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import compiled, compiling, jit_enabled
from manyarms.core.memory import ARRAYS
from manyarms.errors import CompilationError, SavedFileError
from manyarms.live.arms import Tally
from manyarms.live.records import ABANDONED, ASKED, TOLD, Events
from manyarms.protocol.in_flight import InFlight, land, launch, lose
from manyarms.protocol.state_dump import classes_in, constants, dump_state, restore_state

if TYPE_CHECKING:
    from manyarms.live.handle import Live

__all__ = ["replay"]

LONG = 200_000  # events that CPython plays in a second; to compile takes several, once
_ROOM = 10_000_000  # pulls that arrays are made for; beyond, they would outgrow what is touched


def replay(live: Live, events: Events, what: str) -> None:
    """Let all events happen again to the handle that was saved before them."""
    _check(live, events, what)
    if len(events.kind) < LONG or not replay_compiled(live, events):
        replay_by_hand(live, events, what)


def _check(live: Live, events: Events, what: str) -> None:
    """Raise unless the events make sense: compiled code would not notice."""
    asked, told = events.kind == ASKED, events.kind == TOLD
    ends = events.number[~asked]
    born = live._pulls + np.cumsum(asked)[~asked]  # pulls asked for when a pull ended
    earlier = set(ends[ends < live._pulls].tolist())
    numbers, arms = events.number[asked], events.arm[asked]
    sound = (
        bool((numbers == live._pulls + np.arange(len(numbers))).all())
        and (live.horizon is None or live._pulls + len(numbers) <= live.horizon)
        and bool(((arms >= 0) & (arms < live._arms.count)).all())
        and len(np.unique(ends)) == len(ends)
        and bool((ends < born).all())
        and earlier <= live._flight.keys()
        and bool(np.isfinite(events.reward[told]).all())
    )
    if not sound:
        raise SavedFileError(f"{what} contradicts itself: its events cannot follow each other.")


def replay_by_hand(live: Live, events: Events, what: str) -> None:
    """Let the handle do it all again."""
    rows = zip(*(column.tolist() for column in events), strict=True)
    for kind, number, arm, reward in rows:
        if kind == ASKED:
            live._ask()
            chosen = live._flight[number].arm
            if chosen != arm:
                raise SavedFileError(
                    f"{what} says that pull {number} was of arm {arm}, and {live.policy.label} "
                    f"now chooses arm {chosen}. Replay it with the version that wrote it."
                )
        elif kind == TOLD:
            live._tell(number, reward)
        else:
            live._abandon(number)


def replay_compiled(live: Live, events: Events) -> bool:
    """Do the same by compiled code; return False, and change nothing, where that cannot be."""
    asked = events.kind == ASKED
    room = live.horizon or live._pulls + int(asked.sum())
    changed = live._retired or live._arms.count != live._first_arms  # arrays do not grow
    if changed or room > _ROOM or not jit_enabled():
        return False
    state = live.policy.new_state(ARRAYS, n_arms=live._first_arms, pulls=room)
    if constants(state) != constants(live._state):
        return False
    restore_state(state, dump_state(live._state))
    # pulls in flight, old and new, are numbered from 0
    old = np.array(list(live._flight), np.int64)
    numbers = np.concatenate([old, events.number[asked]])
    index = np.searchsorted(numbers, events.number)
    flight = cast("NDArray[Any]", ARRAYS.records(len(numbers), InFlight))
    for k, pull in enumerate(live._flight.values()):
        flight[k] = (pull.slot, pull.arm, pull.generation, pull.late)
    last = len(old) - 1 if live._pulls - 1 in live._flight else -1
    try:
        with compiling(live.policy.label):
            loop = compiled(_play_again, *classes_in(state))
            wrong = loop(state, flight, last, events.kind, index, events.arm, events.reward)
    except CompilationError:
        return False
    if wrong >= 0:
        return False  # CPython decides
    restore_state(live._state, dump_state(state))
    _rebuild_tally(live._tally, events, flight["arm"][index])
    ended = np.zeros(len(numbers), np.bool_)
    ended[index[~asked]] = True
    _rebuild_flight(live._flight, numbers[~ended], flight[~ended])
    live._pulls += int(asked.sum())
    live._lost.update(events.number[events.kind == ABANDONED].tolist())
    return True


def _play_again(
    state: Any, flight: Any, last: int, kind: Any, index: Any, arm: Any, reward: Any
) -> int:
    """Return the first event that went otherwise, or -1. `last`: the last pull, if in flight."""
    for k in range(len(kind)):
        if kind[k] == ASKED:
            if launch(state, flight, index[k], last) != arm[k]:
                return k
            last = index[k]
        else:
            if kind[k] == TOLD:
                land(state, flight, index[k], reward[k])
            else:
                lose(state, flight, index[k])
            if index[k] == last:
                last = -1
    return -1


def _rebuild_tally(tally: dict[int, Tally], events: Events, arms: NDArray[Any]) -> None:
    """Count what was asked for and told; `arms` are those of the events."""
    met, first, which = np.unique(arms, return_index=True, return_inverse=True)
    for arm in met[np.argsort(first)].tolist():  # arms are listed in the order they were met in
        tally.setdefault(arm, Tally())
    seen = [tally[arm] for arm in met.tolist()]
    asked = np.bincount(which[events.kind == ASKED], minlength=len(met))
    told = events.kind == TOLD
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
        pull = flight[number]
        pull.slot, pull.arm, pull.generation, pull.late = row
