"""Stores in SQLite: one file, nothing to set up."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from manyarms.core.files import FileLock, LockedError, check_single, replaced_by
from manyarms.errors import (
    ParameterError,
    PathNotFoundError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from manyarms.store.connection import Connection, Options, UniqueError
from manyarms.store.schema import FORMAT, TABLES, TYPES

_APPLICATION = 0x6D616E79  # "many": marks the files of manyarms
_CHECKPOINT = 4000  # pages; when the write-ahead log is longer, it is moved into the file
_CACHE = 16_000  # KiB
_creating = threading.Lock()
_INSERTS = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * len(types))})"
    for table, types in TYPES.items()
}
_EXISTS = "SELECT 1 FROM experiments WHERE id = ? AND name IS NOT NULL"
_MARKS = ", ".join("?" * len(TYPES["events"]))
_APPEND = f"INSERT INTO events SELECT {_MARKS} WHERE EXISTS ({_EXISTS})"
_FIXES = {
    sqlite3.SQLITE_BUSY: "Another process is writing to this file (a script, or the service). "
    "Try again, or stop that process",
    sqlite3.SQLITE_LOCKED: "Another process is writing to this file. Try again",
    sqlite3.SQLITE_FULL: "Free some disk space, then open the store again",
    sqlite3.SQLITE_IOERR: "Check the disk and its free space, then open the store again",
    sqlite3.SQLITE_CANTOPEN: "Check that its folder exists and that this user may write to it",
    sqlite3.SQLITE_READONLY: "Allow this user to write to the file and its folder",
    sqlite3.SQLITE_PERM: "Allow this user to write to the file and its folder",
}


class SQLiteConnection(Connection):
    """A connection to a file; SQLite's write-ahead log and the leader's lock are beside it."""

    def __init__(self, path: Path, options: Options) -> None:
        self._given, self.path = path, Path(os.path.realpath(path))
        self._lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock: FileLock | None = None
        self._files: list[tuple[str, int, int]] = []
        if self.path.exists():
            check_single(self.path, self.path.stat())
        elif options.create:
            self._create_file()
        else:
            raise PathNotFoundError(f"There is no store {self}. Check the path.")
        with self._clear_errors("opened"):
            self._link = sqlite3.connect(
                f"{self.path.as_uri()}?mode={'ro' if options.read_only else 'rw'}",
                uri=True,
                isolation_level=None,
                timeout=options.wait,
                check_same_thread=False,
            )
        try:
            with self._clear_errors("opened"):
                self._prepare(options)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return f"sqlite:///{self._given}"

    def _create_file(self) -> None:
        """Create a file that only its user can read, because it holds hashes of tokens.

        Closing a file that SQLite has open elsewhere in this process would release SQLite's locks.
        So only a new file is opened here, by one thread at a time.
        """
        with _creating, contextlib.suppress(OSError):  # SQLite reports the error
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))

    def _prepare(self, options: Options) -> None:
        """Set up the file; the file of another program is not changed."""
        self._link.execute("PRAGMA trusted_schema = OFF")  # a crafted file must not call functions
        with self.unchanging():
            has_store = self._has_store()
        if not has_store:
            if not options.create:
                raise StoreDamagedError(f"{self} is empty: there is no store in it.")
            self._create_tables()
        if not options.read_only:
            self._use_write_ahead_log(options.wait)
        self._link.execute(f"PRAGMA synchronous = {'FULL' if options.durable else 'NORMAL'}")
        self._link.execute(f"PRAGMA cache_size = -{_CACHE}")
        self._link.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        self._link.execute("SELECT count(*) FROM experiments")  # opens the write-ahead log
        for path in (str(self.path), f"{self.path}-wal"):
            with contextlib.suppress(FileNotFoundError):  # if only read, there may be no log
                found = os.stat(path)  # noqa: PTH116
                self._files.append((path, found.st_dev, found.st_ino))

    def _use_write_ahead_log(self, wait: float) -> None:
        """Switch a new file to this log; SQLite does not wait for others that do the same."""
        end = time.monotonic() + wait
        while True:
            try:
                self._link.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _has_store(self) -> bool:
        """Whether the file holds a store; raise if it belongs to another program."""
        number = self._link.execute("PRAGMA application_id").fetchone()[0]
        if number == _APPLICATION:
            self._check_format(self._link.execute("PRAGMA user_version").fetchone()[0])
            self._check_schema()
            return True
        if number or self._link.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreDamagedError(
                f"{self} is a database of another program. Choose another file. Nothing "
                f"was changed."
            )
        return False

    def _check_schema(self) -> None:
        """Raise unless the file has exactly our tables: a view may run forever, a trigger writes.

        SQLite's own objects have no SQL, or begin with "sqlite_", a prefix that SQLite reserves.
        """
        rows = self._link.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        expected = {" ".join(statement.split()) for statement in TABLES}
        for kind, name, sql in rows:
            if sql is not None and not str(name).startswith("sqlite_"):
                statement = " ".join(str(sql).split())
                if statement not in expected:
                    raise StoreDamagedError(
                        f"{self} has a {kind} {name!r} that manyarms did not make. Another program "
                        f"changed the file: restore a backup. Nothing was changed."
                    )
                expected.remove(statement)
        if expected:
            raise StoreDamagedError(f"{self} lacks a table or an index. Restore a backup.")

    def _create_tables(self) -> None:
        with self.transaction():
            if self._has_store():  # another process has created it meanwhile
                return
            for statement in TABLES:
                self._link.execute(statement)
            self._link.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._link.execute(f"PRAGMA user_version = {FORMAT}")

    def close(self) -> None:
        """Disconnect and release the lock."""
        self._link.close()
        self.unlock()

    def lock(self) -> bool:
        """Try to take the leader's lock."""
        try:
            self._lock = FileLock(self._lock_path, remove=True)
        except LockedError:
            return False
        except OSError as error:
            raise StoreUnavailableError(f"{self} cannot be locked: {error}.") from error
        return True

    def unlock(self) -> None:
        """Release the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def check_lock(self) -> None:
        """Raise if the lock or the file was removed or replaced."""
        if self._lock is None or not self._lock.stands():
            raise StoreError(f"This process no longer leads: the lock file of {self} was removed.")
        self.check_files()

    def leader(self) -> str:
        """Return the process that holds the lock."""
        try:
            text = self._lock_path.read_text(encoding="ascii", errors="replace").strip("\0 \n")
        except OSError:
            return ""
        return f"process {text}"

    def vacuum_into(self, target: Path) -> None:
        """Write the current contents to an empty file; others may write meanwhile.

        SQLite's backup functions start again whenever another process writes, and may never end.
        """
        with self._clear_errors("copied"):
            self._link.execute("VACUUM INTO ?", (str(target),))

    def check_files(self) -> None:
        """Raise if the file was removed or replaced: the next start would not see new events."""
        try:
            for path, device, number in self._files:
                found = os.stat(path)  # noqa: PTH116
                if found.st_ino != number or found.st_dev != device:
                    break
            else:
                return
        except OSError:
            pass
        raise StoreError(
            f"{self} was removed or replaced while it was open. Nothing was written. Put "
            f"the file back with its -wal file, and open the store again."
        )

    def run(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        with self._clear_errors("used"):
            return self._link.execute(sql, values).fetchall()

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows within a transaction."""
        with self._clear_errors("written"):
            self._link.executemany(_INSERTS[table], rows)

    def keep(self, experiments: Collection[int]) -> None:
        """Raise if one of these experiments was deleted; the transaction is the only writer."""
        for one in experiments:
            if self.first(_EXISTS, one) is None:
                raise UniqueError(f"Experiment {one} in {self} was deleted.")

    def append(self, rows: Sequence[tuple[Any, ...]], experiments: Collection[int]) -> None:
        """Insert events; a single one needs neither BEGIN nor COMMIT."""
        if len(rows) > 1:
            with self.transaction():
                self.keep(experiments)
                self.insert("events", rows)
            return
        self.check_files()
        try:
            inserted = self._link.execute(_APPEND, (*rows[0], rows[0][0])).rowcount
        except sqlite3.Error as error:
            raise self._clear(error, "written") from error
        if not inserted:
            raise UniqueError(f"Experiment {rows[0][0]} in {self} was deleted.")

    def rows_of(self, sql: str, experiment: int, keys: Sequence[Any]) -> list[Any]:
        """Run a query for each key."""
        run = self._link.execute
        with self._clear_errors("read"):
            return [row for key in keys for row in run(sql, (experiment, key))]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: all that it writes is committed, or nothing."""
        self.check_files()
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._link.in_transaction:  # after some errors, SQLite has already rolled back
            with contextlib.suppress(sqlite3.Error):
                self._link.execute("ROLLBACK")

    @contextlib.contextmanager
    def unchanging(self) -> Iterator[None]:
        """Read one state of the file within the block."""
        self.run("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    @contextlib.contextmanager
    def _clear_errors(self, what: str) -> Iterator[None]:
        """Translate SQLite's errors into those of manyarms."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._clear(error, what) from error

    def _clear(self, error: sqlite3.Error, what: str) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended code
        if code == sqlite3.SQLITE_CONSTRAINT:
            return UniqueError(f"{self} cannot be {what}: {error}.")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return StoreDamagedError(
                f"{self} is not an SQLite file, or it is damaged: {error}. Restore a backup, or "
                f"choose another file. Nothing was changed."
            )
        if code in _FIXES:
            return StoreUnavailableError(f"{self} cannot be {what}: {error}. {_FIXES[code]}.")
        return StoreError(f"{self} cannot be {what}: {error}.")


def make_replaceable(path: Path) -> None:
    """Remove the write-ahead log of a file that is to be replaced; it must not be in use.

    A process that was killed leaves a log, and SQLite would apply it to the new file. Its events
    are moved into the old file, so that this stays intact if it is not replaced after all.
    """
    path = replaced_by(path)
    beside = [path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm", "-journal")]
    if path.exists() and any(one.exists() for one in beside):
        link = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0
        )
        try:
            link.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            raise ParameterError(
                f"`path` must be a file that can be replaced, got '{path}': {error}. If another "
                f"handle or process has it open, close it there; or choose another name."
            ) from error
        except sqlite3.DatabaseError:
            pass  # not an SQLite file, or a damaged one: there is nothing to save
        finally:
            link.close()
    for one in beside:
        one.unlink(missing_ok=True)
