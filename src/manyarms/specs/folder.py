"""A folder of results: whose it is, who may write there now, and files that are never half."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyarms.errors import ManyarmsError

__all__ = ["PART", "FolderError", "claimed", "replacing", "write_whole"]

PART = ".manyarms-part"  # ends the names of files that are being written
_LOCK = ".manyarms-lock"


class FolderError(ManyarmsError, OSError):
    """A folder cannot take the results; nothing in it was touched."""


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
        lock = _lock(folder)
    except FolderError:
        raise
    except OSError as error:
        raise FolderError(f"`out` cannot be used: {error}. Choose another folder.") from error
    try:
        yield _owned(folder, spec_hash, marker)  # again: another process may have been here
    finally:
        with contextlib.suppress(OSError):  # Windows keeps files that are open
            (folder / _LOCK).unlink()
        os.close(lock)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file as a whole or not at all, whenever the machine stops.

    Yields
    ------
    Path
        A new file in the same folder, which takes the place of `path` in the end.
    """
    part = path.with_name(f"{path.name}{PART}")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # the name is on disk too; Windows cannot, and need not
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file as a whole or not at all."""
    with replacing(path) as part:
        part.write_bytes(data)


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


def _lock(folder: Path) -> int:
    """Lock the folder until the file is closed: by us, or by the system when we are killed."""
    path = folder / _LOCK
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _seize(lock)
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
        except BlockingIOError as error:
            holder = ""
            with contextlib.suppress(OSError):  # Windows does not let us read it
                holder = os.read(lock, 20).decode()
            os.close(lock)
            raise FolderError(
                f"`out` must be free, got '{folder}', where process {holder or '?'} is at work. "
                f"Wait for it, or choose another folder."
            ) from error
        # whoever held it before us may have removed the file that we waited for
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def _seize(lock: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(str(error)) from error
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
