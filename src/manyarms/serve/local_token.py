"""The token of a service that only this machine can reach, in a file beside the store.

The token stays valid after a restart. Only the owner can read the file. An empty file means that
the token was revoked; a restart does not make another.
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
    """Return the path of the token file; None if the store is not a file."""
    address = str(store)
    return Path(f"{address[len(_PREFIX) :]}.token") if address.startswith(_PREFIX) else None


def kept_token(path: Path) -> str:
    """Return the token in a file; empty if it was revoked.

    If there is no valid token, or other users can read it, write a new one.
    """
    found = _read(path)
    if found is not None:
        return found
    made = new_token()
    path.unlink(missing_ok=True)  # otherwise the new file would keep its mode
    replace_file(path, f"{made}\n".encode(), mode=0o600)
    return made


def remove_token(store: EventStore, name: str) -> bool:
    """Revoke a token; return whether it existed. A restart does not replace the local token."""
    found = store.remove_token(name)
    path = token_file(store)
    if found and name == NAME and path is not None:
        path.unlink(missing_ok=True)
        replace_file(path, b"", mode=0o600)
    return found


def _read(path: Path) -> str | None:
    """Return the token in a file; empty if it was revoked, None if it is missing or not secret."""
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
            _logger.warning("%s can be read by other users; making a new token", path)
            return None
        text = reader.read(LONGEST_TOKEN + 2).decode("latin-1").strip()
    usable = _SHORTEST <= len(text) <= LONGEST_TOKEN and text.isascii()
    return text if usable or not text else None


def _is_open(about: os.stat_result) -> bool:
    """Whether other users can read or write a file, or own it."""
    return bool(about.st_mode & 0o077) or about.st_uid != os.geteuid()
