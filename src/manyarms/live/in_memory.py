"""A store in memory: for a history without a file, and for experiments."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from manyarms.errors import StoreError
from manyarms.live.history import GameHistory
from manyarms.live.store import Contents, Event, Events, Snapshot


class InMemory:
    """A store that keeps every event, and when it happened, in this process's memory.

    `recorded(InMemory(), live)` is a handle with a history, `live.events()`; some 300 bytes for
    each pull. Nothing outlives the process.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.recorded(ma.InMemory(), ma.MOSS().live(n_arms=9, horizon=99, seed=1))
    >>> pull = live.ask()
    >>> live.tell(pull, reward=1.0)
    >>> [event.what for event in live.events()]
    ['asked', 'told']
    """

    def __init__(self) -> None:
        self.failure = ""
        self._parts: list[Contents] = []  # before the last snapshot
        self._snapshot = b""
        self._events: list[Event] = []
        self._times: list[float] = []
        self._open = False

    def __str__(self) -> str:
        return "a store in memory"

    def load(self) -> Contents | None:
        """Return what is kept; None if that is nothing."""
        if self._open:
            raise StoreError("This store is open already: it has one writer. Close it there.")
        self._open = True
        return self._last() if self._snapshot else None

    def _last(self) -> Contents:
        times = np.array(self._times, np.float64)
        return Contents(self._snapshot, Events.of(self._events)._replace(time=times))

    def append(self, events: Sequence[Event], snapshot: Snapshot) -> None:
        """Keep events and their time."""
        self._times += [time.time()] * len(events)
        self._events += events

    def save(self, snapshot: bytes) -> None:
        """Keep a snapshot; the events before it stay in the history."""
        if self._events:
            self._parts.append(self._last())
        self._snapshot, self._events, self._times = snapshot, [], []

    def history(self) -> list[Contents]:
        """Return all that was kept, oldest first."""
        return [*self._parts, self._last()]

    def events(self) -> GameHistory:
        """Return what happened, for `live.events()`, and once the handle is closed."""
        return GameHistory(self.history())

    def close(self) -> None:
        """Allow the store to be loaded again."""
        self._open = False
