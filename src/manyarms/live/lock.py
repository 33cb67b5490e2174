"""One writer at a time: a lock of the operating system, which ends with the process."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from pathlib import Path

from manyarms.errors import JournalError

__all__ = ["Lock"]

_held: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """Holds `path`.lock from now until `release`; raises if somebody else does.

    The lock lies beside the file, because the file itself is replaced. It stays when it is
    released: to delete it would let two processes hold two locks of one name.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path.with_name(path.name + ".lock"), flags, 0o666)
        try:
            _lock(self._file)
        except OSError as error:
            holder = self._holder()
            os.close(self._file)
            raise JournalError(
                f"{path} is open already{holder}: a journal has one writer. Close it there, or "
                f"let that process do the asking."
            ) from error
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, f" {os.getpid():19}\n".encode())  # byte 0 is the locked one
        _held.add(self)

    def _holder(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            os.lseek(self._file, 1, os.SEEK_SET)
            process = int(os.read(self._file, 20))
            return " in this process" if process == os.getpid() else f" in process {process}"
        return ""

    def release(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


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
        # a forked process shares our lock, and would keep it when we end
        for lock in list(_held):
            lock.release()

    os.register_at_fork(after_in_child=_forget_in_child)
