"""Files are written completely or not at all, locks have one holder, planted links are refused."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyarms.core import files
from manyarms.core.files import PART, FileLock, LockedError, open_part, replace_file, replacing

posix = pytest.mark.skipif(os.name != "posix", reason="links, owners and modes")
as_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="gives files away")


def test_a_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
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


def test_a_lock_without_a_holder_is_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    del lock
    FileLock(tmp_path / "lock").release()


def test_a_full_disk_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            FileLock(tmp_path / "lock")
    FileLock(tmp_path / "lock").release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_without_file_locks_the_error_names_no_holder(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(file: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "_lock", none)
    with pytest.raises(OSError, match="lock'") as caught:
        FileLock(tmp_path / "lock")
    assert caught.value.errno == code


def test_a_lock_whose_file_was_removed_is_lost_and_removes_no_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path, remove=True)
    assert lock.stands()
    path.unlink()
    assert not lock.stands()
    other = FileLock(path)
    assert not lock.stands()
    lock.release()
    assert other.stands()


# Files and links that other users plant


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """Return a file that must not change."""
    path = tmp_path / "victim"
    path.write_bytes(b"precious")
    yield path
    assert path.read_bytes() == b"precious"


def _parts(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{PART}"))


def _attacked(path: Path, victim: Path, *, by_link: bool, written: bool) -> None:
    """Replace a file while another process replaces the temporary file."""
    with replacing(path) as part:
        part.unlink()
        if by_link:
            part.symlink_to(victim)
        else:
            part.write_bytes(b"planted")
        if written:
            open_part(part)


@posix
def test_a_temporary_file_that_becomes_a_link_is_not_written_through(
    tmp_path: Path, victim: Path
) -> None:
    with pytest.raises(OSError, match="symbolic"):
        _attacked(tmp_path / "new", victim, by_link=True, written=True)
    assert not (tmp_path / "new").exists()
    assert not _parts(tmp_path)


@posix
@pytest.mark.parametrize("by_link", [True, False])
def test_a_replaced_temporary_file_never_becomes_the_file(
    tmp_path: Path, victim: Path, by_link: bool
) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="Another process replaced the file"):
        _attacked(path, victim, by_link=by_link, written=False)
    assert path.read_bytes() == b"old"
    assert not _parts(tmp_path)


@posix
def test_the_users_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@posix
def test_a_link_of_another_user_is_replaced(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(victim)
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    replace_file(link, b"new")
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"


@posix
def test_a_replaced_file_passes_on_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"1", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o4750)
    replace_file(path, b"2", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750  # new content must not run as the owner


@posix
@as_root
def test_a_replaced_file_keeps_its_owner_when_root_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1")
    os.chown(path, 54321, 54322)
    path.chmod(0o640)
    replace_file(path, b"2")
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (54321, 54322)
    assert stat.S_IMODE(found.st_mode) == 0o640


@posix
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="The lock must not be a link. Remove it") as caught:
        FileLock(tmp_path / "lock")
    assert caught.value.errno == errno.ELOOP
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="not be a link"):
        FileLock(tmp_path / "lock")
    assert not (tmp_path / "nowhere").exists()


@posix
def test_a_lock_that_is_another_file_is_refused(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "lock").hardlink_to(victim)
    with pytest.raises(OSError, match="The lock must be a file of its own. Remove it"):
        FileLock(tmp_path / "lock")
