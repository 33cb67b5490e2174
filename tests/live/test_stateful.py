"""Whatever happens to a handle, in whatever order: its store knows it, also after a kill."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import manyarms as ma
from manyarms.live.databases import store_of
from manyarms.live.store import Store
from tests.live.stateful import LONG, SHORT, LocalGame
from tests.live.stores import Memory
from tests.serve.machines import new_name, shared_postgres, wait


class Unrecorded(LocalGame):
    """A handle without a store: a kill leaves what was saved last."""

    def __init__(self) -> None:
        super().__init__()
        self._path = self.new_folder() / "game"

    def begin(self, live: ma.Live) -> ma.Live:
        live.save(self._path)
        self._then = copy.deepcopy(self.model), self.twin.to_bytes()
        return live

    def reopened(self) -> ma.Live:
        self.begin(self.game)
        return ma.Live.load(self._path)

    def killed(self, torn: int) -> ma.Live:
        self.model, twin = copy.deepcopy(self._then)
        self.twin = ma.Live.from_bytes(twin)
        return ma.Live.load(self._path)


class Recorded(LocalGame):
    """A handle with a store."""

    def __init__(self) -> None:
        super().__init__()
        self._left: list[ma.Live] = []  # by kills

    def new_place(self) -> None:
        """Let `store` be in another place, which is empty."""
        self.folder = self.new_folder()

    def store(self) -> Store:
        """Return the store of this place, as a new process would open it."""
        raise NotImplementedError

    def crash(self, torn: int) -> None:
        """Let `store` open what a kill of the process leaves now."""
        before = self.folder
        self.new_place()
        for file in before.iterdir():
            if file.suffix not in (".lock", ".db-shm"):
                shutil.copy(file, self.folder)

    def begin(self, live: ma.Live) -> ma.Live:
        self.new_place()
        return ma.recorded(self.store(), live)

    def reopened(self) -> ma.Live:
        self.game.close()
        return ma.recorded(self.store())

    def killed(self, torn: int) -> ma.Live:
        self.crash(torn)
        self._left.append(self.game)
        return ma.recorded(self.store())

    def end(self) -> None:
        for live in self._left:
            live.close()


class InJournal(Recorded):
    options: ClassVar[dict[str, Any]] = {}

    def store(self) -> ma.Journal:
        self._journal = ma.Journal(self.folder / "game", sync="never", **self.options)
        return self._journal

    def crash(self, torn: int) -> None:
        super().crash(torn)
        with (self.folder / "game").open("r+b") as file:
            file.truncate(self._journal._end)  # as every write does, if it finds a torn one
            file.seek(0, os.SEEK_END)
            file.write(bytes(range(1, torn + 1)))


class InShortJournal(InJournal):
    options: ClassVar = {"compact_every": 5}


class InLongJournal(InJournal):
    options: ClassVar = {"compact_every": 5, "history": True}


class InSQLite(Recorded):
    def store(self) -> Store:
        return store_of(f"sqlite:///{self.folder}/game.db?sync=never")


class InPostgres(Recorded):
    def new_place(self) -> None:
        self._name = new_name()

    def store(self) -> Store:
        self._store: Any = store_of(f"{shared_postgres()}?experiment={self._name}")
        return self._store

    def crash(self, torn: int) -> None:
        """The connection ends, and the server notices."""
        self._store._database._link.close()
        again: list[bool] = []

        def is_free() -> list[bool]:
            with contextlib.suppress(ma.StoreError):
                ma.recorded(self.store()).close()
                again.append(True)
            return again

        wait(is_free)


class InMemory(Recorded):
    def new_place(self) -> None:
        self._store = ma.InMemory()

    def store(self) -> Store:
        return self._store

    def crash(self, torn: int) -> None:
        """Nothing would be left: it is closed."""
        self._store.close()


class OnShelf(Recorded):
    def new_place(self) -> None:
        self._shelf: dict[str, Any] = {}

    def store(self) -> Store:
        return Memory(self._shelf)

    def crash(self, torn: int) -> None:
        events = list(self._shelf["events"])
        self._shelf = self._shelf | {"events": events, "owner": None}


MACHINES = [
    Unrecorded,
    *(InMemory, OnShelf, InJournal, InShortJournal, InLongJournal, InSQLite, InPostgres),
]


@pytest.mark.patient
@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens(machine: type[LocalGame]) -> None:
    run(machine, SHORT)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_for_long(machine: type[LocalGame]) -> None:
    run(machine, LONG)


def run(machine: type[LocalGame], how: settings) -> None:
    if machine is InPostgres:
        shared_postgres()  # or skip
    run_state_machine_as_test(machine, settings=how)
