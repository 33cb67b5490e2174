"""The token of a service that only this machine can reach, in a file beside the store.

The token stays valid after a restart. Only the owner can read the file. If it is empty, the token
was revoked, and no start makes another.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from manyarms.core.files import replace_file
from manyarms.serve.access import LONGEST_TOKEN, new_token
from manyarms.store import EventStore

NAME = "local"  # of the token
_SHORTEST = 16  # characters
_PREFIX = "sqlite:///"
_logger = logging.getLogger("manyarms.serve")


def token_file(store: EventStore) -> Path | None:
    """Return the path of the token; None if the store is not a file."""
    address = str(store)
    return Path(f"{address[len(_PREFIX) :]}.token") if address.startswith(_PREFIX) else None


def kept_token(path: Path) -> str:
    """Return the token in a file, or an empty text if it was revoked.

    If there is no token, or others may read it, write a new one.
    """
    found = _read(path)
    if found is not None:
        return found
    made = new_token()
    path.unlink(missing_ok=True)  # otherwise its mode would stay
    replace_file(path, f"{made}\n".encode(), mode=0o600)
    return made


def remove_token(store: EventStore, name: str) -> bool:
    """Revoke a token; return whether there was one. The local one stays revoked."""
    found = store.remove_token(name)
    path = token_file(store)
    if found and name == NAME and path is not None:
        path.unlink(missing_ok=True)
        replace_file(path, b"", mode=0o600)
    return found


def _read(path: Path) -> str | None:
    """Return the token in a file; empty if it was revoked, None if there is no secret one."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        _logger.warning("%s cannot be read (%s); making a new token", path, error.strerror)
        return None
    with os.fdopen(file, "rb") as reader:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or (os.name != "nt" and _is_open(about)):
            _logger.warning("%s could be read by others; making a new token", path)
            return None
        text = reader.read(LONGEST_TOKEN + 2).decode("latin-1").strip()
    usable = _SHORTEST <= len(text) <= LONGEST_TOKEN and text.isascii()
    return text if usable or not text else None


def _is_open(about: os.stat_result) -> bool:
    """Whether others may read or write a file, or own it."""
    return bool(about.st_mode & 0o077) or about.st_uid != os.geteuid()
