"""Locks: held by one, given back in every case, and never taken for what they are not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from manyarms.core import files
from manyarms.core.files import FileLock, LockedError


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    with pytest.raises(LockedError) as caught:
        FileLock(path)
    assert caught.value.holder == os.getpid()
    lock.release()
    lock.release()
    assert path.exists()
    FileLock(path, remove=True).release()
    assert not path.exists()


def test_a_lock_that_nobody_holds_is_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    del lock
    FileLock(tmp_path / "lock").release()


def test_a_disk_that_is_full_keeps_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            FileLock(tmp_path / "lock")
    FileLock(tmp_path / "lock").release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_where_there_are_no_locks_nobody_is_blamed(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(file: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "_lock", none)
    with pytest.raises(OSError, match="lock'") as caught:
        FileLock(tmp_path / "lock")
    assert caught.value.errno == code


def test_a_lock_whose_file_is_gone_does_not_stand_and_removes_no_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path, remove=True)
    assert lock.stands()
    path.unlink()
    assert not lock.stands()
    other = FileLock(path)
    assert not lock.stands()
    lock.release()
    assert other.stands()
