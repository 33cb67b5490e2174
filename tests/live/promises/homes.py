"""Where an experiment runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import manyarms as ma
from tests.live.promises.answers import Handle
from tests.live.promises.spec import Spec
from tests.live.stores import shared_postgres
from tests.serve.machines import new_name


class Home:
    """An experiment in memory. It is reopened by saving and loading a file.

    `is_remote` says that the handle is a `Remote`, which differs from `Live` where its docstrings
    say so. `without` names settings that the random specs leave out.
    """

    is_remote = False
    is_recorded = False
    without: frozenset[str] = frozenset()

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0
        self.now: Callable[[], float] = float
        self.spec = Spec()

    def begin(self, spec: Spec, now: Callable[[], float]) -> Handle:
        self.spec, self.now = spec, now
        return self._begin()

    def _begin(self) -> Handle:
        return self.twin()

    def twin(self) -> ma.Live:
        """Return the same experiment, in memory."""
        return self.spec.policy_object().live(**self.spec.settings(), now=self.now)

    def load(self, path: str | Path, name: str | None = None) -> ma.Live:
        own = self.spec.policy_object() if self.spec.policy == "own" else None
        return ma.load(path, name=name, policy=own, now=self.now)

    def new_path(self) -> Path:
        self.files += 1
        return self.folder / f"{self.files}.db"

    def reopen(self, handle: Handle) -> Handle:
        """Close the experiment and load it."""
        path = self.new_path()
        handle.save(path)
        handle.close()
        return self.load(path)

    def kill(self, handle: Handle) -> Handle:
        """Load the experiment as it is after a kill."""
        return self.reopen(handle)

    def reader(self, handle: Handle) -> Handle:
        """Return a second handle."""
        path = self.new_path()
        handle.save(path)
        return self.load(path)

    def end(self) -> None:
        """Stop what was started."""


class Recorded(Home):
    """An experiment recorded in a file."""

    is_recorded = True

    def _begin(self) -> Handle:
        self.left: list[Handle] = []  # handles that were killed
        self.path = self.new_path()
        return self.spec.policy_object().live(
            **self.spec.settings(), now=self.now, store=self.path, name="shop"
        )

    def reopen(self, handle: Handle) -> Handle:
        handle.close()
        return self.load(self.path)

    def kill(self, handle: Handle) -> Handle:
        """Copy the files while the handle is open, and leave the handle as it is."""
        before, self.path = self.path, self.new_path()
        for end in ("", "-wal"):
            file = before.with_name(before.name + end)
            if file.exists():
                shutil.copy(file, self.path.with_name(self.path.name + end))
        self.left.append(handle)
        return self.load(self.path)

    def reader(self, handle: Handle) -> Handle:
        return self.load(self.path)

    def end(self) -> None:
        for handle in self.left:
            handle.close()


class InPostgres(Recorded):
    """An experiment recorded in PostgreSQL. A killed handle is left open."""

    def _begin(self) -> Handle:
        self.left = []
        self.name = new_name()
        return self.spec.policy_object().live(
            **self.spec.settings(), now=self.now, store=shared_postgres(), name=self.name
        )

    def reopen(self, handle: Handle) -> Handle:
        handle.close()
        return self.load(shared_postgres(), self.name)

    def kill(self, handle: Handle) -> Handle:
        self.left.append(handle)
        return self.load(shared_postgres(), self.name)

    def reader(self, handle: Handle) -> Handle:
        return self.load(shared_postgres(), self.name)
