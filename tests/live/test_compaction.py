"""Compacting in a copy of the process: the game goes on, and nothing is lost or told twice."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.process_copy import HarmlessTimer, ProcessCopy, is_safe_to_copy
from manyarms.live import compaction, saving
from manyarms.live.databases import store_of
from manyarms.live.journal_file import RECORD_BYTES, begin_file
from tests.inference.games import in_turn, new, play

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

STORES: dict[str, Callable[[Path], Any]] = {
    "journal": lambda folder: ma.Journal(folder / "game", sync="never", compact_every=50),
    "synced": lambda folder: ma.Journal(folder / "game", sync="always", compact_every=50),
    "history": lambda folder: ma.Journal(folder / "game", history=True, compact_every=50),
    "sqlite": lambda folder: store_of(f"sqlite:///{folder}/game.db?sync=never"),
}


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the process for every snapshot of a store."""
    monkeypatch.setattr("manyarms.live.store._SMALL", 0)
    monkeypatch.setattr("manyarms.live.store.is_safe_to_copy", lambda: True)
    monkeypatch.setattr(
        "manyarms.live.databases.store.is_long", lambda events, arms: events > max(50, arms)
    )


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies wait until this file is there."""
    gate, here = tmp_path / "gate", os.getpid()

    def snapshot(game: Any) -> bytes:
        while os.getpid() != here and not gate.exists():
            time.sleep(0.001)
        return saving.snapshot(game)

    monkeypatch.setattr("manyarms.live.recorder.snapshot", snapshot)
    return gate


def _copy_of(live: ma.Live) -> Any:
    """What compacts the store of a handle; None if nothing does."""
    store: Any = live._recorder.store
    return store._compaction if isinstance(store, ma.Journal) else store._copy


def _until_done(live: ma.Live) -> None:
    deadline = time.monotonic() + 30
    while _copy_of(live) is not None and time.monotonic() < deadline:
        time.sleep(0.001)
        live.ask()
    assert _copy_of(live) is None


def _replayed(make: Callable[[Path], Any], folder: Path) -> int:
    store = make(folder)
    held = store.load()
    store.close()
    return len(held.events.kind)


@pytest.mark.patient
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_the_game_goes_on_meanwhile(
    make: Callable[[Path], Any], tmp_path: Path, gate: Path
) -> None:
    live = ma.recorded(make(tmp_path), new())
    in_turn(live, 40)
    copy = _copy_of(live)
    assert copy is not None
    in_turn(live, 400)
    live.abandon(live.ask())
    assert _copy_of(live) is copy  # and one is enough
    gate.touch()
    _until_done(live)
    if isinstance(live._recorder.store, ma.Journal):
        assert live._recorder.store._records > 800  # which were copied
    late = live.ask()
    known, story = live.to_bytes(), [event[1:4] for event in live.events()]
    live.close()
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known
        live.tell(late, 1.0)
        if make in (STORES["history"], STORES["sqlite"]):  # which keep every event
            assert [event[1:4] for event in live.events()][:-1] == story
            assert len(story) > 880
    assert list(tmp_path.glob("*part")) == []


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_closing_waits_for_it(make: Callable[[Path], Any], tmp_path: Path, gate: Path) -> None:
    live = ma.recorded(make(tmp_path), new())
    in_turn(live, 40)
    assert _copy_of(live) is not None
    known = live.to_bytes()
    live._recorder._unsaved = False
    threading.Timer(0.05, gate.touch).start()
    live.close()
    assert _replayed(make, tmp_path) < 80
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_copy_that_dies_harms_nothing(
    make: Callable[[Path], Any], tmp_path: Path, gate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = ma.recorded(make(tmp_path), new())
    in_turn(live, 40)
    copy = _copy_of(live)
    os.kill(getattr(copy, "_copy", copy)._child, signal.SIGKILL)
    _until_done(live)
    logged = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert len(logged) == 1
    assert "could not be compacted, and goes on as it was: OSError('the copy of this" in logged[0]
    in_turn(live, 60)
    assert _copy_of(live) is None  # from now on it is done here
    known = live.to_bytes()
    live.close()
    assert _replayed(make, tmp_path) < 60
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known
    assert list(tmp_path.glob("*part")) == []


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_snapshot_that_is_asked_for_comes_first(
    make: Callable[[Path], Any], tmp_path: Path, gate: Path
) -> None:
    live = ma.recorded(make(tmp_path), new())
    in_turn(live, 40)
    child = getattr(_copy_of(live), "_copy", _copy_of(live))._child
    live.compact()
    assert _copy_of(live) is None
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    in_turn(live, 5)
    known = live.to_bytes()
    live._recorder._unsaved = False
    live.close()
    assert _replayed(make, tmp_path) == 10
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_where_there_can_be_no_copy_it_is_done_here(
    make: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    live = ma.recorded(make(tmp_path), new())
    monkeypatch.setattr(os, "fork", fork)
    in_turn(live, 40)
    assert _copy_of(live) is None
    live._recorder._unsaved = False
    live.close()
    assert _replayed(make, tmp_path) < 50
    assert list(tmp_path.glob("*part")) == []


def test_a_copy_that_hangs_is_ended(
    tmp_path: Path, gate: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("manyarms.core.process_copy._LONGEST", 0.02)
    live = ma.recorded(STORES["journal"](tmp_path), new())
    in_turn(live, 40)
    _until_done(live)
    assert "took too long" in caplog.text
    live.close()


def test_a_kill_before_the_journal_is_replaced_tells_nothing_twice(tmp_path: Path) -> None:
    """The journal with a history was kept as it was; then the process died."""
    path = tmp_path / "game"
    with ma.recorded(ma.Journal(path, history=True), new()) as live:
        in_turn(live, 20)
        story = [event[1:4] for event in live.events()]
    data = path.read_bytes()
    (tmp_path / "game.000001").write_bytes(data[: -10 * RECORD_BYTES])
    (tmp_path / "game.000002.0123abcd.manyarms-part").write_bytes(data)
    with ma.recorded(ma.Journal(path, history=True)) as live:
        assert [event[1:4] for event in live.events()] == story
    assert [file.name for file in tmp_path.iterdir()] == ["game"]


def test_a_journal_with_a_history_that_cannot_be_compacted_is_not_kept_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ma.recorded(STORES["history"](tmp_path), new())
    monkeypatch.setattr("manyarms.live.store._SMALL", 1000)
    with monkeypatch.context() as patch:
        patch.setattr("manyarms.live.journal.write_file", lambda *_: os.fsync(-1))
        in_turn(live, 40)
    in_turn(live, 40)
    assert len(live.events()) == 160
    live.close()


def test_a_game_of_all_kinds_of_events(tmp_path: Path) -> None:
    """A file that was compacted is one that could have been written."""
    make = STORES["journal"]
    live = ma.recorded(make(tmp_path), new())
    play(live, 1500)
    known = live.to_bytes()
    live.close()
    assert (tmp_path / "game").read_bytes() == begin_file(known)
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known


def test_only_a_process_without_other_threads_is_copied() -> None:
    if sys.platform != "linux":
        assert not is_safe_to_copy()
        return
    before = is_safe_to_copy()  # the tests' own tools may have threads
    ours = HarmlessTimer(60, print)
    ours.start()
    assert is_safe_to_copy() is before
    ours.cancel()
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    assert not is_safe_to_copy()
    done.set()
    for thread in (ours, other):
        thread.join()


def test_somebody_else_may_wait_for_a_copy() -> None:
    copy = ProcessCopy(lambda: b"done")
    os.waitpid(copy._child, 0)
    assert copy.wait() == b"done"
    copy.stop()  # which has nothing to end any more


@pytest.mark.parametrize("place", ["first_check_in", "rechained", "write_all"])
def test_an_interrupt_in_the_middle_leaves_the_journal_as_it_was(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, real = os.getpid(), getattr(compaction, place)
    rung: list[str] = []

    def ring(*given: Any) -> Any:
        if os.getpid() == here and not rung:
            rung.append(place)
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(compaction, place, ring)
    known = 0
    with (
        contextlib.suppress(KeyboardInterrupt),
        ma.recorded(STORES["journal"](tmp_path), new(n_arms=30, horizon=100_000)) as live,
    ):
        while not rung:
            live.tell(live.ask(), 1.0)
            known += 1
            time.sleep(0.0005)
    assert rung
    with ma.recorded(STORES["journal"](tmp_path)) as live:
        assert known <= live.progress().told <= known + 1


def test_a_piece_that_is_lost_on_the_way_is_noticed() -> None:
    copy = ProcessCopy(lambda: bytes(1 << 20))
    data = copy.wait()
    assert len(data) == 1 << 20
    copy = ProcessCopy(lambda: bytes(3 << 20))
    os.read(copy._read, 1000)  # as if an interrupt had come before it was kept
    with pytest.raises(OSError, match="the copy of this process failed"):
        copy.wait()


def test_large_calls_are_caught_up_with(tmp_path: Path) -> None:
    live = ma.recorded(STORES["journal"](tmp_path), new(n_arms=30, horizon=10_000_000))
    sizes = []
    for _ in range(25):
        live.tell_many((pull, 1.0) for pull in live.ask(600))
        time.sleep(0.02)
        sizes.append((tmp_path / "game").stat().st_size)
    live.close()
    assert min(sizes[10:]) < max(sizes[:10])
