"""What the leader commits to: SQLite, or PostgreSQL. Leading is holding a lock of it."""

from __future__ import annotations

from manyarms.live.databases import database_of
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve.stores.postgres import PostgresStore
from manyarms.serve.stores.sqlite import SQLiteStore
from manyarms.serve.stores.store import Readers, Store

__all__ = ["PostgresStore", "Readers", "SQLiteStore", "Store", "store_of"]


def store_of(url: str, name: str) -> Store:
    """Return the store at an address, for a process of this name."""
    return (SQLiteStore if isinstance(database_of(url), SQLite) else PostgresStore)(url, name)
