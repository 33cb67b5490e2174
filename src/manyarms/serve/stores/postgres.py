"""A server: whoever has an advisory lock leads, in the very session that commits.

A leader that has lost the lock has lost its session, and cannot commit. A standby that sees the
leader's heartbeat stand still for some seconds, by its own clock, ends that session. A pooler that
shares sessions between clients (PgBouncer in transaction mode) breaks this: then only the fence on
the head keeps two leaders apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from manyarms.live.databases import Database, UnreachableError
from manyarms.live.databases.postgres import (
    EVENTS,
    LOCKS,
    array,
    driver,
    insertion,
    options,
    translated,
)
from manyarms.serve import tables
from manyarms.serve.batch import Batch, LostError
from manyarms.serve.errors import unknown
from manyarms.serve.stores.store import Readers, Store, lost

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
SILENCE = 5.0  # seconds without a heartbeat after which a leader is taken for frozen
_LOOK_AGAIN = 0.1  # seconds until the lock is tried again
_LET_GO = 1.0  # seconds for earlier leaders to end what they write
_PATIENCE = 15.0  # seconds for a commit
_OUR_LOCK = {"c": LOCKS, "k": 1}
_KEYS = "text[], bigint[], bigint[], bigint[], text[], float8[]"
_MINUTES = "bigint[], bigint[], bigint[], bigint[], float8[], bigint[]"
_ADDED = (
    " ON CONFLICT (experiment, minute) DO UPDATE SET asked = m.asked + excluded.asked, "
    "told = m.told + excluded.told, abandoned = m.abandoned + excluded.abandoned, "
    "reward = m.reward + excluded.reward, fresh = m.fresh + excluded.fresh"
)
_END_OTHER = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid = :c AND objid = :k"
)
_END_BLOCKING = "SELECT pg_terminate_backend(pid) FROM unnest(pg_blocking_pids(:pid)) AS pid"
# what another leader is still writing ends before this, or fails after it
_BEGIN = (
    "WITH leader AS (INSERT INTO settings (name, value) VALUES ('leader', :leader) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value) "
    "UPDATE settings SET value = (value::bigint + 1)::text WHERE name = 'term' RETURNING value"
)
# not durable, since it is not worth a sync
_BEAT = (
    "BEGIN; SET LOCAL synchronous_commit = off; UPDATE settings SET value = "
    "(value::bigint + 1)::text WHERE name = 'beat'; COMMIT"
)
_ENDED = (
    "SELECT pull, kind, reward, arm FROM events WHERE experiment = :x AND kind IN (2, 3, 7) "
    "AND pull = ANY(:pulls)"
)
_NAMES = "SELECT number, key FROM arms WHERE experiment = :x AND number = ANY(:numbers)"


class PostgresStore(Store):
    """A session in the loop that leads and commits, and one in a thread for all other changes."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        self._link: psycopg.AsyncConnection[Any] | None = None
        self._writer = Readers(url, 1, "writer")
        self._term = ""
        self._turn = asyncio.Lock()  # of the session: what comes between would join a transaction

    async def lead(self, waits: Callable[[str], None]) -> None:
        """Wait for the lock; end the session of a leader that is frozen."""
        psycopg = driver()
        try:
            await self._writer.read(_make_settings)
            self._link = await psycopg.AsyncConnection.connect(
                self.url, **options("manyarms service")
            )
            seen, since = "", time.monotonic()
            while True:
                got, beat = (
                    await self._rows(
                        "SELECT pg_try_advisory_lock(:c, :k), (SELECT value FROM settings WHERE "
                        "name = 'beat')",
                        **_OUR_LOCK,
                    )
                )[0]
                if got:
                    break
                if beat != seen:
                    seen, since = beat, time.monotonic()
                elif time.monotonic() - since > SILENCE:
                    await self._rows(_END_OTHER, **_OUR_LOCK)
                if self._is_time_to_say():
                    waits(await self._writer.read(_who_leads))
                await asyncio.sleep(_LOOK_AGAIN)
            self._term = await self._begin_term(self._link.info.backend_pid)
        except (psycopg.Error, UnreachableError, OSError) as error:
            raise lost(error) from error

    async def _begin_term(self, pid: int) -> str:
        """Say that this process leads; end sessions that do not let go of the term.

        A leader that is frozen while it writes holds it in a session that has no other lock.
        """
        beginning = asyncio.create_task(self._rows(_BEGIN, leader=self._as_leader()))
        try:
            while not (await asyncio.wait({beginning}, timeout=_LET_GO))[0]:
                await self._writer.read(lambda database: database.run(_END_BLOCKING, pid=pid))
        finally:
            beginning.cancel()
        ((term,),) = beginning.result()
        self._said = 0.0
        return str(term)

    async def _rows(self, sql: str, **values: Any) -> list[Any]:
        try:
            async with asyncio.timeout(_PATIENCE), self._turn:
                cursor = await self._session().execute(translated(sql), values or None)
                return await cursor.fetchall() if cursor.description else []
        except (driver().Error, OSError) as error:  # a TimeoutError is an OSError
            raise lost(error) from error

    def _session(self) -> psycopg.AsyncConnection[Any]:
        if self._link is None:
            raise LostError("this process leads no longer")
        return self._link

    async def beat(self) -> None:
        """Raise the counter that standbys look at."""
        await self._rows(_BEAT)

    async def leave(self) -> None:
        """End the session, and with it the lock."""
        link, self._link, self._term = self._link, None, ""
        if link is not None:
            with contextlib.suppress(Exception):
                loop = asyncio.get_running_loop()
                # else the loop would watch a closed file, or a new one of the same number
                for forget in (loop.remove_reader, loop.remove_writer):
                    forget(link.pgconn.socket)
                link.pgconn.finish()  # at once: whoever waits for an answer gets an error
        self._writer.renew()

    async def commit(self, group: Sequence[Batch]) -> None:
        """Commit each batch by one statement: alone, or several of them in one transaction."""
        try:
            async with asyncio.timeout(_PATIENCE), self._turn:
                link = self._session()
                if len(group) == 1:  # a statement is its own transaction: one trip
                    cursors = [await link.execute(*_statement(group[0]))]
                else:
                    async with link.pipeline(), link.transaction():
                        cursors = [await link.execute(*_statement(batch)) for batch in group]
                for batch, cursor in zip(group, cursors, strict=True):
                    stood, names = await cursor.fetchone()  # type: ignore[misc]
                    if not stood:
                        raise LostError(
                            f"the log of experiment {batch.experiment} has gone on without this "
                            f"process"
                        )
                    batch.names = {int(number): key for number, key in (names or {}).items()}
        except (driver().Error, OSError) as error:
            raise lost(error) from error
        for batch in group:
            if batch.repeated:
                await self._find_out(batch)

    async def _find_out(self, batch: Batch) -> None:
        x = batch.experiment
        rows = await self._rows(_ENDED, x=x, pulls=list(batch.repeated))
        batch.ended = {pull: (kind, reward, arm) for pull, kind, reward, arm in rows}
        if batch.names_repeated:
            numbers = [arm for _, _, arm in batch.ended.values()]
            batch.names |= dict(await self._rows(_NAMES, x=x, numbers=numbers))

    async def write(self, function: Callable[[Database], T]) -> T:
        """Return what a function returns that changes tables, as long as our term lasts."""
        term = self._term

        def fenced(database: Database) -> T:
            with database.transaction():  # after what a lost session may still be doing
                still = "SELECT 1 FROM settings WHERE name = 'term' AND value = :term FOR UPDATE"
                if database.first(still, term=term) is None:
                    raise LostError("this process leads no longer")
                return function(database)

        try:
            return await self._writer.once(fenced)
        except UnreachableError as error:  # of this session: the other one leads still, or beats
            raise unknown(f"It failed ({error})") from error

    def close(self) -> None:
        """End the thread."""
        self._writer.close()


def _make_settings(database: Database) -> None:
    for name in ("beat", "term"):
        tables.setting(database, name, "0")


def _who_leads(database: Database) -> str:
    return tables.setting(database, "leader", "").partition(" since ")[0]


def _statement(batch: Batch) -> tuple[Any, dict[str, Any]]:
    values: dict[str, Any] = {
        "x": batch.experiment,
        "before": batch.head,
    }
    if batch.changes:
        values |= {"head": batch.new_head} | batch.columns
        minutes = [(minute, *counts) for minute, counts in batch.minutes.items()]
        for letter, rows in (("e", batch.events), ("k", batch.keys), ("m", minutes)):
            columns: Any = zip(*rows, strict=True)
            values |= {f"{letter}{k}": array(column) for k, column in enumerate(columns)}
    if batch.unnamed:
        values["unnamed"] = array(list(batch.unnamed))
    parts = batch.changes, batch.events, batch.keys, batch.minutes, batch.unnamed
    return _sql(tuple(batch.columns), *map(bool, parts)), values


@functools.cache
def _sql(
    columns: tuple[str, ...], changes: bool, events: bool, keys: bool, minutes: bool, names: bool
) -> Any:
    """Return the one statement of a batch: what follows the fence happens only if that stood."""
    more = "".join(f", {name} = :{name}" for name in columns)
    which = "WHERE id = :x AND head = :before"
    fence = f"UPDATE experiments SET head = :head{more} {which} RETURNING id"
    if not changes:  # whether this process leads still, and nothing else
        fence = f"SELECT id FROM experiments {which}"
    parts = [f"WITH fence AS ({fence})"]
    if events:
        parts.append(insertion("e", "events", EVENTS))
    if keys:
        parts.append(insertion("k", "ask_keys", _KEYS))
    if minutes:
        parts.append(insertion("m", "minutes AS m", _MINUTES, _ADDED))
    found = "NULL"
    if names:  # in the same trip
        found = (
            "(SELECT json_object_agg(number, key) FROM arms WHERE experiment = :x "
            "AND number = ANY(:unnamed::bigint[]))"
        )
    return translated(f"{''.join(parts)} SELECT (SELECT count(*) FROM fence), {found}")
