"""Event stores in SQLite and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from manyarms.errors import ParameterError
from manyarms.store.connection import Connection, Options
from manyarms.store.event_store import EventStore
from manyarms.store.postgres import PostgresConnection
from manyarms.store.records import (
    LONGEST_ARM_NAME,
    LONGEST_EXPERIMENT_NAME,
    Append,
    Event,
    ExperimentRecord,
    HistoryRow,
    Request,
    Snapshot,
    Token,
    check_name,
)
from manyarms.store.sqlite import SQLiteConnection, make_replaceable
from manyarms.store.upkeep import Checked, backup, check, copy

__all__ = [
    "LONGEST_ARM_NAME",
    "LONGEST_EXPERIMENT_NAME",
    "Append",
    "Checked",
    "Event",
    "EventStore",
    "ExperimentRecord",
    "HistoryRow",
    "Request",
    "Snapshot",
    "Token",
    "backup",
    "check",
    "check_name",
    "copy",
    "make_replaceable",
    "open_store",
]


def open_store(
    address: str | os.PathLike[str],
    *,
    durable: Literal["process", "power"] = "process",
    wait: float = 5.0,
    create: bool = True,
    read_only: bool = False,
) -> EventStore:
    """Open the event store at an address.

    Parameters
    ----------
    address
        A path or sqlite:///PATH for a file, postgresql://HOST/DATABASE for a server.
    durable
        With "process", a commit survives the end of the process; with "power", also a power
        failure. PostgreSQL always waits for its disk (default: "process").
    wait
        The longest time to wait for another process that is writing (seconds; default: 5).
    create
        Whether a new store is created if there is none (default: True).
    read_only
        Whether the store may only be read (default: False).

    Examples
    --------
    >>> store = open_store(getfixture("tmp_path") / "shop.db")
    >>> shop = store.create("shop", {"policy": "moss"}, ["red", "blue"])
    >>> store.commit([Append(shop.id, 0, [Event(1, 0.5, "asked", pull=0, arm=1)])])
    >>> [(event.kind, event.arm) for event in store.events(shop.id)]
    [('asked', 1)]
    >>> store.close()
    """
    if durable not in ("process", "power"):
        raise ParameterError(f'`durable` must be "process" or "power", got {durable!r}.')
    options = Options(durable == "power", wait, create and not read_only, read_only)
    return EventStore(_connector(os.fspath(address), options))


def _connector(address: str, options: Options) -> Callable[[], Connection]:
    scheme, separator, rest = address.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return partial(PostgresConnection, address, options)
    if scheme == "sqlite" and "?" in rest:
        extra = f"?{rest.partition('?')[2]}"
        raise ParameterError(
            f"`store` must be sqlite:///PATH without options, got {address!r}: SQLite addresses "
            f"take none. Leave out {extra!r}; pass a file name that contains '?' as a plain path."
        )
    path = rest[1:] if scheme == "sqlite" and rest.startswith("/") else address
    if path in ("", ":memory:") or "://" in path:
        raise ParameterError(
            f"`store` must be a path, sqlite:///PATH (four slashes if the path begins with one) or "
            f"postgresql://HOST/DATABASE, got {address.rpartition('@')[2]!r}."
        )
    return partial(SQLiteConnection, Path(path), options)
