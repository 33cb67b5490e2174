"""The tables in SQLite: one file, nothing to set up."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from manyarms.core.files import FileLock, LockedError, check_single
from manyarms.errors import StoreError
from manyarms.live.databases.database import Database, LogRow, UnreachableError

SQLiteError = sqlite3.Error
_WAIT = 5.0  # seconds, while another process writes
_creating = threading.Lock()
_AT_ONCE = 2000  # rows that a stream fetches
# tried again: another process writes, or the disk was full for a while
_PASSING = ("locked", "busy", "full", "disk i/o error", "unable to open")


class SQLite(Database):
    """A connection to a file; every commit is on the disk when it returns.

    With `durable=False`, when the system likes: what a process has written survives it, but a
    computer that loses power may lose the last events.
    """

    now = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        super().__init__(f"sqlite:///{path}")
        self.path = Path(os.path.realpath(path))  # beside it lie the log of SQLite, and our lock
        self._durable = durable
        self._link: sqlite3.Connection | None = None
        self._lock: FileLock | None = None

    def open(self) -> None:
        """Connect; make the tables where there are none."""
        self.disconnect()
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
            link.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            link.execute("PRAGMA cache_size = -16000")
            link.execute("PRAGMA wal_autocheckpoint = 4000")
            self._prepare()
        except sqlite3.Error as error:
            self.disconnect()
            if _passes(error):
                raise UnreachableError(str(error)) from error
            raise StoreError(f"{self} cannot be opened: {error}. Is it an SQLite file?") from error
        except BaseException:
            self.disconnect()
            raise

    def _create(self) -> None:
        """Make the file, for its user alone: it has secrets. SQLite makes others beside it so.

        Nothing may close a file that SQLite has open elsewhere in this process: that would take its
        locks away. Hence only a new file is opened here, by one thread at a time.
        """
        with _creating, contextlib.suppress(OSError):  # SQLite says what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))

    def copy_into(self, target: Path) -> None:
        """Write the state that the database has now into an empty file, while others write to it.

        `VACUUM INTO` reads one state and takes no lock that a writer waits for. SQLite's own
        backup begins anew whenever somebody writes, and so never ends under load.
        """
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as link:
                link.execute("VACUUM INTO ?", (str(target),))
        except sqlite3.Error as error:
            raise StoreError(f"{self} cannot be copied to {target}: {error}.") from error

    def disconnect(self) -> None:
        """Close the connection, and keep the lock."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def close(self) -> None:
        """Disconnect, and let others have the lock."""
        self.disconnect()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def lock(self, name: str) -> bool:
        """Keep others out, by a file beside this one; return False if another process has it.

        An empty name is the service's, which has all experiments but those of handles.
        """
        if self.path.exists():
            check_single(self.path, self.path.stat())
        try:
            self._lock = FileLock(
                self.path.with_name(".".join(filter(None, (self.path.name, name, "lock")))),
                remove=True,
            )
        except LockedError:
            return False
        return True

    def is_locked(self) -> bool:
        """Whether others are kept out: they are not if somebody removed the lock's file."""
        return self._lock is not None and self._lock.stands()

    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows."""
        with self.known_errors() as link:
            return link.execute(sql, values).fetchall()

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement, with ? for values, for each row."""
        with self.known_errors() as link:
            link.executemany(sql, rows)

    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""
        with self.known_errors() as link:
            cursor = link.execute(sql, values)
            while rows := cursor.fetchmany(_AT_ONCE):
                yield from rows

    @contextlib.contextmanager
    def known_errors(self) -> Iterator[sqlite3.Connection]:
        """Say of errors that pass that the database did not answer."""
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

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Do all of it, or nothing; nobody else writes meanwhile."""
        return self.transaction()

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return self.first("SELECT 1 FROM sqlite_master WHERE name = :name", name=name) is not None

    def append(self, experiment: int, head: int, rows: Sequence[LogRow]) -> bool:
        """Commit events, durably, if `head` is still the last one; return whether it was."""
        with self.transaction():
            moved = self.run(
                "UPDATE experiments SET head = :new WHERE id = :x AND head = :old RETURNING id",
                x=experiment,
                old=head,
                new=head + len(rows),
            )
            if moved:
                self.insert_events(experiment, rows)
            return bool(moved)

    def insert_events(self, experiment: int, rows: Sequence[LogRow]) -> None:
        """Insert events, within a transaction."""
        self.run_many(f"INSERT INTO events VALUES ({int(experiment)}, ?, ?, ?, ?, ?, ?, ?)", rows)


def _passes(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(
        word in str(error).lower() for word in _PASSING
    )
