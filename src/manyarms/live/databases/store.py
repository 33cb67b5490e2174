"""One handle in a database: the store that `recorded` is given, without the service."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Iterator, Sequence

import numpy as np

from manyarms.core.process_copy import ProcessCopy
from manyarms.errors import SavedFileError, StoreError
from manyarms.live.databases.database import (
    Database,
    ExperimentRow,
    LogRow,
    UnreachableError,
    packed,
)
from manyarms.live.databases.sqlite import SQLite
from manyarms.live.saving import MALFORMED_ERRORS
from manyarms.live.store import Contents, Event, Events, Snapshot, is_long, is_worth_a_copy

_logger = logging.getLogger(__name__)


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
        self._process = 0
        self._id = self._head = 0
        self._saved = 0  # the head of the last snapshot
        self._copy: ProcessCopy | None = None  # of this process, which makes the next snapshot
        self._copied = 0  # the head of that one
        self._may_copy = True  # this process; not any more once that failed

    def __str__(self) -> str:
        return f"{self._name} in {self._database}"

    def load(self) -> Contents | None:
        """Keep others out, and return the last snapshot with the events after it."""
        self._process, self.failure = os.getpid(), ""
        self._id = 0
        try:
            return self._load()
        except UnreachableError as error:
            self.close()
            raise StoreError(f"{self} cannot be opened: {error}. Try again later.") from error
        except BaseException:
            self.close()
            raise

    def _load(self) -> Contents | None:
        database = self._database
        if isinstance(database, SQLite):
            self._take()
            if not database.path.exists():
                return None  # it is made when there is something to keep
        database.open()
        row = database.find(self._name)
        if row is None:
            return None
        self._own(row)
        saved = database.snapshot(row.id)
        if saved is None:
            return None
        self._saved, state, _, _ = saved
        events = list(database.events(row.id, self._saved))
        if len(events) != self._head - self._saved:
            raise StoreError(f"{self} is damaged: events are missing. Restore a backup.")
        return Contents(state, columns_of(events))

    def _take(self) -> None:
        """Keep others out: a game has one writer."""
        if not self._database.lock(self._name):
            raise StoreError(
                f"{self} is open already: a game has one writer. Close it there, or let that "
                f"process do the asking."
            )

    def _own(self, row: ExperimentRow) -> None:
        if row.spec != "null":
            raise StoreError(
                f"{self} is an experiment of the service. Use it through the service, or choose "
                f"another name: ?experiment=NAME."
            )
        if not isinstance(self._database, SQLite):
            self._take()
            row = self._database.find(self._name) or row  # as whoever had it before has left it
        self._id, self._head = row.id, row.head

    def append(self, events: Sequence[Event], snapshot: Snapshot) -> None:
        """Commit the events, if nobody has taken over."""
        now = time.time()
        rows = [
            LogRow(self._head + 1 + k, int(e.kind), e.pull, e.arm, e.reward, now, packed(e))
            for k, e in enumerate(events)
        ]
        try:
            stood = self._database.append(self._id, self._head, rows)
        except UnreachableError as error:
            self.failure = str(error)
            raise StoreError(
                f"{self} could not be written: {error}. Open it again with recorded(...): that "
                f"shows whether the last call is in it."
            ) from error
        if not stood:
            raise self._lost()
        self._head += len(rows)
        if self._copy is not None or is_long(self._head - self._saved, snapshot.arms_tried):
            self._compact(snapshot)

    def _compact(self, snapshot: Snapshot) -> None:
        with self._going_on_if_it_fails():
            if self._copy is not None:
                self._save_copied(self._copy)
            elif not (self._may_copy and is_worth_a_copy(snapshot) and self._copying(snapshot)):
                self.save(snapshot())

    @contextlib.contextmanager
    def _going_on_if_it_fails(self) -> Iterator[None]:
        """Log that a snapshot could not be kept and go on, because the events are kept."""
        try:
            yield
        except OSError as error:
            if self._copy is not None:
                self._may_copy = False
                self._stop_copying()
            self._saved = self._head  # try again later
            _logger.warning("%s could not be compacted, and goes on as it was: %r", self, error)
        except BaseException:  # Ctrl-C: a piece of what is read may be lost
            self._stop_copying()
            raise

    def _copying(self, snapshot: Snapshot) -> bool:
        """Let a copy of this process make a snapshot; return whether there is one."""
        with contextlib.suppress(OSError):  # no room for another process
            self._copy, self._copied = ProcessCopy(snapshot), self._head
        return self._copy is not None

    def _save_copied(self, copy: ProcessCopy) -> None:
        data = copy.poll()
        if data is not None:
            self._save(data, self._copied)
            self._copy = None

    def _stop_copying(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.stop()

    def save(self, snapshot: bytes) -> None:
        """Keep a snapshot: what was kept before it is not played again."""
        self._stop_copying()
        if self._id == 0:
            self._create()
        self._save(snapshot, self._head)

    def _save(self, snapshot: bytes, head: int) -> None:
        try:
            kept = self._database.save(self._id, head, snapshot, b"")
        except UnreachableError as error:
            raise OSError(str(error)) from error
        if not kept:
            raise self._lost()
        self._saved = head

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

    def close(self) -> None:
        """Let others have the game."""
        if self._process != os.getpid():
            return
        self._process = 0
        try:
            with self._going_on_if_it_fails():
                while self._copy is not None and not self.failure:
                    self._save_copied(self._copy)  # else short games would never be compacted
                    time.sleep(0.005)
        finally:
            self._stop_copying()
            self._database.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if self._process == os.getpid():
                self._stop_copying()
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
