"""Access to the disk: files that are never half written, and locks.

Written by hand because libraries of this kind replace files without syncing the folder, or lock
without saying which process holds the lock.
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
from typing import BinaryIO, ClassVar

from manyarms.errors import PathError, PathNotFoundError, StoreError

PART = ".manyarms-part"  # suffix of files that are being written
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_DISK_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_TAKEN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # others: locking fails
_POSIX = os.name == "posix"  # elsewhere folders have neither owners nor modes of this kind


class LockedError(Exception):
    """Another handle holds the lock; `holder` is its process, or None if unknown."""

    def __init__(self, holder: int | None) -> None:
        super().__init__(holder)
        self.holder = holder


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Write a file as a whole or not at all, even if the machine crashes.

    Parameters
    ----------
    path
        The file. If it is a symbolic link, the file it points to is replaced; if the link belongs
        to another user, the link itself is.
    mode
        The permissions of a new file, minus the umask (default: 0o666). If a file is replaced, the
        new one gets its permissions, and its owner if this user may change owners.

    Yields
    ------
    Path
        A new, empty file in the same folder, which replaces `path` in the end.
    """
    path = replaced_by(path)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
        try:
            _pass_on_rights(file, path)
            yield part
            if not os.path.samestat(os.fstat(file), part.lstat()):
                raise OSError(errno.ESTALE, "Another process replaced the file", str(part))
            os.fsync(file)
        finally:
            os.close(file)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def replaced_by(path: Path) -> Path:
    """Return what `replacing` replaces: a link's target, or the link if it is another user's."""
    if path.is_symlink() and _is_anothers(path.lstat()):
        return path
    return Path(os.path.realpath(path))


def _pass_on_rights(file: int, path: Path) -> None:
    """Give an open file the permissions and the owner of the file it will replace."""
    with contextlib.suppress(OSError):
        old, new = path.lstat(), os.fstat(file)
        if _POSIX and stat.S_ISREG(old.st_mode):
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
                with contextlib.suppress(OSError):  # every user may choose one of their own groups
                    os.fchown(file, -1, old.st_gid)
                    os.fchown(file, old.st_uid, -1)  # only root may change the owner
            os.fchmod(file, old.st_mode & 0o777)


def replace_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` to `path`: all of it, or nothing if anything fails."""
    with replacing(path, mode=mode) as part:
        write_file(part, data)


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to an existing file."""
    with open_part(path) as file:
        write_all(file.fileno(), data)


def open_part(part: Path) -> BinaryIO:
    """Open the file that `replacing` yields, and never follow a link."""
    return os.fdopen(os.open(part, os.O_WRONLY | _BINARY | _NO_LINK), "wb")


def write_all(file: int, data: bytes) -> None:
    """Write all of `data`, in several calls if the system writes less in one."""
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


def fix_for(error: OSError) -> str:
    """Return what a user can do about a file that cannot be written.

    >>> fix_for(OSError(errno.ENOSPC, "No space left on device"))
    'Free some disk space'
    """
    if error.errno in _DISK_FULL:
        return "Free some disk space"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return "Allow this user to write there"
    if isinstance(error, FileNotFoundError):
        return "Create its folder"
    if isinstance(error, IsADirectoryError):
        return "Name a file, not a folder"
    return "Check the disk"


@contextlib.contextmanager
def path_errors(path: Path, fix: str = "") -> Iterator[None]:
    """Turn an OSError into a PathError with a fix: `fix`, or the usual one for writing."""
    try:
        yield
    except PathError:
        raise
    except OSError as error:
        kind = PathNotFoundError if isinstance(error, FileNotFoundError) else PathError
        what = "read" if fix else "written"
        raise kind(
            f"'{path}' cannot be {what}: {error.strerror or error}. {fix or fix_for(error)}."
        ) from error


def cache_root() -> Path | None:
    """Return the folder of cached files; None if the user has no home.

    It is "manyarms" in `MANYARMS_CACHE`, else in `XDG_CACHE_HOME`, else in the user's "~/.cache".
    """
    given = os.environ.get("MANYARMS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "manyarms"
    with contextlib.suppress(RuntimeError):  # a container may have no home
        return Path.home() / ".cache" / "manyarms"
    return None


def _is_anothers(found: os.stat_result) -> bool:
    """Return whether a file belongs to another user."""
    return _POSIX and found.st_uid != os.geteuid()


def check_single(path: Path, found: os.stat_result) -> None:
    """Refuse a file with several hard links, because its lock is beside only one of them."""
    if found.st_nlink > 1:
        raise StoreError(
            f"{path} has {found.st_nlink} hard links, but may have only one. Remove the "
            f"others, or make a copy."
        )


class FileLock:
    """A lock of the operating system, held until `release` or garbage collection.

    Parameters
    ----------
    path
        The lock's own file; it is created if it does not exist.
    remove
        Whether `release` removes the file. The next holder checks that it locked the file of
        that name, so both ways are safe.

    Raises
    ------
    LockedError
        If another handle holds it.
    OSError
        If the file cannot be opened or locked.
    """

    _held: ClassVar[weakref.WeakSet[FileLock]] = weakref.WeakSet()

    def __init__(self, path: Path, *, remove: bool = False) -> None:
        self._path, self._remove = path, remove
        self._file = -1
        while self._file < 0:
            file = _open_lock(path)
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
        if is_file(file, self._path):  # the process that held it before may have removed it
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f" {os.getpid():19}\n".encode())  # byte 0 is the locked one
            self._file = file

    def stands(self) -> bool:
        """Return whether the locked file still has its name."""
        return self._file >= 0 and is_file(self._file, self._path)

    def release(self) -> None:
        """Unlock."""
        if self._remove and self.stands():
            with contextlib.suppress(OSError):  # Windows does not remove open files
                self._path.unlink()
        self._forget()

    def __del__(self) -> None:
        self.release()

    def _forget(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def is_file(file: int, path: Path) -> bool:
    """Return whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _open_lock(path: Path) -> int:
    """Open a lock's file, or make it; refuse links and other kinds of files."""
    if not _NO_LINK and path.is_symlink():
        raise OSError(errno.ELOOP, "The lock must not be a link. Remove it", str(path))
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY | _NO_LINK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            error.strerror = "The lock must not be a link. Remove it"
        raise
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(file)
        raise OSError(errno.EINVAL, "The lock must be a file of its own. Remove it", str(path))
    return file


def _holder(file: int) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(file, 1, os.SEEK_SET)
        return int(os.read(file, 20))
    return None


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new name is durable; not possible on Windows."""
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
        # a forked process would keep the locks after this one has ended
        for lock in list(FileLock._held):
            lock._forget()

    os.register_at_fork(after_in_child=_forget_in_child)
