"""The one door to the disk: files that are never half written, locks, the user's cache.

By hand because the libraries of this kind replace text files without syncing the folder, or lock
without saying who holds the lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

__all__ = [
    "PART",
    "FileLock",
    "LockedError",
    "cache_root",
    "is_file",
    "replace_file",
    "replacing",
    "write_all",
    "write_file",
]

PART = ".manyarms-part"  # ends the names of files that are being written
_BINARY = getattr(os, "O_BINARY", 0)
_TAKEN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # other errors: no locks


class LockedError(Exception):
    """Another handle holds the lock; `holder` is its process, or None where that is unknown."""

    def __init__(self, holder: int | None) -> None:
        super().__init__(holder)
        self.holder = holder


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file as a whole or not at all, whenever the machine stops.

    Yields
    ------
    Path
        A new, empty file in the same folder, which takes the place of `path` in the end. Its
        permissions are those of the file it replaces.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666))
        with contextlib.suppress(OSError):
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` where `path` says: all of it or, if anything fails, nothing."""
    with replacing(path) as part:
        write_file(part, data)


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to a file that is there."""
    file = os.open(path, os.O_WRONLY | _BINARY)
    try:
        write_all(file, data)
    finally:
        os.close(file)


def write_all(file: int, data: bytes) -> None:
    """Write all of `data`: the system may take less at a time."""
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


def cache_root() -> Path | None:
    """Return the folder for all that can be made or fetched again; None where there is no home.

    It is `MANYARMS_CACHE`, else `XDG_CACHE_HOME`, else ".cache" in the user's home; in it,
    "manyarms".
    """
    given = os.environ.get("MANYARMS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "manyarms"
    with contextlib.suppress(RuntimeError):  # a container without a home
        return Path.home() / ".cache" / "manyarms"
    return None


class FileLock:
    """Holds a lock of the operating system until `release`, or until nobody has it any more.

    Parameters
    ----------
    path
        The lock's own file; it is made where there is none.
    remove
        Whether `release` removes the file. The next holder checks that it locked the file of
        that name, so both ways are safe.

    Raises
    ------
    LockedError
        If somebody else holds it.
    OSError
        If there can be no lock there.
    """

    _held: ClassVar[weakref.WeakSet[FileLock]] = weakref.WeakSet()

    def __init__(self, path: Path, *, remove: bool = False) -> None:
        self._path, self._remove = path, remove
        self._file = -1
        while self._file < 0:
            file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            try:
                self._take(file)
            finally:
                if self._file < 0:
                    os.close(file)
        self._held.add(self)

    def _take(self, file: int) -> None:
        try:
            _lock(file)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise OSError(error.errno, error.strerror, str(self._path)) from error
            raise LockedError(_holder(file)) from error
        if is_file(file, self._path):  # whoever held it before us may have removed it
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f" {os.getpid():19}\n".encode())  # byte 0 is the locked one
            self._file = file

    def stands(self) -> bool:
        """Whether the file of that name is still the one that is locked."""
        return self._file >= 0 and is_file(self._file, self._path)

    def release(self) -> None:
        """Let others have it."""
        if self._remove and self.stands():
            with contextlib.suppress(OSError):  # Windows keeps files that are open
                self._path.unlink()
        self._forget()

    def __del__(self) -> None:
        self.release()

    def _forget(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def is_file(file: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _holder(file: int) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(file, 1, os.SEEK_SET)
        return int(os.read(file, 20))
    return None


def _sync_folder(folder: Path) -> None:
    """Make a new name durable; where folders cannot be opened, the system sees to it."""
    if os.name != "posix":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _forget_in_child() -> None:
        # a forked process shares our locks, and would keep them when we end
        for lock in list(FileLock._held):
            lock._forget()

    os.register_at_fork(after_in_child=_forget_in_child)
