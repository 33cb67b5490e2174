"""A file: whoever has the lock beside it leads.

Events are inserted in the loop; a thread waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from manyarms.live.databases import Database, UnreachableError, database_of
from manyarms.live.databases.sqlite import SQLite, SQLiteError
from manyarms.serve import tables
from manyarms.serve.batch import Batch, LostError
from manyarms.serve.stores.store import Store, lost

T = TypeVar("T")
_QUICK = 0.001  # seconds of a commit that is not worth a thread
_LOOK_AGAIN = 0.1  # seconds until the lock is tried again
_KEYS = "INSERT INTO ask_keys VALUES (?, ?, ?, ?, ?, ?, ?)"
_MINUTES = (
    "INSERT INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "asked = asked + excluded.asked, told = told + excluded.told, abandoned = abandoned + "
    "excluded.abandoned, reward = reward + excluded.reward, fresh = fresh + excluded.fresh"
)


class SQLiteStore(Store):
    """One file, one writing connection: a second one would lock the first out."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        database = database_of(url)
        assert isinstance(database, SQLite)
        self._database = database
        self._turn = asyncio.Lock()  # of the connection
        self._thread = ThreadPoolExecutor(1, "committer")
        self._files: dict[Path, tuple[int, int]] = {}
        self._identity: str | None = None  # of the database that this process has led on
        self._term = 0
        self._usual = 1.0  # seconds that a commit takes, by the last ones

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._thread, function, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})  # until then the connection is in use
            raise

    async def lead(self, waits: Callable[[str], None]) -> None:
        """Wait for the lock beside the file, which ends with its process."""
        try:
            while not self._database.lock(""):
                if self._is_time_to_say():
                    waits(await self._in_thread(self._who_leads))
                await asyncio.sleep(_LOOK_AGAIN)
            await self._in_thread(self._open)
        except (SQLiteError, UnreachableError, OSError) as error:
            raise lost(error) from error

    def _who_leads(self) -> str:
        with contextlib.closing(tables.opened(self.url, create=False)) as database:
            row = database.first("SELECT value FROM settings WHERE name = 'leader'")
        return row[0].partition(" since ")[0] if row else ""

    def _open(self) -> None:
        tables.opened(self.url, create=False).close()
        self._database.open()
        self._check_same()
        # a first write, which shows whether others are possible
        tables.set_setting(self._database, "leader", self._as_leader())
        self._said = 0.0
        path = self._database.path
        wal = path.with_name(f"{path.name}-wal")
        self._files = {one: _identity(one) for one in (path, wal)}

    def _check_same(self) -> None:
        """Refuse to lead on another database than before: what was acknowledged is not in it."""
        row = self._database.first("SELECT value FROM settings WHERE name = 'identity'")
        identity = row and row[0]
        if self._identity not in (None, identity):
            raise LostError(
                f"{self._database.path} is another database than before. Put that one back, or "
                f"start this process again"
            )
        self._identity = identity

    async def beat(self) -> None:
        """Look whether the file and the lock beside it are still those."""
        self._check_files()

    def _check_files(self) -> None:
        """Raise unless others are kept out, and the next start will read what is written."""
        if not self._database.is_locked():
            raise LostError(f"the lock beside {self._database.path} was removed")
        try:
            if all(_identity(path) == known for path, known in self._files.items()):
                return
        except OSError:
            pass
        raise LostError(f"{self._database.path} was removed or replaced")

    async def leave(self) -> None:
        """Close the file, and let others have the lock."""
        self._term += 1
        async with self._turn:
            await self._in_thread(self._database.close)

    async def commit(self, group: Sequence[Batch]) -> None:
        """Insert here, where no other thread wants the interpreter; let one wait for the disk."""
        term = self._term
        async with self._turn:
            self._check_term(term)
            self._check_files()
            try:
                if any(batch.changes for batch in group):
                    self._enter(group)
                    await self._sync()
                for batch in group:
                    self._find_out(batch)
            except (SQLiteError, UnreachableError) as error:
                self._undo()
                raise lost(error) from error
            except LostError:
                self._undo()
                raise

    async def _sync(self) -> None:
        """Commit in a thread, or here where the disk is quick: then a thread takes longer."""
        quick = self._usual < _QUICK
        took = self._timed_commit() if quick else await self._in_thread(self._timed_commit)
        self._usual += (took - self._usual) / 10

    def _timed_commit(self) -> float:
        begun = time.perf_counter()
        self._database.run("COMMIT")
        return time.perf_counter() - begun

    def _check_term(self, term: int) -> None:
        if term != self._term:
            raise LostError("this process leads no longer")

    def _enter(self, group: Sequence[Batch]) -> None:
        database = self._database
        database.run("BEGIN IMMEDIATE")
        for batch in filter(lambda one: one.changes, group):
            x = batch.experiment
            more = "".join(f", {name} = :{name}" for name in batch.columns)
            stood = database.run(
                f"UPDATE experiments SET head = :head{more} WHERE id = :x AND head = :before "
                "RETURNING id",
                x=x,
                before=batch.head,
                head=batch.new_head,
                **batch.columns,
            )
            if not stood:
                raise LostError(f"the log of experiment {x} has gone on without this process")
            if batch.events:
                database.insert_events(x, batch.events)
            if batch.keys:
                database.run_many(_KEYS, [(x, *row) for row in batch.keys])
            if batch.minutes:
                database.run_many(_MINUTES, [(x, at, *of) for at, of in batch.minutes.items()])

    def _find_out(self, batch: Batch) -> None:
        database, x, unnamed = self._database, batch.experiment, batch.unnamed
        if batch.repeated:
            batch.ended = tables.ended(database, x, sorted(batch.repeated))
            if batch.names_repeated:
                unnamed = unnamed.union(arm for _, _, arm in batch.ended.values())
        if unnamed:
            batch.names = tables.keys_of(database, x, sorted(unnamed))

    def _undo(self) -> None:
        with contextlib.suppress(SQLiteError, UnreachableError):
            self._database.run("ROLLBACK")

    async def write(self, function: Callable[[Database], T]) -> T:
        """Return what a function returns that changes tables, between two commits."""
        term = self._term
        async with self._turn:
            self._check_term(term)
            self._check_files()
            try:
                return await self._in_thread(function, self._database)
            except (SQLiteError, UnreachableError) as error:
                raise lost(error) from error

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
