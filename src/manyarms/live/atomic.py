"""Writing a file such that a crash at any moment leaves the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

__all__ = ["replace_file", "write_all"]


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` where `path` says, wholly or, if anything fails, not at all."""
    path = Path(os.path.realpath(path))  # a link stays a link
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        try:
            _keep_mode(path, new)
            write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    _sync_folder(path.parent)


def write_all(file: int, data: bytes) -> None:
    """Write all of `data`: the system may take less at a time."""
    view = memoryview(data)
    while len(view) > 0:
        view = view[os.write(file, view) :]


def _keep_mode(old: Path, new: Path) -> None:
    with contextlib.suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; where folders cannot be opened, the system sees to it."""
    if os.name != "posix":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
