"""One handle in a database: the store that `recorded` is given, without the service."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Sequence

import numpy as np

from manyarms.core.files import FileLock, LockedError
from manyarms.errors import SavedFileError, StoreError
from manyarms.live.databases.database import (
    Batch,
    Database,
    ExperimentRow,
    LogRow,
    UnreachableError,
    packed,
)
from manyarms.live.databases.sqlite import SQLite
from manyarms.live.saving import MALFORMED_ERRORS
from manyarms.live.store import Contents, Event, Events


class DatabaseStore:
    """A store in SQLite or PostgreSQL: `recorded("sqlite:///shop.db", live)` for short.

    Parameters
    ----------
    database
        What `database_of(url)` returns.
    experiment
        The name of the game: a database holds many.

    Notes
    -----
    Every call is durable when it returns. The events before a snapshot stay in the database, and
    `live.events()` lists them; only those after it are played again. If another process takes
    over, this one is refused with its next call.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import manyarms as ma
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> address = f"sqlite:///{folder}/shop.db?experiment=buttons"
    >>> with ma.recorded(address, ma.MOSS().live(n_arms=1000, horizon=500)) as live:
    ...     pull = live.ask()
    >>> with ma.recorded(address) as live:
    ...     live.pending == [pull]
    True
    """

    def __init__(self, database: Database, experiment: str) -> None:
        self.failure = ""
        self._database = database
        self._name = experiment
        self._lock: FileLock | None = None
        self._process = 0
        self._id = self._epoch = self._head = 0

    def __str__(self) -> str:
        return f"{self._name} in {self._database}"

    def load(self) -> Contents | None:
        """Become the owner, and return the last snapshot with the events after it."""
        self._lock = self._locked()
        self._process, self.failure = os.getpid(), ""
        self._id = 0
        try:
            if isinstance(self._database, SQLite) and not self._database.path.exists():
                return None  # it is made when there is something to keep
            return self._load()
        except UnreachableError as error:
            self.close()
            raise StoreError(f"{self} cannot be opened: {error}. Try again later.") from error
        except BaseException:
            self.close()
            raise

    def _locked(self) -> FileLock | None:
        if not isinstance(self._database, SQLite):
            return None
        path = self._database.path
        try:
            return FileLock(path.with_name(f"{path.name}.{self._name}.lock"), remove=True)
        except LockedError as error:
            raise self._taken("") from error

    def _taken(self, owner: str) -> StoreError:
        by = f" by {owner}" if owner else ""
        return StoreError(
            f"{self} is open already{by}: a game has one writer. Close it there, or let that "
            f"process do the asking."
        )

    def _load(self) -> Contents | None:
        database = self._database
        database.open()
        row = database.find(self._name)
        if row is None:
            return None
        self._own(row)
        saved = database.snapshot(row.id)
        if saved is None:
            self._head = row.head
            return None
        events = list(database.events(row.id, saved[0]))
        self._head = row.head
        if len(events) != row.head - saved[0]:
            raise StoreError(f"{self} is damaged: events are missing. Restore a backup.")
        return Contents(saved[2], columns_of(events))

    def _own(self, row: ExperimentRow) -> None:
        """Take over from an owner that is gone."""
        if row.spec != "null":
            raise StoreError(
                f"{self} is an experiment of the service. Use it through the service, or choose "
                f"another name: ?experiment=NAME."
            )
        database, own = self._database, f"process {os.getpid()}"
        if not isinstance(database, SQLite):
            if database.holds_session(f"{self._name}:handle"):
                raise self._taken(row.owner)
            database.hold_session(f"{self._name}:handle")
        if not database.acquire(self._name, own, row.epoch):
            raise self._taken("another process")
        self._id, self._epoch = row.id, row.epoch + 1

    def append(self, events: Sequence[Event], snapshot: Callable[[], bytes]) -> None:
        """Commit the events, if nobody has taken over."""
        now = time.time()
        rows = [
            LogRow(self._head + 1 + k, int(e.kind), e.pull, e.arm, e.reward, now, packed(e))
            for k, e in enumerate(events)
        ]
        batch = Batch(self._id, self._epoch, self._head, events=rows)
        try:
            (stood,) = self._database.commit([batch])
        except UnreachableError as error:
            self.failure = str(error)
            raise StoreError(
                f"{self} could not be written: {error}. Open it again with recorded(...): that "
                f"shows whether the last call is in it."
            ) from error
        if not stood:
            raise self._lost()
        self._head = batch.new

    def save(self, snapshot: bytes) -> None:
        """Keep a snapshot: what was kept before it is not played again."""
        database = self._database
        if self._id == 0:
            self._create()
        try:
            kept = database.save(
                self._id, self._head, "", snapshot, b"", epoch=self._epoch, keep_first=True
            )
        except UnreachableError as error:
            raise OSError(str(error)) from error
        if not kept:
            raise self._lost()

    def history(self) -> list[Contents]:
        """Return all that was kept: the first snapshot, and every event since."""
        database = self._database
        first = database.first(
            "SELECT seq, state FROM snapshots WHERE experiment = :x ORDER BY seq LIMIT 1",
            x=self._id,
        )
        if first is None:
            return []
        seq, state = first
        return [Contents(bytes(state), columns_of(list(database.events(self._id, seq))))]

    def _lost(self) -> StoreError:
        self.failure = "another process took over"
        return StoreError(
            f"{self} could not be written: {self.failure}. Let that one do the asking."
        )

    def _create(self) -> None:
        database = self._database
        database.open()
        database.create(self._name, "null", "recorded", secrets.token_hex(16))
        row = database.find(self._name)
        assert row is not None
        self._own(row)
        self._head = row.head

    def close(self) -> None:
        """Let others have the game."""
        if self._process != os.getpid():
            return
        self._process = 0
        if self._id and not self.failure:
            with contextlib.suppress(UnreachableError):
                self._database.release(self._id, self._epoch)
        self._database.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def columns_of(rows: Sequence[LogRow]) -> Events:
    """Return events by columns."""
    _, kind, pull, arm, reward, at, more = zip(*rows, strict=True) if rows else ((),) * 7
    kinds, pulls, arms = (np.array(column, np.int64) for column in (kind, pull, arm))
    try:
        names = [name for text in more if text is not None for name in json.loads(text)[0]]
    except MALFORMED_ERRORS as error:
        raise SavedFileError(
            "The database is damaged: names of arms that came cannot be read. Restore a backup."
        ) from error
    return Events(kinds, pulls, arms, np.array(reward, float), names, np.array(at, float))
