"""Random sequences of commands on a handle are all in its store, also after a kill."""

from __future__ import annotations

import copy
import shutil
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import manyarms as ma
from manyarms.live import recorder
from tests.live.stateful import LONG, SHORT, LocalMachine
from tests.live.stores import copied, leave, shared_postgres
from tests.serve.machines import new_name


class Unrecorded(LocalMachine):
    """A handle without a store; after a kill, the last saved file is left."""

    def __init__(self) -> None:
        super().__init__()
        self._path = self.new_folder() / "saved.db"

    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> ma.Live:
        live = self.experiment = policy.live(**spec)
        self._save()
        return live

    def _save(self) -> None:
        self.experiment.save(self._path)
        self._then = copy.deepcopy(self.model), self.time, copied(self.twin)

    def _loaded(self) -> ma.Live:
        """Return a handle without a store, loaded from the saved file."""
        with ma.load(self._path, now=lambda: self.time) as live:
            return copied(live)

    def reopened(self) -> ma.Live:
        self._save()
        return self._loaded()

    def killed(self, torn: int) -> ma.Live:
        model, self.time, twin = self._then
        self.model, self.twin = copy.deepcopy(model), copied(twin)
        return self._loaded()


class InSQLite(LocalMachine):
    """A handle recorded in a file."""

    durable: Any = "process"

    def __init__(self) -> None:
        super().__init__()
        self._left: list[ma.Live] = []  # handles left open by simulated kills

    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> ma.Live:
        self.folder = self.new_folder()
        return policy.live(**spec, store=self.folder / "shop.db", name="shop")

    def _opened(self) -> ma.Live:
        return ma.load(self.folder / "shop.db", now=lambda: self.time)

    def reopened(self) -> ma.Live:
        self.experiment.close()
        return self._opened()

    def killed(self, torn: int) -> ma.Live:
        """Copy the files while the handle is open."""
        before, self.folder = self.folder, self.new_folder()
        for file in before.iterdir():
            if not file.name.endswith(("-shm", ".lock")):
                shutil.copy(file, self.folder)
        self._left.append(self.experiment)
        return self._opened()

    def end(self) -> None:
        for live in self._left:
            live.close()


class OftenSaved(InSQLite):
    """A handle that often stores a snapshot."""

    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> ma.Live:
        self._every, recorder.SNAPSHOT_EVERY = recorder.SNAPSHOT_EVERY, 3
        return super().begin(policy, spec)

    def end(self) -> None:
        recorder.SNAPSHOT_EVERY = getattr(self, "_every", recorder.SNAPSHOT_EVERY)
        super().end()


class InPostgres(LocalMachine):
    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> ma.Live:
        self._name = new_name()
        return policy.live(**spec, store=shared_postgres(), name=self._name)

    def reopened(self) -> ma.Live:
        self.experiment.close()
        return ma.load(shared_postgres(), name=self._name, now=lambda: self.time)

    def killed(self, torn: int) -> ma.Live:
        leave(self.experiment)
        return ma.load(shared_postgres(), name=self._name, now=lambda: self.time)


MACHINES = [Unrecorded, InSQLite, OftenSaved]


@pytest.mark.patient
@pytest.mark.parametrize("machine", MACHINES)
def test_random_commands(machine: type[LocalMachine]) -> None:
    run(machine, SHORT)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("machine", [*MACHINES, InPostgres])
def test_many_random_commands(machine: type[LocalMachine]) -> None:
    run(machine, LONG)


def run(machine: type[LocalMachine], how: settings) -> None:
    if machine is InPostgres:
        shared_postgres()  # or skip
    run_state_machine_as_test(machine, settings=how)
