"""The tables in SQLite: one file, nothing to set up."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from manyarms.errors import StoreError
from manyarms.live.databases.database import SETTABLE, Batch, Database, UnreachableError

_SIZES = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # rows of one statement
_MOST = _SIZES[-1]
_WAIT = 5.0  # seconds, while another process writes
_creating = threading.Lock()
_AT_ONCE = 2000  # rows that a stream fetches
# tried again: another process writes, or the disk was full for a while
_PASSING = ("locked", "busy", "full", "disk i/o error", "unable to open")

# A batch is entered with one statement, because after each one the committer must get the
# interpreter back from the loop, which takes longer than the statement. Rows of the view `batch`
# say for which table they are; a trigger for each puts them there, in order.
_WIDTH = 9  # columns of the view
_FENCE, _EVENT, _KEY, _MINUTE = range(4)
_NO_FENCE = "another owner"
_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
_COLUMNS = "NEW.a, NEW.b, NEW.c, NEW.d, NEW.e, NEW.f"


class SQLite(Database):
    """A connection to a file; every commit is on the disk when it returns.

    With `durable=False`, when the system likes: what a process has written survives it, but a
    computer that loses power may lose the last events.
    """

    now = _NOW

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        super().__init__(f"sqlite:///{path}")
        self.path = path
        self._durable = durable
        self._link: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect; make the tables where there are none."""
        self.close()
        self._create()
        try:
            link = sqlite3.connect(
                self.path, isolation_level=None, timeout=_WAIT, check_same_thread=False
            )
        except sqlite3.Error as error:
            fix = "Is its folder there, and may this user write to it?"
            raise StoreError(f"{self} cannot be opened: {error}. {fix}") from error
        self._link = link
        try:
            link.execute("PRAGMA journal_mode = WAL")
            self._set_sync("FULL")
            link.execute("PRAGMA cache_size = -16000")
            link.execute("PRAGMA wal_autocheckpoint = 4000")
            if self.first("SELECT 1 FROM sqlite_master WHERE name = 'settings'") is None:
                with self.transaction():
                    self._make_tables()
            self._check_schema()
            link.execute("PRAGMA temp_store = MEMORY")
            for statement in _batch_sql(self.lease):
                link.execute(statement)
        except sqlite3.Error as error:
            self.close()
            if _passes(error):
                raise UnreachableError(str(error)) from error
            raise StoreError(f"{self} cannot be opened: {error}. Is it an SQLite file?") from error
        except BaseException:
            self.close()
            raise

    def _create(self) -> None:
        """Make the file, for its user alone: it has secrets. SQLite makes others beside it so.

        Nothing may close a file that SQLite has open elsewhere in this process: that would take its
        locks away. Hence only a new file is opened here, by one thread at a time.
        """
        with _creating, contextlib.suppress(OSError):  # SQLite says what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))

    def _set_sync(self, when: str) -> None:
        if self._link is not None:
            self._link.execute(f"PRAGMA synchronous = {when if self._durable else 'OFF'}")

    def close(self) -> None:
        """Disconnect."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows."""
        with self._known_errors() as link:
            return link.execute(sql, values).fetchall()

    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""
        with self._known_errors() as link:
            cursor = link.execute(sql, values)
            while rows := cursor.fetchmany(_AT_ONCE):
                yield from rows

    @contextlib.contextmanager
    def _known_errors(self) -> Iterator[sqlite3.Connection]:
        if self._link is None:
            raise UnreachableError(f"{self} is closed")
        try:
            yield self._link
        except sqlite3.OperationalError as error:
            if _passes(error):
                raise UnreachableError(str(error)) from error
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it, or nothing."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error, UnreachableError):
                self.run("ROLLBACK")
            raise

    def commit(self, batches: Sequence[Batch]) -> list[bool]:
        """Commit batches in one durable transaction; return for each whether its fence stood."""
        if len(batches) == 1 and _is_small(batches[0]):
            return [self._commit(batches[0])]  # one statement is its own transaction
        with self.transaction():
            return [self._commit(batch) for batch in batches]

    def _commit(self, batch: Batch) -> bool:
        x, others = batch.experiment, dict(batch.columns)
        fence = x, _FENCE, batch.epoch, batch.old, batch.new, others.pop("engine", None)
        values: list[Any] = [*fence, None, None, None]
        for kind, rows in ((_EVENT, batch.events), (_KEY, batch.keys)):
            for row in rows:
                values += x, kind, *row
        for minute, counts in batch.minutes.items():
            values += x, _MINUTE, minute, *counts, None
        try:
            with self._known_errors() as link:
                for at in range(0, len(values), _MOST * _WIDTH):
                    _enter(link, values[at : at + _MOST * _WIDTH])
                if others:
                    more = ", ".join(f"{name} = :{name}" for name in SETTABLE if name in others)
                    link.execute(f"UPDATE experiments SET {more} WHERE id = :x", others | {"x": x})
        except sqlite3.IntegrityError as error:
            if str(error) == _NO_FENCE:
                return False
            raise
        return True

    def keys_of(self, experiment: int, numbers: Sequence[int]) -> dict[int, str]:
        """Return the keys of arms: in one row, for the reason that a batch is one statement."""
        rows = self.run(
            "SELECT json_group_object(number, key) FROM arms WHERE experiment = :x AND number IN "
            "(SELECT value FROM json_each(:numbers))",
            x=experiment,
            numbers=json.dumps(list(numbers)),
        )
        return {int(number): key for number, key in json.loads(rows[0][0]).items()}

    def add_arms(self, experiment: int, epoch: int, rows: Iterable[tuple[int, str]]) -> bool:
        """Insert arms, if `epoch` is that of the owner; return whether it is."""
        arms = list(rows)
        try:
            self._set_sync("NORMAL")
            with self.transaction(), self._known_errors() as link:
                if self.heads([experiment]).get(experiment, (None,))[0] != epoch:
                    return False
                for at in range(0, len(arms), _MOST):
                    _insert_arms(link, experiment, arms[at : at + _MOST])
                return True
        except sqlite3.IntegrityError as error:
            raise ValueError(self.taken(experiment, arms)) from error
        finally:
            self._set_sync("FULL")

    def hold_session(self, owner: str) -> None:
        """Do nothing: the file is on this machine, and a port that refuses says enough."""

    def holds_session(self, owner: str) -> bool:
        """Return False: see `hold_session`."""
        return False


def _passes(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(
        word in str(error).lower() for word in _PASSING
    )


def _is_small(batch: Batch) -> bool:
    """Whether one statement commits a batch."""
    rows = 1 + len(batch.events) + len(batch.keys) + len(batch.minutes)
    return rows <= _MOST and not batch.columns.keys() - {"engine"}


def _enter(link: sqlite3.Connection, values: list[Any]) -> None:
    """Insert rows into the view; statements come in few sizes, so that they stay prepared."""
    count = len(values) // _WIDTH
    size = next(size for size in _SIZES if size >= count)
    link.execute(_entering(size), values + [None] * (_WIDTH * (size - count)))


@functools.cache
def _entering(size: int) -> str:
    row = f"({', '.join('?' * _WIDTH)})"
    return f"INSERT INTO batch VALUES {', '.join([row] * size)}"


def _insert_arms(link: sqlite3.Connection, experiment: int, arms: list[tuple[int, str]]) -> None:
    row = f"({experiment}, ?, ?)"
    sql = f"INSERT INTO arms VALUES {', '.join([row] * len(arms))}"
    link.execute(sql, list(chain.from_iterable(arms)))


def _batch_sql(lease: float) -> Iterator[str]:
    """Yield what lets one statement insert a whole batch: a view, and what its rows do."""
    zeros = ", ".join("0" * 9)
    yield f"CREATE TEMP VIEW batch (x, what, a, b, c, d, e, f, g) AS SELECT {zeros}"
    does = {
        _FENCE: f"SELECT RAISE(ABORT, '{_NO_FENCE}') WHERE NOT EXISTS (SELECT 1 FROM experiments "
        "WHERE id = NEW.x AND epoch = NEW.a AND head = NEW.b); "
        f"UPDATE experiments SET head = NEW.c, lease_until = {_NOW} + {lease}, "
        "engine = coalesce(NEW.d, engine) WHERE id = NEW.x",
        _EVENT: f"INSERT INTO events VALUES (NEW.x, {_COLUMNS}, NEW.g)",
        _KEY: f"INSERT INTO ask_keys VALUES (NEW.x, {_COLUMNS}, NEW.g)",
        _MINUTE: f"INSERT INTO minutes VALUES (NEW.x, {_COLUMNS}) ON CONFLICT DO UPDATE SET "
        "asked = asked + excluded.asked, told = told + excluded.told, "
        "abandoned = abandoned + excluded.abandoned, reward = reward + excluded.reward, "
        "fresh = fresh + excluded.fresh",
    }
    for what, sql in does.items():
        yield (
            f"CREATE TEMP TRIGGER batch_{what} INSTEAD OF INSERT ON batch WHEN NEW.what = {what} "
            f"BEGIN {sql}; END"
        )
