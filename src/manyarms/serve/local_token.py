"""The token of a service that only this machine can reach: it lies beside the database.

So a program goes on after a restart. The file is readable by its owner alone, as the database is.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from manyarms.core.files import replace_file
from manyarms.live.databases import Database
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve import tables
from manyarms.serve.access import LONGEST_TOKEN, new_token

NAME = "local-store"  # of the token; names that begin so count for nothing beyond this machine
_DROPPED = "dropped local token"  # a setting: its digest
_logger = logging.getLogger("manyarms.serve")


def token_file(database: Database) -> Path | None:
    """Return where the token lies; None if the database is no file."""
    if not isinstance(database, SQLite):
        return None
    return database.path.with_name(f"{database.path.name}.token")


def kept_token(path: Path) -> str:
    """Return the token in a file; a new one is put there if it has none that is a secret."""
    found = read_token(path)
    if found is not None:
        return found
    made = new_token()
    path.unlink(missing_ok=True)  # else its mode would stay
    replace_file(path, f"{made}\n".encode(), mode=0o600)
    return made


def drop_token(database: Database, name: str) -> bool:
    """Revoke a token; return whether there was one. The local one goes for good, with its file."""
    rows = database.run("DELETE FROM tokens WHERE name = :name RETURNING sha256", name=name)
    if rows and name == NAME:
        tables.set_setting(database, _DROPPED, str(rows[0][0]))
        if (path := token_file(database)) is not None:
            path.unlink(missing_ok=True)
    return bool(rows)


def dropped_digest(database: Database) -> str | None:
    """Return the digest of the local token if it was dropped; else None."""
    found = database.first("SELECT value FROM settings WHERE name = :name", name=_DROPPED)
    return None if found is None else str(found[0])


def read_token(path: Path) -> str | None:
    """Return the token in a file; None if it has none that is a secret."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        _logger.warning("%s cannot be read (%s): a new token is made", path, error.strerror)
        return None
    with os.fdopen(file, "rb") as reader:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or (os.name != "nt" and _is_open(about)):
            _logger.warning("%s could be read by others: a new token is made", path)
            return None
        text = reader.read(LONGEST_TOKEN + 2).decode("latin-1").strip()
    return text if 16 <= len(text) <= LONGEST_TOKEN and text.isascii() else None


def _is_open(about: os.stat_result) -> bool:
    """Whether others may read or write a file, or have made it."""
    return bool(about.st_mode & 0o077) or about.st_uid != os.geteuid()
