"""What is the same in all stores: who leads, who stands by, and connections that read."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from manyarms.errors import StoreError
from manyarms.live.databases import Database, UnreachableError
from manyarms.serve import tables
from manyarms.serve.batch import Batch, LostError

T = TypeVar("T")
_SAID_EVERY = 4.0  # seconds


class Store(ABC):
    """One connection that commits, and the lock that makes this process the leader.

    The lock ends with the connection, or with the process. Whoever has it loses it by `leave`, by
    its end, or when the database ends the session: what is committed after that fails.
    """

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self._said = 0.0  # when this process last said that it stands by

    @abstractmethod
    async def lead(self, waits: Callable[[str], None]) -> None:
        """Wait until this process leads; `waits` hears who leads instead.

        Raises a `LostError` if the database is away, and a `StoreError` if it cannot be used.
        """

    @abstractmethod
    async def beat(self) -> None:
        """Show that this process moves, once a second. Raises a `LostError` if it leads no more."""

    @abstractmethod
    async def leave(self) -> None:
        """Lead no longer."""

    @abstractmethod
    async def commit(self, group: Sequence[Batch]) -> None:
        """Make batches durable, all of them; find out what they want to know.

        Raises a `LostError` if that fails, or if nobody knows.
        """

    @abstractmethod
    async def write(self, function: Callable[[Database], T]) -> T:
        """Return what a function returns that changes tables, as long as this process leads.

        Raises a `LostError` if it does not, and a `RefusedError` if nobody knows what was done, but
        this process leads still.
        """

    @abstractmethod
    def close(self) -> None:
        """End what belongs to this object."""

    def _is_time_to_say(self) -> bool:
        """Return whether it is time to find out again who leads."""
        now = time.monotonic()
        due = now - self._said > _SAID_EVERY
        if due:
            self._said = now
        return due

    def _as_leader(self) -> str:
        return f"{self.name} since {time.time():.0f}"


class Readers:
    """Connections that read, each with a thread of its own."""

    def __init__(self, url: str, count: int, name: str) -> None:
        self._url = url
        self._pool = ThreadPoolExecutor(count, name)
        self._local = threading.local()
        self._era = 0  # connections of earlier ones are not used any more
        self._open: set[Database] = set()
        self._closed = False

    async def read(self, function: Callable[[Database], T]) -> T:
        """Return what a function reads; once more where a connection turns out to be lost.

        Raises an `UnreachableError` if the database is away.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, function)

    async def once(self, function: Callable[[Database], T]) -> T:
        """Return what a function does that must not be done twice."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._once, function)

    def _read(self, function: Callable[[Database], T]) -> T:
        try:
            return self._once(function)
        except UnreachableError:
            return self._once(function)

    def _once(self, function: Callable[[Database], T]) -> T:
        try:
            return function(self._database())
        except StoreError as error:
            raise UnreachableError(str(error)) from error
        except UnreachableError:
            self._drop()
            raise

    def _database(self) -> Database:
        if self._closed:
            raise UnreachableError("this process is about to end")
        era, database = getattr(self._local, "database", (-1, None))
        if database is None or era != self._era:
            self._drop()
            database = tables.opened(self._url, create=False)
            self._open.add(database)
            self._local.database = self._era, database
        known: Database = database
        return known

    def _drop(self) -> None:
        _, database = getattr(self._local, "database", (-1, None))
        self._local.database = -1, None
        if database is not None:
            self._open.discard(database)
            with contextlib.suppress(Exception):
                database.close()

    def renew(self) -> None:
        """Use no connection any more that is open now: the database may be another."""
        self._era += 1

    def close(self) -> None:
        """Close all connections, after what they are doing; logs are not read to their end."""
        self._closed = True
        for database in self._open.copy():
            database.given_up = True
        self._pool.shutdown(cancel_futures=True)
        for database in self._open:
            database.close()


def lost(error: Exception) -> LostError:
    """Return what to raise where a database has failed."""
    return LostError(f"the database is away: {str(error).strip() or repr(error)}")
