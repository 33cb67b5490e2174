"""Events of the service's games."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class EventKind(IntEnum):
    """The kinds of events. Stores keep the number; exports show the word."""

    ASKED = 1  # for a pull
    TOLD = 2  # its reward
    ABANDONED = 3  # a pull
    ADDED = 4  # arms
    RETIRED = 5  # an arm
    OBSERVED = 6  # a reward of an arm that no pull earned, one event for each
    ANSWERED = 7  # a pull, with the next observed reward of its arm
    RESTORED = 8  # a retired arm
    REPORTED = 100  # of the service alone: a reward has come, and is held until its window ends

    @property
    def word(self) -> str:
        """The kind as histories and exports show it."""
        return self.name.lower()


EVENTS_THAT_END = (EventKind.TOLD, EventKind.ABANDONED, EventKind.ANSWERED)  # a pull in flight


class Event(NamedTuple):
    """One thing that happened in a game.

    Attributes
    ----------
    kind
        What happened, an `EventKind`.
    pull
        Which pull, from 0; -1 where arms come and go, or rewards are observed.
    arm
        The arm's number; where arms came, how many.
    reward
        The reward that was told, observed or answered; 0 elsewhere.
    names
        The names of the arms that came, where arms have names.
    """

    kind: EventKind
    pull: int
    arm: int
    reward: float = 0.0
    names: tuple[str | int, ...] = ()


class Events(NamedTuple):
    """Events in order, by columns, because there may be millions.

    A store may leave anything in `arm` where a pull was told, abandoned or answered, and in
    `reward` where there is none. `time`, in seconds since 1970, is for those who read the history:
    a store that knows when it was given an event may say so, and 0 or no column says nothing.
    """

    kind: NDArray[Any]
    pull: NDArray[Any]
    arm: NDArray[Any]
    reward: NDArray[Any]
    names: Sequence[str | int] = ()  # of all arms that came, one after the other
    time: NDArray[Any] | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Events:
        """Return the columns of these events."""
        rows = list(events)
        kind, pull, arm, reward, names = zip(*rows, strict=True) if rows else ((),) * 5
        return cls(
            np.array(kind, np.int64),
            np.array(pull, np.int64),
            np.array(arm, np.int64),
            np.array(reward, np.float64),
            [name for some in names for name in some],
        )


class Contents(NamedTuple):
    """What a store holds: a snapshot of the whole game, and the events after it."""

    snapshot: bytes
    events: Events
