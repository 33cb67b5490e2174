"""The interface of a connection, implemented for SQLite and PostgreSQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from manyarms.errors import StoreDamagedError, StoreError
from manyarms.store.schema import FORMAT


class UniqueError(StoreError):
    """A row with this key exists, or its experiment was deleted."""


class Options(NamedTuple):
    """How to open a database.

    Attributes
    ----------
    durable
        Whether a commit survives a power failure.
    wait
        The longest time to wait for locks and connections (seconds).
    create
        Whether tables are created if there are none.
    read_only
        Whether the database may only be read.
    """

    durable: bool
    wait: float
    create: bool
    read_only: bool


class Connection(ABC):
    """An open connection, used by one thread at a time; `str` returns its address.

    In statements, `?` is the placeholder of a value.

    Attributes
    ----------
    lost
        Whether the connection is broken, so that a new one is needed.
    """

    lost = False

    @abstractmethod
    def close(self) -> None:
        """Disconnect and release the lock; closing twice is allowed."""

    @abstractmethod
    def run(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""

    @abstractmethod
    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows within a transaction; raise `UniqueError` if one of them exists."""

    @abstractmethod
    def keep(self, experiments: Collection[int]) -> None:
        """Lock experiments against deletion until the transaction ends.

        Raise `UniqueError` if one of them was deleted.
        """

    @abstractmethod
    def append(self, rows: Sequence[tuple[Any, ...]], experiments: Collection[int]) -> None:
        """Insert events of these experiments in a transaction of its own."""

    @abstractmethod
    def rows_of(self, sql: str, experiment: int, keys: Sequence[Any]) -> list[Any]:
        """Run a query that ends with `= ?` for each key, and return all rows."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a transaction: all that it writes is committed, or nothing."""

    @abstractmethod
    def unchanging(self) -> AbstractContextManager[None]:
        """Read one state of the database within the block, even if others write meanwhile."""

    @abstractmethod
    def lock(self) -> bool:
        """Try to take the leader's lock, which is released with the connection or the process."""

    @abstractmethod
    def unlock(self) -> None:
        """Release the leader's lock."""

    @abstractmethod
    def check_lock(self) -> None:
        """Raise a `StoreError` if the lock was lost; keep the session of the leader alive."""

    @abstractmethod
    def leader(self) -> str:
        """Describe the process that leads; empty if none does."""

    def first(self, sql: str, *values: Any) -> Any:
        """Run one statement and return its first row; None if there is none."""
        rows = self.run(sql, *values)
        return rows[0] if rows else None

    def _check_format(self, found: object) -> None:
        """Raise unless the store has the format of this version."""
        if found != FORMAT:
            raise StoreDamagedError(
                f"{self} has format {found}, and this version of manyarms reads format {FORMAT}. "
                f"Install the version that wrote it, or choose another store. Nothing was changed."
            )
