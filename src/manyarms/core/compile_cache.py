"""The folders of compiled code.

Numba's own cache does not notice if a function in another file, or a global constant, has changed.
So every loop has a folder for Numba's cache that is named by a digest of all that the code uses.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from manyarms.core.files import cache_root
from manyarms.errors import CacheWarning

_warned: list[bool] = []  # not empty once the user was warned


def folder_for(name: str, *, make: bool = True) -> Path | None:
    """Return the folder of a digest; if there can be no cache, warn why and return None.

    Cached code is pickled. Any user who can write to the folder can run code as this user, so it
    must belong to this user, and others must not be able to write to it.
    """
    root = cache_root()
    if root is None:
        warn_uncached("there is no home folder")
        return None
    folder = root / "compiled" / name
    if make:
        try:
            root.parent.mkdir(0o700, parents=True, exist_ok=True)
            _check_parent(root.parent)
            for place in (root, root / "compiled", folder):
                place.mkdir(0o700, exist_ok=True)
                _check_private(place)
        except OSError as error:
            warn_uncached(error)
            return None
    return folder


def _check_parent(place: Path) -> None:
    """Raise if others can put another folder in the place of the cache, after it was checked."""
    found = place.stat()
    if os.name != "posix":
        return
    if found.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"'{place}' belongs to another user (number {found.st_uid})")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(f"all users can rename files in '{place}' (mode {mode:o})")


def _check_private(place: Path) -> None:
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"'{place}' must be a folder, not a link")
    if os.name != "posix":  # no owners and modes of this kind
        return
    if found.st_uid != os.geteuid():
        raise PermissionError(f"'{place}' belongs to another user (number {found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(f"other users can write to '{place}' (mode {mode:o})")


def warn_uncached(
    reason: object, fix: str = "Set MANYARMS_CACHE to a folder that only you can write to."
) -> None:
    """Warn once that code cannot be cached."""
    if not _warned:
        _warned.append(True)
        warnings.warn(
            f"Compiled code cannot be cached, so every process compiles: {reason}. {fix}",
            CacheWarning,
            stacklevel=2,
        )
