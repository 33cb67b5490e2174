"""The connections of a store, and the lock of its leader."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Self

from manyarms.errors import StoreError, StoreUnavailableError
from manyarms.store.connection import Connection


class Sessions:
    """Three connections to a store, each used by one thread at a time.

    Commits use the first one, which also holds the leader's lock. Operations that may take long use
    the second one, and tokens, which every request of the service needs, the third. A lost
    connection is replaced when it is needed.

    Attributes
    ----------
    leads
        Whether this process has become the leader by `lead()` and has not resigned.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self.leads = False
        self._connect = connect
        self._process = os.getpid()
        self._commits = threading.RLock()
        self._main: Connection | None = connect()
        self._reads = {purpose: threading.RLock() for purpose in ("long", "tokens")}
        self._sides: dict[str, Connection] = {}
        self._address = str(self._main)

    def __str__(self) -> str:
        return self._address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Resign and disconnect. Closing twice is allowed."""
        if self._process != os.getpid():
            return
        with self._commits, contextlib.ExitStack() as locks:
            for lock in self._reads.values():
                locks.enter_context(lock)
            with contextlib.suppress(StoreError):
                self.resign()
            for connection in (self._main, *self._sides.values()):
                if connection is not None:
                    connection.close()
            self._main, self._sides = None, {}
            self._process = 0

    def _check_process(self) -> None:
        if self._process == 0:
            raise StoreError(f"{self} is closed. Open it again with open_store(...).")
        if self._process != os.getpid():
            raise StoreError(
                f"{self} was opened by process {self._process}, and this is a forked process. "
                f"Open the store again in this process."
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the connection for commits, for use by this thread only."""
        with self._commits:
            connection = self._committing()
            try:
                yield connection
            finally:
                self._drop_lost(connection)

    def _committing(self) -> Connection:
        self._check_process()
        if self._main is None:
            if self.leads:
                raise StoreUnavailableError(
                    f"This process no longer leads: its connection to {self} was lost."
                )
            self._main = self._connect()
        return self._main

    def _drop_lost(self, connection: Connection) -> None:
        if connection.lost and connection is self._main:
            connection.close()
            self._main = None

    @contextlib.contextmanager
    def reading(self, purpose: str = "long") -> Iterator[Connection]:
        """Yield the connection for a purpose, "long" or "tokens", for use by this thread only."""
        with self._reads[purpose]:
            self._check_process()
            if purpose not in self._sides:
                self._sides[purpose] = self._connect()
            side = self._sides[purpose]
            try:
                yield side
            finally:
                if side.lost:
                    side.close()
                    self._sides.pop(purpose, None)

    def lead(self) -> bool:
        """Try to become the leader; return False if another process leads.

        The lock is released when this process ends. In PostgreSQL, the session that commits holds
        it, and the server ends that session after 5 seconds without a commit or `beat()`.
        """
        with self.writing() as link:
            self.leads = self.leads or link.lock()
            return self.leads

    def beat(self) -> None:
        """Raise a `StoreError` if this process no longer leads; call it every second."""
        with self.writing() as link:
            if not self.leads:
                raise StoreError(f"This process does not lead on {self}. Call lead() first.")
            link.check_lock()

    def resign(self) -> None:
        """Release the leader's lock, so that another process can lead."""
        with self._commits:
            led, self.leads = self.leads, False
            if led and self._main is not None:
                try:
                    self._main.unlock()
                finally:
                    self._drop_lost(self._main)

    def leader(self) -> str:
        """Describe the process that leads; empty if none does."""
        with self.reading() as link:
            return link.leader()
