"""The databases of the service: SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from manyarms.errors import ParameterError
from manyarms.live.databases.database import (
    Database,
    ExperimentRow,
    LogRow,
    UnreachableError,
)
from manyarms.live.databases.postgres import PostgreSQL, shown

__all__ = [
    "Database",
    "ExperimentRow",
    "LogRow",
    "UnreachableError",
    "database_of",
]


def database_of(url: str) -> Database:
    """Return the database that an address names, not opened yet.

    >>> database_of("sqlite:///shop.db").url
    'sqlite:///shop.db'
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and parts.path not in ("", "/", "/:memory:"):
        from manyarms.live.databases.sqlite import SQLite

        query = parse_qs(parts.query)
        sync = query.pop("sync", ["always"])
        if not query and sync in (["always"], ["never"]):
            return SQLite(Path(parts.path[1:]), durable=sync == ["always"])
    if parts.scheme in ("postgresql", "postgres"):
        return PostgreSQL(url)
    raise ParameterError(
        f"`store` must be sqlite:///FILE (four slashes where the path begins with one; "
        f"?sync=never is quicker, but a power failure may lose the latest events) or "
        f"postgresql://HOST/DATABASE, got {shown(url)!r}."
    )
