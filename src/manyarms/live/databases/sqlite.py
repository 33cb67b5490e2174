"""The tables in SQLite: one file, nothing to set up."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from manyarms.errors import StoreError
from manyarms.live.databases.database import (
    LEASE,
    SETTABLE,
    Batch,
    Database,
    UnreachableError,
    statements,
)

__all__ = ["SQLite"]

_SIZES = (256, 64, 16, 4, 1)  # rows of one statement
_AT_ONCE = 2000  # rows that a stream fetches
# tried again: another process writes, or the disk was full for a while
_PASSING = ("locked", "busy", "full", "disk i/o error", "unable to open")


class SQLite(Database):
    """A connection to a file; every commit is on the disk when it returns.

    With `durable=False`, when the system likes: what a process has written survives it, but a
    computer that loses power may lose the last events.
    """

    now = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path, *, durable: bool = True, wait: float = 5.0) -> None:
        super().__init__(f"sqlite:///{path}")
        self.path = path
        self._wait, self._durable = wait, durable
        self._link: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect; make the tables where there are none."""
        self.close()
        try:
            link = sqlite3.connect(
                self.path, isolation_level=None, timeout=self._wait, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise StoreError(f"{self} cannot be opened: {error}.") from error
        self._link = link
        try:
            link.execute("PRAGMA journal_mode = WAL")
            self._set_sync("FULL")
            link.execute("PRAGMA cache_size = -16000")
            link.execute("PRAGMA wal_autocheckpoint = 4000")
            tables = link.execute("SELECT count(*) FROM sqlite_master WHERE name = 'settings'")
            if tables.fetchone()[0] == 0:
                link.execute("BEGIN IMMEDIATE")
                for statement in statements("sqlite.sql"):
                    link.execute(statement)
                link.execute("COMMIT")
            self._check_schema()
        except sqlite3.Error as error:
            self.close()
            if _passes(error):
                raise UnreachableError(str(error)) from error
            raise StoreError(f"{self} cannot be opened: {error}. Is it an SQLite file?") from error
        except BaseException:
            self.close()
            raise

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
        with self.transaction(), self._known_errors() as link:
            return [self._commit(link, batch) for batch in batches]

    def _commit(self, link: sqlite3.Connection, batch: Batch) -> bool:
        more = "".join(f", {name} = :{name}" for name in SETTABLE if name in batch.columns)
        x = batch.experiment
        fence = link.execute(
            f"UPDATE experiments SET head = :new, lease_until = {self.now} + {LEASE}{more} "
            "WHERE id = :x AND epoch = :epoch AND head = :old",
            {"new": batch.new, "old": batch.old, "epoch": batch.epoch, "x": x} | batch.columns,
        )
        if fence.rowcount != 1:
            return False
        _insert(link, "events", x, 7, batch.events)
        _insert(link, "ask_keys", x, 7, batch.keys)
        if batch.minutes:
            link.executemany(
                f"INSERT INTO minutes VALUES ({x}, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "asked = asked + excluded.asked, told = told + excluded.told, "
                "abandoned = abandoned + excluded.abandoned, reward = reward + excluded.reward, "
                "fresh = fresh + excluded.fresh",
                [(minute, *counts) for minute, counts in batch.minutes.items()],
            )
        return True

    def add_arms(self, experiment: int, epoch: int, rows: Iterable[tuple[int, str]]) -> bool:
        """Insert arms, if `epoch` is that of the owner; return whether it is."""
        arms = list(rows)
        try:
            self._set_sync("NORMAL")
            with self.transaction(), self._known_errors() as link:
                if self.heads([experiment]).get(experiment, (None,))[0] != epoch:
                    return False
                _insert(link, "arms", experiment, 2, arms)
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


def _insert(link: sqlite3.Connection, table: str, x: int, width: int, rows: Sequence[Any]) -> None:
    """Insert many rows with few statements: between two of them the interpreter may be taken away.

    They come in few sizes, so that they need not be prepared anew.
    """
    at, left = 0, len(rows)
    while left:
        size = next(size for size in _SIZES if size <= left)
        row = f"({x}{', ?' * width})"
        sql = f"INSERT INTO {table} VALUES {', '.join([row] * size)}"
        link.execute(sql, list(chain.from_iterable(rows[at : at + size])))
        at, left = at + size, left - size
