"""The tables in PostgreSQL: for teams, and for nodes on several machines."""

from __future__ import annotations

import contextlib
import functools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from manyarms.core.optional import need
from manyarms.errors import StoreError
from manyarms.live.databases.database import SETTABLE, Batch, Database, UnreachableError

if TYPE_CHECKING:
    import psycopg

_AT_ONCE = 5000  # rows that a stream fetches
_LOCK_CLASS = 0x6D61  # of our advisory locks
_COPIED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# what a server says that is not there yet, or not any more
_PASSING = (
    *("refused", "starting up", "shutting down", "accepting connections", "recovery mode"),
    *("timeout", "terminat", "closed the connection", "too many", "remaining connection slots"),
)
_PATIENCE = 10  # seconds that a statement of the owner may take
_EVENTS = "bigint[], smallint[], bigint[], bigint[], float8[], float8[], text[]"
_KEYS = "text[], bigint[], bigint[], text[], text[], text[], float8[]"
_MINUTES = "bigint[], bigint[], bigint[], bigint[], float8[], bigint[]"


def _driver() -> Any:
    return need("psycopg", "to use PostgreSQL", "postgres")


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
        self._session = ""  # whose lock this connection holds

    def __str__(self) -> str:
        return re.sub(r"//[^/@]*@", "//", self.url)  # without the password

    def open(self) -> None:
        """Connect; make the tables where there are none."""
        driver = _driver()
        self.close()
        try:
            self._connect(driver)
            if self.first("SELECT to_regclass('settings') IS NULL")[0]:
                with self.transaction():
                    self.run("SELECT pg_advisory_xact_lock(:c, 0)", c=_LOCK_CLASS)
                    self._make_tables()
            self._check_schema()
        except driver.Error as error:
            self.close()
            said = str(error).strip()
            if any(word in said for word in _PASSING):
                raise UnreachableError(said) from error
            raise StoreError(f"{self} cannot be opened: {said}.") from error
        except BaseException:
            self.close()
            raise

    def _connect(self, driver: Any) -> None:
        wait = f"-c statement_timeout={1000 * _PATIENCE} -c synchronous_commit=on"
        self._link = driver.connect(
            self.url,
            autocommit=True,
            connect_timeout=3,
            options=wait,
            application_name="manyarms",
            keepalives_idle=5,
            tcp_user_timeout=5000,
        )
        if self._session:
            self.hold_session(self._session)

    def close(self) -> None:
        """Disconnect."""
        link, self._link = self._link, None
        if link is not None:
            with contextlib.suppress(Exception):
                if self._session:  # the server notices a closed connection a little later
                    link.execute("SELECT pg_advisory_unlock_all()")
            with contextlib.suppress(Exception):
                link.close()

    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows."""
        with self._known_errors() as link:
            cursor = link.execute(_translated(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""
        with (
            self._known_errors() as link,
            link.transaction(),
            link.cursor(name="manyarms") as cursor,
        ):
            cursor.itersize = _AT_ONCE
            cursor.execute(_translated(sql), values or None)
            yield from cursor

    @contextlib.contextmanager
    def _known_errors(self) -> Iterator[psycopg.Connection[Any]]:
        driver = _driver()
        if self._link is None:
            self._connect_again(driver)
        assert self._link is not None
        try:
            yield self._link
        except (driver.OperationalError, driver.InterfaceError) as error:
            self.close()  # whatever it was: the next statement connects anew
            raise UnreachableError(str(error)) from error

    def _connect_again(self, driver: Any) -> None:
        try:
            self._connect(driver)
        except driver.Error as error:
            raise UnreachableError(str(error)) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it, or nothing."""
        with self._known_errors() as link, link.transaction():
            yield

    def commit(self, batches: Sequence[Batch]) -> list[bool]:
        """Commit batches in one durable transaction; return for each whether its fence stood."""
        ordered = sorted(range(len(batches)), key=lambda k: batches[k].experiment)
        stood = [False] * len(batches)
        with self._known_errors() as link:
            if len(batches) == 1:  # one statement is its own transaction: one round trip
                return [_stood(link.execute(*self._statement(batches[0])), batches[0])]
            with link.pipeline(), link.transaction():
                # in the order of experiments, so that two nodes never wait for each other
                cursors = [(k, link.execute(*self._statement(batches[k]))) for k in ordered]
            for k, cursor in cursors:
                stood[k] = _stood(cursor, batches[k])
        return stood

    def _statement(self, batch: Batch) -> tuple[Any, dict[str, Any]]:
        values: dict[str, Any] = {
            "x": batch.experiment,
            "epoch": batch.epoch,
            "old": batch.old,
            "new": batch.new,
        } | batch.columns
        settings = tuple(name for name in SETTABLE if name in batch.columns)
        for letter, rows in (
            ("e", batch.events),
            ("k", batch.keys),
            ("m", [(minute, *counts) for minute, counts in batch.minutes.items()]),
        ):
            columns: Iterable[Sequence[Any]] = zip(*rows, strict=True)
            values |= {f"{letter}{k}": _array(column) for k, column in enumerate(columns)}
        if batch.unnamed:
            values["unnamed"] = _array(list(batch.unnamed))
        parts = batch.events, batch.keys, batch.minutes, batch.unnamed
        return _commit_sql(self.now, self.lease, settings, *map(bool, parts)), values

    def add_arms(self, experiment: int, epoch: int, rows: Iterable[tuple[int, str]]) -> bool:
        """Insert arms, if `epoch` is that of the owner; return whether it is."""
        arms = list(rows)
        lines = [f"{experiment}\t{number}\t{key.translate(_COPIED)}\n" for number, key in arms]
        driver = _driver()
        try:
            with self._known_errors() as link, link.transaction():
                cursor = link.execute("SET LOCAL synchronous_commit = off")
                # a takeover waits until these rows are there: then it deletes them
                fence = "SELECT 1 FROM experiments WHERE id = %s AND epoch = %s FOR SHARE"
                if cursor.execute(fence, (experiment, epoch)).fetchone() is None:
                    return False
                with cursor.copy("COPY arms (experiment, number, key) FROM STDIN") as copy:
                    copy.write("".join(lines))
                return True
        except driver.errors.UniqueViolation as error:
            raise ValueError(self.taken(experiment, arms)) from error

    def hold_session(self, owner: str) -> None:
        """Let others see that this session stands, this connection's and later ones'."""
        self._session = owner
        self.run("SELECT pg_advisory_lock(:c, :k)", c=_LOCK_CLASS, k=_lock_key(owner))

    def holds_session(self, owner: str) -> bool:
        """Whether the session of another owner still stands."""
        lock = {"c": _LOCK_CLASS, "k": _lock_key(owner)}
        if not self.first("SELECT pg_try_advisory_lock(:c, :k)", **lock)[0]:
            return True
        self.run("SELECT pg_advisory_unlock(:c, :k)", **lock)
        return False


def _array(column: Sequence[Any]) -> Any:
    """Return a column as PostgreSQL writes arrays: for numbers the driver takes long."""
    if isinstance(column[0], int | float):
        return f"{{{','.join(map(repr, column))}}}"
    return list(column)


def _lock_key(owner: str) -> int:
    return zlib.crc32(owner.encode()) - (1 << 31)


def _stood(cursor: Any, batch: Batch) -> bool:
    """Whether the fence of a batch stood; the keys that it wants have come with the answer."""
    stood, *names = cursor.fetchone()
    for found in filter(None, names):
        batch.names = {int(number): key for number, key in found.items()}
    return bool(stood)


@functools.cache
def _translated(sql: str) -> Any:
    """Return a statement with PostgreSQL's marks."""
    return re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", sql.replace("%", "%%"))


@functools.cache
def _commit_sql(
    now: str,
    lease: float,
    settings: tuple[str, ...],
    events: bool,
    keys: bool,
    minutes: bool,
    names: bool,
) -> Any:
    """Return the one statement of a batch: what follows the fence happens only if that stood."""
    more = "".join(f", {name} = :{name}" for name in settings)
    parts = [
        f"WITH fence AS (UPDATE experiments SET head = :new, lease_until = {now} + {lease}{more} "
        "WHERE id = :x AND epoch = :epoch AND head = :old RETURNING id)"
    ]
    for wanted, letter, table, types, conflict in (
        (events, "e", "events", _EVENTS, ""),
        (keys, "k", "ask_keys", _KEYS, ""),
        (
            minutes,
            "m",
            "minutes AS m",
            _MINUTES,
            " ON CONFLICT (experiment, minute) DO UPDATE SET asked = m.asked + excluded.asked, "
            "told = m.told + excluded.told, abandoned = m.abandoned + excluded.abandoned, "
            "reward = m.reward + excluded.reward, fresh = m.fresh + excluded.fresh",
        ),
    ):
        if wanted:
            arrays = ", ".join(f":{letter}{k}::{t}" for k, t in enumerate(types.split(", ")))
            parts.append(
                f", {letter} AS (INSERT INTO {table} SELECT fence.id, rows.* FROM fence, "
                f"unnest({arrays}) AS rows{conflict})"
            )
    parts.append(" SELECT (SELECT count(*) FROM fence)")
    if names:  # in the same round trip
        parts.append(
            ", (SELECT json_object_agg(number, key) FROM arms WHERE experiment = :x "
            "AND number = ANY(:unnamed::bigint[]))"
        )
    return _translated("".join(parts))
