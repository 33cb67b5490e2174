"""Stores to try everything on: add a maker to `MAKERS`, and the contract covers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.live.databases import store_of
from manyarms.live.store import Contents, Event, Events, Snapshot, Store
from tests.serve.machines import shared_postgres

__all__ = ["MAKERS", "Memory", "Watched", "leave", "on_shelf"]


class Memory:
    """A store in a dict: what the seam asks for, and no more."""

    def __init__(self, shelf: dict[str, object]) -> None:
        self.failure = ""
        self._shelf = shelf

    def __str__(self) -> str:
        return "the shelf"

    def load(self) -> Contents | None:
        if self._shelf.get("owner") is not None:
            raise ma.StoreError("the shelf is open already.")
        self._shelf["owner"] = self
        snapshot, events = self._shelf.get("snapshot"), self._shelf.get("events")
        if snapshot is None:
            return None
        assert isinstance(snapshot, bytes)
        assert isinstance(events, list)
        return Contents(snapshot, Events.of(events))

    def append(self, events: Sequence[Event], snapshot: Callable[[], bytes]) -> None:
        if self._shelf["owner"] is not self:
            raise ma.StoreError("the shelf is not ours any more.")
        kept = self._shelf["events"]
        assert isinstance(kept, list)
        kept += events

    def save(self, snapshot: bytes) -> None:
        self._shelf |= {"snapshot": snapshot, "events": []}

    def close(self) -> None:
        if self._shelf.get("owner") is self:
            self._shelf["owner"] = None


def leave(live: ma.Live) -> None:
    """Let a store be as a kill leaves it: without a last snapshot."""
    store = live._recorder.store
    assert store is not None
    live._recorder.store = None
    store.close()


def on_shelf(live: ma.Live) -> tuple[bytes, list[Event]]:
    """Record a handle in a dict; return what it knows now, and where its events will be."""
    shelf: dict[str, Any] = {}
    ma.recorded(Memory(shelf), live)
    return shelf["snapshot"], shelf["events"]


class Watched:
    """A store that notes what it is given, and fails when it is told to."""

    def __init__(self, store: Store) -> None:
        self.failure = ""
        self.store = store
        self.appended: list[list[Event]] = []
        self.error: BaseException | None = None

    def __str__(self) -> str:
        return str(self.store)

    def load(self) -> Contents | None:
        return self.store.load()

    def append(self, events: Sequence[Event], snapshot: Snapshot) -> None:
        if self.error is not None:
            raise self.error
        self.appended.append(list(events))
        self.store.append(events, snapshot)

    def save(self, snapshot: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.store.save(snapshot)

    def close(self) -> None:
        self.store.close()


def _ours(folder: Path) -> Callable[[], Store]:
    store = ma.InMemory()
    return lambda: store


def _memory(folder: Path) -> Callable[[], Store]:
    shelf: dict[str, object] = {}
    return lambda: Memory(shelf)


# each returns a function that opens the same place again and again, as new processes would
MAKERS: dict[str, Callable[[Path], Callable[[], Store]]] = {
    "journal": lambda folder: lambda: ma.Journal(folder / "game", sync="never"),
    "in memory": _ours,
    "compacted": lambda folder: lambda: ma.Journal(folder / "game", sync="never", compact_every=9),
    "memory": _memory,
    "sqlite": lambda folder: lambda: store_of(f"sqlite:///{folder}/game.db?sync=never"),
    "postgres": lambda folder: lambda: store_of(f"{shared_postgres()}?experiment={folder.name}"),
}
