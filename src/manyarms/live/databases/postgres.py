"""The tables in PostgreSQL: for teams, and for a service with standbys on other machines."""

from __future__ import annotations

import contextlib
import functools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from manyarms.core.optional import need
from manyarms.errors import StoreError
from manyarms.live.databases.database import Database, LogRow, UnreachableError

if TYPE_CHECKING:
    import psycopg

LOCKS = 0x6D61  # the class of our advisory locks: number 0 is for those who make tables
_AT_ONCE = 5000  # rows that a stream fetches
# what a server says that is not there yet, or not any more
_PASSING = (
    *("refused", "starting up", "shutting down", "accepting connections", "recovery mode"),
    *("timeout", "terminat", "closed the connection", "too many", "remaining connection slots"),
)
_SHOWN = ("dbname", "experiment", "host", "port", "sslmode")  # of an address: no secrets
_PATIENCE = 10  # seconds that a statement may take
EVENTS = "bigint[], smallint[], bigint[], bigint[], float8[], float8[], text[]"


def driver() -> Any:
    """Return psycopg, or say how to install it."""
    return need("psycopg", "to use PostgreSQL", "postgres")


def options(application: str) -> dict[str, Any]:
    """Return how we connect."""
    return {
        "autocommit": True,
        "connect_timeout": 3,
        "options": f"-c statement_timeout={1000 * _PATIENCE} -c synchronous_commit=on",
        "application_name": application,
        "keepalives_idle": 5,
        "tcp_user_timeout": 5000,
    }


class PostgreSQL(Database):
    """A connection to a PostgreSQL database."""

    now = "extract(epoch FROM clock_timestamp())::float8"
    words: ClassVar = {
        "INTEGER PRIMARY KEY AUTOINCREMENT": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "INTEGER": "BIGINT",
        "REAL": "DOUBLE PRECISION",
        "BLOB": "BYTEA",
        "key TEXT NOT NULL": 'key TEXT COLLATE "C" NOT NULL',  # by bytes, as SQLite has it
        " WITHOUT ROWID": "",
    }

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._link: psycopg.Connection[Any] | None = None
        self._locked = False  # whether there is a lock, which ends with the connection

    def __str__(self) -> str:
        return shown(self.url)

    def open(self) -> None:
        """Connect; make the tables where there are none."""
        psycopg = driver()
        self.close()
        try:
            self._link = psycopg.connect(self.url, **options("manyarms"))
            self._prepare()
        except psycopg.Error as error:
            self.close()
            said = str(error).strip()
            if any(word in said for word in _PASSING):
                raise UnreachableError(said) from error
            raise StoreError(f"{self} cannot be opened: {said}.") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect."""
        link, self._link = self._link, None
        if link is not None:
            with contextlib.suppress(Exception):
                if self._locked:  # the server notices a closed connection a little later
                    link.execute("SELECT pg_advisory_unlock_all()")
            with contextlib.suppress(Exception):
                link.close()

    def lock(self, name: str) -> bool:
        """Keep others out until this connection ends; return False if another has the lock."""
        (self._locked,) = self.first(
            "SELECT pg_try_advisory_lock(:c, :k)",
            c=LOCKS,
            k=zlib.crc32(name.encode()) - (1 << 31),
        )
        return self._locked

    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows."""
        with self._known_errors() as link:
            cursor = link.execute(translated(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def copy(self, sql: str, text: str) -> None:
        """Run a COPY from a text, within a transaction."""
        with self._known_errors() as link, link.cursor() as cursor, cursor.copy(sql) as copy:
            copy.write(text)

    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""
        with (
            self._known_errors() as link,
            link.transaction(),
            link.cursor(name="manyarms") as cursor,
        ):
            cursor.itersize = _AT_ONCE
            cursor.execute(translated(sql), values or None)
            yield from cursor

    @contextlib.contextmanager
    def _known_errors(self) -> Iterator[psycopg.Connection[Any]]:
        psycopg = driver()
        if self._link is None:
            if self._locked:  # the lock has gone with the connection
                raise UnreachableError("the connection was lost")
            self._connect_again(psycopg)
        assert self._link is not None
        try:
            yield self._link
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()  # whatever it was: the next statement connects anew
            raise UnreachableError(str(error)) from error

    def _connect_again(self, psycopg: Any) -> None:
        try:
            self._link = psycopg.connect(self.url, **options("manyarms"))
        except psycopg.Error as error:
            raise UnreachableError(str(error)) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it, or nothing."""
        with self._known_errors() as link, link.transaction():
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Do all of it, or nothing, while nobody else makes tables."""
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(:c, 0)", c=LOCKS)
            yield

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return bool(self.first("SELECT to_regclass(:name) IS NOT NULL", name=name)[0])

    def append(self, experiment: int, head: int, rows: Sequence[LogRow]) -> bool:
        """Commit events in one statement, if `head` is still the last; return whether it was."""
        columns: Iterable[Sequence[Any]] = zip(*rows, strict=True)
        values = {f"e{k}": array(column) for k, column in enumerate(columns)}
        moved = self.run(
            "WITH fence AS (UPDATE experiments SET head = :new WHERE id = :x AND head = :old "
            f"RETURNING id){insertion('e', 'events', EVENTS)} SELECT count(*) FROM fence",
            x=experiment,
            old=head,
            new=head + len(rows),
            **values,
        )
        return bool(moved[0][0])


def shown(url: str) -> str:
    """Return a database's address without passwords.

    >>> shown("postgresql://ann:secret@db/arms?password=secret&sslmode=require")
    'postgresql://db/arms?sslmode=require'
    """
    base, _, query = re.sub(r"//.*@", "//", url).partition("?")
    parts = [part.partition("=") for part in query.split("&")]
    kept = [f"{name}={value}" for name, _, value in parts if name in _SHOWN]
    return "?".join(filter(None, (base, "&".join(kept))))


def array(column: Sequence[Any]) -> Any:
    """Return a column as PostgreSQL writes arrays: for numbers the driver takes long."""
    if isinstance(column[0], int | float):
        return f"{{{','.join(map(repr, column))}}}"
    return list(column)


def insertion(letter: str, table: str, types: str, conflict: str = "") -> str:
    """Return the part of a statement that inserts arrays as columns, if its fence stood."""
    arrays = ", ".join(f":{letter}{k}::{t}" for k, t in enumerate(types.split(", ")))
    return (
        f", {letter} AS (INSERT INTO {table} SELECT fence.id, rows.* FROM fence, "
        f"unnest({arrays}) AS rows{conflict})"
    )


@functools.cache
def translated(sql: str) -> Any:
    """Return a statement with PostgreSQL's marks."""
    return re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", sql.replace("%", "%%"))
