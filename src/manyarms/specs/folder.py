"""A folder of results: whose it is, and who may write there now."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyarms.core.files import PART, FileLock, LockedError
from manyarms.errors import FolderError

__all__ = ["claimed"]

_LOCK = ".manyarms-lock"


@contextlib.contextmanager
def claimed(folder: Path, spec_hash: str, *, marker: str) -> Iterator[dict[str, Any]]:
    """Hold a folder for one process, if it is empty or belongs to the spec.

    Parameters
    ----------
    folder
        Made if it is not there.
    spec_hash
        Whose it must be.
    marker
        The JSON file in it that tells the hash.

    Yields
    ------
    dict
        What the marker holds; empty where there is none yet.
    """
    try:
        _owned(folder, spec_hash, marker)  # before the lock file is made: nothing is touched
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK, remove=True)
    except LockedError as error:
        raise FolderError(
            f"`out` must be free, got '{folder}', where process {error.holder or '?'} is at work. "
            f"Wait for it, or choose another folder."
        ) from error
    except FolderError:
        raise
    except OSError as error:
        raise FolderError(f"`out` cannot be used: {error}. Choose another folder.") from error
    try:
        yield _owned(folder, spec_hash, marker)  # again: another process may have been here
    finally:
        lock.release()


def _owned(folder: Path, spec_hash: str, marker: str) -> dict[str, Any]:
    """Return the marker's content, or raise if the folder is not for this spec."""
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise FolderError(f"`out` must be a folder, got the file '{folder}'. Choose another name.")
    try:
        found = json.loads((folder / marker).read_text(encoding="utf-8"))
        theirs = found["spec_hash"]
    except FileNotFoundError:
        if all(entry.name.endswith((_LOCK, PART)) for entry in folder.iterdir()):
            return {}
        theirs = None
    except (OSError, ValueError, KeyError, TypeError):
        theirs = None
    if not isinstance(theirs, str):
        raise FolderError(
            f"`out` must be an empty folder or one of this experiment, got '{folder}', which "
            f"holds other files. Choose another folder."
        )
    if theirs != spec_hash:
        raise FolderError(
            f"`out` must be a folder of this experiment (spec hash {spec_hash[:12]}), got "
            f"'{folder}', which belongs to another one ({theirs[:12]}). Choose another folder, "
            f"or delete that one."
        )
    return dict(found)
