"""The file journal: kills, torn writes, full disks, damage, and one writer at a time."""

from __future__ import annotations

import gc
import logging
import os
import random
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.journal_file import RECORD_BYTES, begin_file, read_file, record
from manyarms.live.replay import replay
from manyarms.live.saving import restored, snapshot
from manyarms.live.store import Event, EventKind, Events
from tests.helpers import flipped
from tests.inference.games import counts, in_turn, new, play, step
from tests.live.stores import leave
from tests.live.test_saving import damaged_files
from tests.live.test_stores import calls

ROOT = Path(__file__).parent.parent.parent


def _reopened(path: Path, data: bytes) -> bytes:
    """What a handle knows after a file of these bytes was opened."""
    path.write_bytes(data)
    with ma.recorded(path) as live:
        assert path.read_bytes() == data  # until something is written
        return live.to_bytes()


def _wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not true() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert true()


def _broken(file: int) -> None:
    raise OSError(5, "Input/output error")


# Torn writes


@pytest.mark.slow
def test_a_file_cut_off_at_any_record_or_byte_is_played_so_far(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.recorded(path, new()) as live:
        while live.pulls < 400:
            pull = live.ask()
            if pull.id % 4 < 3:
                live.tell(live.pending[pull.id % 2 - 1], float(pull.id % 3 == 0))
            elif pull.id % 40 == 3:
                live.abandon(pull)
        whole = path.read_bytes()  # before it is closed, and compacted
    (saved, events), end, _ = read_file(whole, "it")
    assert end == len(whole)
    first = end - RECORD_BYTES * len(events.kind)
    control = restored(saved, None, "it")
    for k in range(len(events.kind)):
        if k % 5 == 0 or k > len(events.kind) - 30:
            known = _reopened(tmp_path / "cut", whole[: first + RECORD_BYTES * k])
            assert known == snapshot(control)
        one = {name: getattr(events, name)[k : k + 1] for name in ("kind", "pull", "arm", "reward")}
        replay(control, Events(**one), "it")
    before = _reopened(tmp_path / "cut", whole[:-RECORD_BYTES])
    for cut in range(1, RECORD_BYTES):
        for zeros in (0, 7, 5000):  # a page that was never written
            torn = whole[:-cut] + bytes(zeros)
            known = before if torn != whole else snapshot(control)
            assert _reopened(tmp_path / "cut", torn) in (known, snapshot(control))
    assert _reopened(tmp_path / "cut", whole + bytes(5000)) == snapshot(control)


@pytest.mark.parametrize("tail", [b"half a record", b"\1" * 20 + bytes(4096), bytes(100)])
def test_what_was_not_written_wholly_makes_way(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "game"
    live = ma.recorded(path, new())
    in_turn(live, 5)
    leave(live)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    live = ma.recorded(path)
    assert live.pulls == 5
    in_turn(live, 1)
    known = live.to_bytes()
    leave(live)
    assert path.read_bytes()[: len(whole)] == whole
    assert path.stat().st_size == len(whole) + 2 * RECORD_BYTES
    with ma.recorded(path) as live:
        assert live.to_bytes() == known


_CHILD = """
import sys
import manyarms as ma
from manyarms.live import store
from tests.inference.games import step
store._SMALL = int(sys.argv[2])
live = ma.EmpMOSSPlusPlus().live(n_arms=30, horizon=9000, seed=8)
ma.recorded(ma.Journal(sys.argv[1], sync=5, compact_every=150), live)
print("open", flush=True)
while live.pulls < 8000:
    step(live)
"""


@pytest.mark.slow
@pytest.mark.parametrize("small", [0, 1000])  # compacted by copies of the process, or by itself
def test_killed_at_random_moments(small: int, tmp_path: Path) -> None:
    path = tmp_path / "game"
    control = ma.EmpMOSSPlusPlus().live(n_arms=30, horizon=9000, seed=8)
    chance = random.Random(3)
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, path, str(small)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        with pytest.raises(ma.StoreError, match=f"open already in process {child.pid}"):
            ma.recorded(path)
        time.sleep(chance.uniform(0.0, 0.1))
        child.kill()
        child.communicate()
        with ma.recorded(path) as live:
            while counts(control) != counts(live) and control.pulls < 8000:
                step(control)
            assert live.to_bytes() == control.to_bytes()
    assert control.pulls > 0


# Compaction and syncing


def test_compaction_keeps_the_file_small(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.recorded(ma.Journal(path, sync="never", compact_every=50), new()) as live:
        largest = 0
        for _ in range(500):
            live.tell(live.ask(), 0.5)
            largest = max(largest, path.stat().st_size)
        assert largest < 4000
        live.ask(60)
        live.compact()
        known, small = live.to_bytes(), path.read_bytes()
        assert small == begin_file(known)
        assert _reopened(tmp_path / "copy", small) == known


def test_a_compaction_that_fails_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "game"
    live = ma.recorded(ma.Journal(path, sync="never", compact_every=10), new())
    size = path.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _broken)  # of the new file
        pulls = [live.ask() for _ in range(75)]
    assert [pull.id for pull in pulls] == list(range(75))
    assert path.stat().st_size == size + 75 * RECORD_BYTES
    logged = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert 2 <= len(logged) <= 10
    assert "could not be compacted, and goes on as it was: OSError(5" in logged[0].message
    live.ask(50)
    assert path.read_bytes() == begin_file(live.to_bytes())
    assert list(tmp_path.glob("*part")) == []
    live.close()


def test_what_a_crash_within_a_compaction_leaves_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "game"
    ma.recorded(path, new()).close()
    (tmp_path / "game.0123abcd.manyarms-part").write_bytes(b"half")
    (tmp_path / "game.0123abcd.tmp").write_bytes(b"half, by an older version")
    (tmp_path / "game.of-mine1.tmp").write_bytes(b"not ours")
    ma.recorded(path).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["game", "game.of-mine1.tmp"]


def test_when_the_disk_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(file)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    for sync, at_once, at_the_end in (("always", 4, 7), ("never", 0, 2)):  # with a snapshot
        with ma.recorded(ma.Journal(tmp_path / sync, sync=sync), new()) as live:
            synced.clear()
            live.tell(live.ask(), 1.0)
            live.tell_many([(pull, 1.0) for pull in live.ask(20)])  # two writes, two syncs
            assert len(synced) == at_once
        assert len(synced) == at_the_end
    with ma.recorded(ma.Journal(tmp_path / "game", sync=20), new()) as live:
        synced.clear()
        in_turn(live, 3)
        _wait_until(lambda: synced)  # without another event


@pytest.mark.parametrize("sync", ["sometimes", 0, -1, None, float("nan"), True])
def test_bad_parameters(sync: Any, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match="`sync` must be"):
        ma.Journal(tmp_path / "game", sync=sync)
    with pytest.raises(ma.ParameterError, match="`compact_every` must be an integer >= 1"):
        ma.Journal(tmp_path / "game", compact_every=0)


def test_where_no_thread_can_be_started_the_disk_is_synced_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    synced: list[int] = []
    with ma.recorded(tmp_path / "game", new()) as live:
        monkeypatch.setattr(threading.Timer, "start", start)
        monkeypatch.setattr(os, "fsync", synced.append)
        live.tell(live.ask(), 1.0)
        assert len(synced) == 2


# One writer, one file


def test_links_lead_to_the_same_journal(tmp_path: Path) -> None:
    with ma.recorded(tmp_path / "game", new()):
        (tmp_path / "link").symlink_to(tmp_path / "game")
        with pytest.raises(ma.StoreError, match="game is open already in this process"):
            ma.recorded(tmp_path / "link")


@pytest.mark.parametrize("open_already", [True, False])
@pytest.mark.parametrize("store", ["{}", "sqlite:///{}"])
def test_a_file_of_two_names_is_refused(tmp_path: Path, store: str, open_already: bool) -> None:
    """The lock is beside one of them, and two processes would write to one file."""
    first, second = tmp_path / "game", tmp_path / "same"
    live = ma.recorded(store.format(first), new())
    try:
        if not open_already:
            live.close()
        second.hardlink_to(first)
        with pytest.raises(ma.StoreError, match=r"same has 2 names \(hard links\)"):
            ma.recorded(store.format(second))
    finally:
        live.close()
    second.unlink()
    ma.recorded(store.format(first)).close()


def test_a_handle_that_nobody_holds_lets_go_of_its_journal(tmp_path: Path) -> None:
    live = ma.recorded(ma.Journal(tmp_path / "game", sync=60_000), new())
    in_turn(live, 3)
    del live
    with ma.recorded(tmp_path / "game") as live:
        assert live.pulls == 3
    failed = ma.recorded(tmp_path / "game")
    failed._recorder.store.append = None  # type: ignore[method-assign, union-attr]
    with pytest.raises(ma.StoreError, match="could not be written"):
        failed.ask()
    del failed
    gc.collect()
    ma.recorded(tmp_path / "game").close()


def test_places_where_there_can_be_no_journal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "folder" / "game", tmp_path / "file" / "game", tmp_path / ("x" * 300)):
        with pytest.raises(ma.StoreError, match=r"cannot be opened: .*[.]$"):
            ma.recorded(path, new())
    (tmp_path / "game").mkdir()
    with pytest.raises(ma.StoreError, match="cannot be opened: Is a directory. Name a file"):
        ma.recorded(tmp_path / "game", new())
    (tmp_path / "link.lock").symlink_to(tmp_path / "file")
    with pytest.raises(ma.StoreError, match="opened: The lock must not be a link. Remove"):
        ma.recorded(tmp_path / "link", new())
    with pytest.raises(ma.ParameterError, match="`path` must be a path, got"):
        ma.Journal("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ma.StoreError, match="cannot be opened: A journal must be a regular file"):
        ma.recorded(tmp_path / "pipe", new())
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == ["file", "game", "link.lock", "pipe"]


@pytest.mark.parametrize("what", ["game", "game.lock"])
@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
@pytest.mark.parametrize("then", ["ask", "compact", "close"])
def test_a_file_that_is_taken_away_is_missed(
    what: str, how: str, then: str, tmp_path: Path
) -> None:
    live = ma.recorded(ma.Journal(tmp_path / "game", sync="never"), new())
    in_turn(live, 2)
    path = tmp_path / what
    data = path.read_bytes()
    path.rename(tmp_path / "elsewhere") if how == "moved" else path.unlink()
    if how == "replaced":
        path.write_bytes(data)
    there = sorted(tmp_path.iterdir())
    time.sleep(0.11)
    for _ in range(2 if then != "close" else 1):
        with pytest.raises(ma.StoreError, match="moved, removed or replaced while it was open"):
            getattr(live, then)()
    if then != "close":
        assert live.progress().pulls > 0
        live.close()
    assert sorted(tmp_path.iterdir()) in (there, [p for p in there if p.name != "game.lock"])
    assert how != "replaced" or path.read_bytes() == data  # it is somebody else's


# Failing writes


@pytest.mark.parametrize("which", [0, 3, 4, 6])  # ask, tell_many, abandon, retire
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_the_file_as_it_was(
    which: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game"
    live = ma.recorded(ma.Journal(path, sync="always"), new())
    play(live, 100)
    pull = live.ask()
    known, before = live.to_bytes(), path.read_bytes()
    real = os.write

    def full(file: int, data: bytes = b"") -> int:
        if call == "write" and len(data) > 9:
            return real(file, data[:9])  # the disk takes the first bytes, and then no more
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(ma.StoreError, match="could not be written: .*No space left.*again"):
            calls(live, pull)[which]()
    live.close()
    assert path.read_bytes() == before
    with ma.recorded(path) as again:
        assert again.to_bytes() == known


def test_a_sync_that_fails_later_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = ma.Journal(tmp_path / "game", sync=1)
    live = ma.recorded(journal, new())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _broken)
        live.ask()
        _wait_until(lambda: journal.failure)
        with pytest.raises(ma.StoreError, match="could not be written: .*Input/output error"):
            live.ask()
        assert live.progress().pending == 1
    live.close()


def test_a_close_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = ma.recorded(tmp_path / "game", new())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _broken)
        with pytest.raises(ma.StoreError, match="could not be closed: .*Input/output error"):
            live.close()
    with pytest.raises(ma.StoreError, match="could not be closed"):
        live.ask()
    assert live.progress().pulls == 0
    ma.recorded(tmp_path / "game").close()  # it is not locked


# Damage


def test_damage_in_the_middle_names_the_place_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "game"
    live = ma.recorded(path, new())
    in_turn(live, 100)
    leave(live)
    whole = path.read_bytes()
    first = len(whole) - 200 * RECORD_BYTES
    files = damaged_files(whole[:first], 100)  # the header and what was saved
    files = [data + whole[first:] for data in files]
    chance = random.Random(4)
    for _ in range(100):
        at = chance.randrange(first, len(whole) - 2 * RECORD_BYTES)
        files.append(flipped(whole, 8 * at + chance.randrange(8)))
    files.append(whole[:first] + bytes(RECORD_BYTES) + whole[first + RECORD_BYTES :])
    files.append(whole[:first] + whole[first + RECORD_BYTES :])  # a record is missing
    for data in files:
        path.write_bytes(data)
        with pytest.raises(ma.SavedFileError, match=r"game .*[.]$"):
            ma.recorded(path)
        assert path.read_bytes() == data
    path.write_bytes(files[-3])
    with pytest.raises(ma.SavedFileError, match=r"damaged at byte \d+: event \d+ is wrong"):
        ma.recorded(path, new())


def test_files_of_the_other_kind_are_named(tmp_path: Path) -> None:
    live = new()
    live.save(tmp_path / "saved")
    with pytest.raises(ma.SavedFileError, match="is a saved handle, not a journal.*Live.load"):
        ma.recorded(tmp_path / "saved")
    ma.recorded(tmp_path / "journal", live).close()
    with pytest.raises(ma.SavedFileError, match=r"is a journal. Open it with recorded\(path\)"):
        ma.Live.load(tmp_path / "journal")
    data = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(data[:8] + struct.pack("<I", 9) + data[12:])
    with pytest.raises(
        ma.SavedFileError, match="format 9, and this manyarms reads formats up to 2"
    ):
        ma.recorded(tmp_path / "journal")


def test_records_are_laid_out_as_documented() -> None:
    data, check = record(Event(EventKind.TOLD, 7, 3, 0.5), 123)
    assert len(data) == RECORD_BYTES
    assert struct.unpack("<IB3xqd", data) == (check, EventKind.TOLD, 7, 0.5)
    assert check == zlib.crc32(data[4:], 123)


def test_a_guard_that_an_interrupt_left_locked_does_not_hang_who_collects_it(
    tmp_path: Path,
) -> None:
    store = ma.Journal(tmp_path / "game")
    ma.recorded(store, new(ma.MOSS()))
    store._guard.acquire()  # as Ctrl-C may leave it between a block and its end
    collector = threading.Thread(target=store.__del__, daemon=True)
    collector.start()
    collector.join(timeout=20)
    assert not collector.is_alive()
    with ma.recorded(tmp_path / "game"):
        pass


# What a later version can open


def test_a_closed_journal_is_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "game"
    live = ma.recorded(path, new())
    in_turn(live, 20)
    leave(live)
    assert len(ma.Journal(path).events()) == 40
    with ma.recorded(path) as live:  # which plays them again, and then closes it
        known = live.to_bytes()
    assert len(ma.Journal(path).events()) == 0
    before = path.stat().st_mtime_ns
    with ma.recorded(path) as live:
        assert live.to_bytes() == known
    assert path.stat().st_mtime_ns == before  # nothing had happened
    monkeypatch.setattr("manyarms.live.recorder._CHEAP", 2)
    with ma.recorded(path) as live:
        in_turn(live, 5)
    assert len(ma.Journal(path).events()) == 10  # many arms were tried: it would have taken long


def test_a_journal_with_a_history_is_closed_as_it_is(tmp_path: Path) -> None:
    for _ in range(3):
        with ma.recorded(ma.Journal(tmp_path / "game", history=True), new()) as live:
            in_turn(live, 5)
    assert len(ma.Journal(tmp_path / "game").events()) == 30
    assert [file.name for file in tmp_path.iterdir()] == ["game"]


def test_events_that_the_policy_would_choose_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "game"
    live = ma.recorded(path, new())
    in_turn(live, 20)
    snapshot = live._recorder.store  # as a version with another rule would have written it
    assert isinstance(snapshot, ma.Journal)
    live._game.log = []
    pull = live._game.ask()
    events = [live._game.log[-1]._replace(arm=(live._game.flight[pull.id].arm + 1) % 9)]
    snapshot.append(events, live._recorder._snapshot)
    leave(live)
    with pytest.raises(ma.SavedFileError, match=r"now chooses arm .* live.close\(\) there"):
        ma.recorded(path)


def test_a_snapshot_that_fails_at_the_end_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game"
    with ma.recorded(path, new()) as live:
        in_turn(live, 5)
        monkeypatch.setattr("manyarms.live.journal.write_file", _broken)
    monkeypatch.undo()
    with ma.recorded(path) as live:
        assert live.pulls == 5
