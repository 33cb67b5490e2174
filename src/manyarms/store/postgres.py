"""Stores in PostgreSQL (14 or newer): for a service with standbys on several machines.

The session that commits holds the leader's advisory lock. A leader that loses the lock has also
lost the session, so it cannot commit. The server ends the session of a leader that has sent nothing
for `SILENCE` seconds, so a frozen leader is replaced. A pooler that shares sessions between clients
(PgBouncer in transaction mode) breaks this; then only the primary key of the events prevents
conflicting writes.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import socket
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from manyarms.core.optional import need
from manyarms.errors import (
    ParameterError,
    PathNotFoundError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from manyarms.store.connection import Connection, Options, UniqueError
from manyarms.store.schema import FORMAT, TABLES, TYPES

if TYPE_CHECKING:
    import psycopg

SILENCE = 5.0  # seconds without a statement after which the server ends a leader's session
_TIMEOUTS = ("idle_session_timeout", "idle_in_transaction_session_timeout")
_LOCKS = 0x6D61  # the class of the advisory locks; number 0 is for creating tables
_AT_ONCE = 20_000  # rows that one statement inserts
_DIALECT = {
    "INTEGER PRIMARY KEY AUTOINCREMENT": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "BLOB": "BYTEA",
    " WITHOUT ROWID": "",
}
_MARK = "manyarms_store"  # the table that holds the format
_NUMBER = f"mod('{_MARK}'::regclass::oid::bigint, 2147483647)"  # of the lock: one for each schema
_LEADER_LOCK = f"{_LOCKS}, {_NUMBER}::int"
_LEADER = (
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE "
    "l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE "
    f"datname = current_database()) AND l.classid = {_LOCKS} AND l.objid::bigint = {_NUMBER}"
)
_KEPT = "SELECT id FROM experiments WHERE id = ANY (?) AND name IS NOT NULL FOR KEY SHARE"


def _driver() -> Any:
    return need("psycopg", "to use PostgreSQL", "postgres")


class PostgresConnection(Connection):
    """A session; the tables are in the schema of its search path."""

    def __init__(self, url: str, options: Options) -> None:
        driver = _driver()
        try:
            parts = driver.conninfo.conninfo_to_dict(url)
        except driver.Error as error:
            raise ParameterError(
                f"`store` must be postgresql://HOST/DATABASE: {str(error).strip()}."
            ) from error
        place = ":".join(parts[one] for one in ("host", "port") if one in parts)
        self._shown = f"postgresql://{place}/{parts.get('dbname', '')}"
        try:
            self._link: psycopg.Connection[Any] = driver.connect(
                url,
                autocommit=True,
                connect_timeout=max(2, math.ceil(options.wait)),
                application_name=f"manyarms {socket.gethostname()[:40]}:{os.getpid()}",
                keepalives_idle=5,
                tcp_user_timeout=10_000,
            )
        except driver.Error as error:
            raise StoreUnavailableError(
                f"{self} cannot be reached: {str(error).strip()}. Check the address and the server."
            ) from error
        try:
            self._prepare(options)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return self._shown

    def _prepare(self, options: Options) -> None:
        """Check the tables, and create them if there are none."""
        self.run(f"SET lock_timeout = {max(1, round(1000 * options.wait))}")
        self.run("SET synchronous_commit = on")
        if options.read_only:
            self.run("SET default_transaction_read_only = on")
        if not self._has_store():
            if not options.create:
                raise PathNotFoundError(f"There is no store in {self}. Check the address.")
            self._create_tables()

    def _has_store(self) -> bool:
        # not to_regclass, which may not see what another session has just created
        if not self.run(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relname = ? AND n.nspname = ANY (current_schemas(false))",
            _MARK,
        ):
            return False
        self._check_format(self.first(f"SELECT max(format) FROM {_MARK}")[0])
        return True

    def _create_tables(self) -> None:
        try:
            with self.transaction():
                self.run(f"SELECT pg_advisory_xact_lock({_LOCKS}, 0)")
                if self._has_store():  # another process has created them meanwhile
                    return
                for statement in TABLES:
                    self._link.execute(_translated(statement))
                self.run(f"CREATE TABLE {_MARK} (format BIGINT NOT NULL)")
                self.run(f"INSERT INTO {_MARK} VALUES ({FORMAT})")
        except _driver().errors.DuplicateTable as error:
            raise StoreDamagedError(
                f"{self} has tables of another program: {str(error).strip()}. Choose "
                f"another database or schema. Nothing was changed."
            ) from error

    def close(self) -> None:
        """Disconnect, which releases the lock."""
        with contextlib.suppress(_driver().Error):
            self._link.close()

    def lock(self) -> bool:
        """Try to take the advisory lock of this session."""
        (taken,) = self.first(f"SELECT pg_try_advisory_lock({_LEADER_LOCK})")
        if taken:
            for what in _TIMEOUTS:
                self.run(f"SET {what} = {1000 * SILENCE:.0f}")
        return bool(taken)

    def unlock(self) -> None:
        """Release the lock."""
        self.run("SELECT pg_advisory_unlock_all()")
        for what in _TIMEOUTS:
            self.run(f"RESET {what}")

    def check_lock(self) -> None:
        """Send a statement, so that the server does not end the session."""
        self.run("SELECT 1")

    def leader(self) -> str:
        """Return the name of the session that holds the lock."""
        row = self.first(_LEADER)
        return row[0].removeprefix("manyarms ") if row else ""

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Translate the driver's errors into those of manyarms."""
        driver = _driver()
        try:
            yield
        except driver.IntegrityError as error:
            raise UniqueError(str(error)) from error
        except driver.errors.LockNotAvailable as error:
            raise StoreUnavailableError(
                f"{self} is busy: another process is writing the same rows (a script, or "
                f"the service). Try again, or stop that process."
            ) from error
        except driver.errors.DiskFull as error:
            raise StoreUnavailableError(
                f"{self} cannot be written: {str(error).strip()}. Free some disk space on the "
                f"server."
            ) from error
        except (driver.OperationalError, driver.InterfaceError) as error:
            self.lost = self._link.closed
            raise StoreUnavailableError(
                f"{self} did not answer: {str(error).strip()}. Try again when the server "
                f"can be reached."
            ) from error
        except driver.errors.DuplicateTable:
            raise
        except driver.Error as error:
            raise StoreError(f"{self} cannot be used: {str(error).strip()}.") from error

    def run(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        with self._clear_errors():
            cursor = self._link.execute(_marked(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, one array for each column."""
        with self._clear_errors():
            for begin in range(0, len(rows), _AT_ONCE):
                self._link.execute(_many(table), _columns(rows[begin : begin + _AT_ONCE]))

    def keep(self, experiments: Collection[int]) -> None:
        """Lock these experiments against deletion; raise if one was deleted."""
        if len(self.run(_KEPT, list(experiments))) < len(experiments):
            raise UniqueError(f"An experiment in {self} was deleted.")

    def append(self, rows: Sequence[tuple[Any, ...]], experiments: Collection[int]) -> None:
        """Insert events in one statement: a transaction in one round trip."""
        if len(rows) > _AT_ONCE:
            with self.transaction():
                self.keep(experiments)
                self.insert("events", rows)
            return
        values = [list(experiments), *_columns(rows), len(experiments)]
        with self._clear_errors():
            inserted = self._link.execute(_append(), values).rowcount
        if not inserted:
            raise UniqueError(f"An experiment in {self} was deleted.")

    def rows_of(self, sql: str, experiment: int, keys: Sequence[Any]) -> list[Any]:
        """Run one query for all keys."""
        return self.run(f"{sql.removesuffix('= ?')}= ANY(?)", experiment, list(keys))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: all that it writes is committed, or nothing."""
        with self._clear_errors(), self._link.transaction():
            yield

    @contextlib.contextmanager
    def unchanging(self) -> Iterator[None]:
        """Read one state of the database within the block."""
        with self.transaction():
            self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


def _translated(sql: str) -> Any:
    for word, own in _DIALECT.items():
        sql = sql.replace(word, own)
    return sql


@functools.cache
def _marked(sql: str) -> Any:
    return sql.replace("?", "%s")


@functools.cache
def _append() -> Any:
    """Return the statement that inserts events unless one of their experiments was deleted."""
    return (
        f"WITH kept AS ({_marked(_KEPT)}) {_many('events')} WHERE (SELECT count(*) FROM kept) = %s"
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


@functools.cache
def _many(table: str) -> Any:
    arrays = ", ".join(f"%s::{one}[]" for one in TYPES[table])
    return f"INSERT INTO {table} SELECT * FROM unnest({arrays})"
