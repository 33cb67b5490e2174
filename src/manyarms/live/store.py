"""The seam between a handle and what keeps it: events, snapshots, and what "kept" means.

A handle that is recorded hands over every event before its caller hears of it. A store may be a
file (`Journal`), a table of a database, or a list in a test; it knows neither policies nor states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from manyarms.core.process_copy import is_safe_to_copy

_SMALL = 1000  # arms tried: a snapshot of so many takes a few milliseconds
COMPACT_EVERY = 20_000  # events, at least: to play them again takes a fraction of a second


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


class Snapshot(Protocol):
    """Returns the current game as bytes, in some microseconds for each arm tried."""

    @property
    def arms_tried(self) -> int: ...

    def __call__(self) -> bytes: ...


def is_long(events: int, arms_tried: int, least: int = COMPACT_EVERY) -> bool:
    """Whether a new snapshot is due after so many events.

    A snapshot takes time in proportion to the arms tried. So events take at most a constant share
    of their own time for snapshots, and a store opens in a small multiple of the time that its
    snapshot takes.
    """
    return events > max(least, arms_tried)


def is_worth_a_copy(snapshot: Snapshot) -> bool:
    """Whether a copy of this process should make a snapshot, so that no call waits for it."""
    return snapshot.arms_tried > _SMALL and is_safe_to_copy()


@runtime_checkable
class Store(Protocol):
    """Keeps what happens to one handle; `recorded` and the handle make the calls.

    They come one at a time, though from any thread. Once `append` has raised, or `failure` says
    why, none but `close` comes any more: the handle records nothing until its store is opened
    again. Errors may be of any class. `str(store)` names it in messages.

    A store may have a method `history()`, too, which returns all that was kept as a list of
    `Contents`, oldest first; `live.events()` needs it. A store whose `compact_on_close` is false is
    given no snapshot when the handle is closed.

    Attributes
    ----------
    failure
        Why nothing can be kept any more, if that came to light between calls (a sync that
        failed, another process that took over); empty while all is well.

    Examples
    --------
    >>> import manyarms as ma
    >>> from manyarms.live import Events, Contents
    >>> class Shelf:
    ...     failure = ""
    ...     snapshot, events = b"", []
    ...     def load(self):
    ...         return Contents(self.snapshot, Events.of(self.events)) if self.snapshot else None
    ...     def append(self, events, snapshot):
    ...         self.events += events
    ...     def save(self, snapshot):
    ...         self.snapshot, self.events = snapshot, []
    ...     def close(self):
    ...         pass
    >>> shelf = Shelf()
    >>> with ma.recorded(shelf, ma.MOSS().live(n_arms=9, horizon=99)) as live:
    ...     pull = live.ask()
    >>> with ma.recorded(shelf) as live:
    ...     live.pending == [pull]
    True
    """

    failure: str

    def load(self) -> Contents | None:
        """Claim the store for this process, and return its contents; None if it is empty.

        Raises if another process has it; then, and whenever it raises, nothing is held on to.
        A store that was closed may be loaded again.
        """

    def append(self, events: Sequence[Event], snapshot: Snapshot) -> None:
        """Keep events: all of them, as safely as this store promises, or raise.

        `snapshot()` returns the game as it is after them. A store that plays many events again when
        it is opened should keep one when `is_long` says so.
        """

    def save(self, snapshot: bytes) -> None:
        """Keep a snapshot that replaces all that was kept before, or raise.

        If it raises, what was kept before stays, and events may still be appended.
        """

    def close(self) -> None:
        """Make everything durable and release the store. Closing twice is allowed."""
