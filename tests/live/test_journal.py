"""A journal brings back every event: after kills, torn writes, full disks and at full length."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import replay
from manyarms.live.records import RECORD_BYTES, TOLD, begin_file, first_check, read_file, record
from tests.helpers import ALL_POLICIES, label
from tests.live.games import counts, play, step
from tests.live.test_saving import damaged_files

ROOT = Path(__file__).parent.parent.parent


def _new(policy: ma.Policy | None = None, **changes: Any) -> ma.Live:
    start: dict[str, Any] = {"n_arms": 12, "horizon": 5000, "seed": 4} | changes
    return (policy or ma.MOSS()).live(**start)


def _reopened(path: Path, data: bytes) -> bytes:
    """What a handle knows after a file of these bytes was opened."""
    path.write_bytes(data)
    with ma.Journal(path, sync="never") as journal:
        return journal.live.to_bytes()


def _in_turn(game: ma.Live | ma.Journal, pulls: int) -> None:
    for _ in range(pulls):
        game.tell(game.ask(), 1.0)


# Every event comes back


def test_opened_again_after_every_event_of_a_long_game(tmp_path: Path) -> None:
    """With sync="never" closing writes nothing: what is opened is what a kill would leave."""
    control = _new(ma.Quantile())
    ma.Journal(tmp_path / "game", _new(ma.Quantile()), sync="never").close()
    for event in range(2000):
        with ma.Journal(tmp_path / "game", sync="never", compact_every=100) as journal:
            assert (counts(journal), journal.pending) == (counts(control), control.pending)
            if event % 50 == 0:
                assert journal.live.to_bytes() == control.to_bytes()
            step(journal)
            step(control)
    assert journal.live.to_bytes() == control.to_bytes()
    assert min(counts(control)) > 10


def test_a_file_cut_off_at_any_record_or_byte_is_played_so_far(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.Journal(path, _new(), sync="never") as journal:
        while journal.pulls < 400:
            pull = journal.ask()
            if pull.id % 4 < 3:
                journal.tell(journal.pending[pull.id % 2 - 1], float(pull.id % 3 == 0))
            elif pull.id % 40 == 3:
                journal.abandon(pull)
    whole = path.read_bytes()
    saved, events, end, _ = read_file(whole, "it")
    assert end == len(whole)
    first = end - RECORD_BYTES * len(events.kind)
    control = ma.Live.from_bytes(saved)
    for k in range(len(events.kind)):
        if k % 5 == 0 or k > len(events.kind) - 30:
            known = _reopened(tmp_path / "cut", whole[: first + RECORD_BYTES * k])
            assert known == control.to_bytes()
        replay.replay_by_hand(control, type(events)(*(part[k : k + 1] for part in events)), "it")
    before = _reopened(tmp_path / "cut", whole[:-RECORD_BYTES])
    for cut in range(1, RECORD_BYTES):
        assert _reopened(tmp_path / "cut", whole[:-cut]) == before
        assert (tmp_path / "cut").read_bytes() == whole[:-RECORD_BYTES]
    assert _reopened(tmp_path / "cut", whole + b"\0" * 5000) == control.to_bytes()


_CHILD = """
import sys
import manyarms as ma
from tests.live.games import step
live = ma.EmpMOSSPlusPlus().live(n_arms=30, horizon=9000, seed=8)
journal = ma.Journal(sys.argv[1], live, sync=5, compact_every=150)
print("open", flush=True)
while journal.pulls < 8000:
    step(journal)
"""


def test_killed_at_random_moments(tmp_path: Path) -> None:
    path = tmp_path / "game"
    control = ma.EmpMOSSPlusPlus().live(n_arms=30, horizon=9000, seed=8)
    chance = random.Random(3)
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, path], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        with pytest.raises(ma.JournalError, match=f"open already in process {child.pid}"):
            ma.Journal(path)
        time.sleep(chance.uniform(0.0, 0.03))
        child.kill()
        child.communicate()
        with ma.Journal(path) as journal:
            while counts(control) != counts(journal) and control.pulls < 8000:
                step(control)
            assert journal.live.to_bytes() == control.to_bytes()
    assert control.pulls > 0


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_every_policy_comes_back(policy: ma.Policy, tmp_path: Path) -> None:
    control = _new(policy)
    play(control, 150)
    with ma.Journal(tmp_path / "game", _new(policy), sync="never") as journal:
        play(journal, 80)
    with ma.Journal(tmp_path / "game") as journal:
        play(journal, 70)
        assert journal.live.to_bytes() == control.to_bytes()


@pytest.mark.compiled
@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.Doubling(ma.Parallel(best_mean=0.9))])
def test_compiled_replay_is_the_handle_s_own(policy: ma.Policy, tmp_path: Path) -> None:
    chance = random.Random(2)
    live = policy.live(n_arms=60, horizon=None if policy.anytime else 3000, seed=3)
    for events in (500, 1500):  # the second part is recorded
        with ma.Journal(tmp_path / f"{events}", live, sync="never") as journal:
            for _ in range(events):
                pending = journal.pending
                if not pending or chance.random() < 0.55:
                    journal.ask()
                elif chance.random() < 0.05:
                    journal.abandon(chance.choice(pending))
                else:
                    journal.tell(chance.choice(pending), chance.random())
        live = ma.Live.from_bytes(live.to_bytes())
    saved, recorded, *_ = read_file((tmp_path / "1500").read_bytes(), "it")
    played = ma.Live.from_bytes(saved)
    assert replay.replay_compiled(played, recorded)
    assert played.to_bytes() == live.to_bytes()
    recorded.arm[0] += 1
    again = ma.Live.from_bytes(saved)
    assert not replay.replay_compiled(again, recorded)
    assert again.to_bytes() == saved
    with pytest.raises(ma.SavedFileError, match=r"pull \d+ was of arm \d+, and .* now chooses arm"):
        replay.replay(again, recorded, "it")


@pytest.mark.compiled
def test_a_long_journal_is_played_by_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "LONG", 100)
    with ma.Journal(tmp_path / "game", _new(ma.MOSSPlusPlus()), sync="never") as journal:
        _in_turn(journal, 60)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "replay_by_hand", None)
        with ma.Journal(tmp_path / "game") as journal:
            assert journal.pulls == 60
            _in_turn(journal, 100)
            journal.add_arms(3)  # arrays do not grow: by hand from here
            _in_turn(journal, 60)
    with ma.Journal(tmp_path / "game") as journal:
        assert journal.pulls == 220
    monkeypatch.setattr(replay, "_ROOM", 10)
    assert not replay.replay_compiled(journal.live, read_file(begin_file(b""), "it").events)


# The same script, every time


def test_the_same_script_serves_the_first_start_and_every_other(tmp_path: Path) -> None:
    for start in range(3):
        live = _new()
        with ma.Journal(tmp_path / "game", live) as journal:
            assert journal.live is live
            assert live.pulls == 10 * start
            _in_turn(journal, 5)
            _in_turn(live, 5)  # on the handle itself: recorded as well
    with ma.Journal(tmp_path / "game") as journal:
        assert journal.pulls == 30


def test_a_script_may_begin_with_the_arms_there_are_now(tmp_path: Path) -> None:
    path = tmp_path / "names"
    with ma.Journal(path, ma.MOSS().live(arms=["a", "b"], horizon=9)) as journal:
        journal.add_arms(["c"])
        journal.retire("a")
    for names in (["a", "b"], ["a", "b", "c"]):
        with ma.Journal(path, ma.MOSS().live(arms=names, horizon=9)) as journal:
            assert journal.n_arms == 2
    with pytest.raises(ma.ParameterError, match="`live` must be of the arms recorded there"):
        ma.Journal(path, ma.MOSS().live(arms=["a", "x"], horizon=9))


@pytest.mark.parametrize(
    ("live", "message"),
    [
        (_new(seed=5), "`live` must be of the game recorded there, with seed 4, got 5"),
        (_new(horizon=9), "with horizon 5000, got 9"),
        (_new(reward_range=None), r"with reward_range \(0.0, 1.0\), got None"),
        (_new(n_arms=13), "`live` must be of the arms recorded there"),
        (_new(ma.Quantile()), "with the policy moss, not with quantile"),
    ],
)
def test_another_game_is_refused(live: ma.Live, message: str, tmp_path: Path) -> None:
    path = tmp_path / "game"
    ma.Journal(path, _new()).close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        ma.Journal(path, live)
    assert path.read_bytes() == before
    assert live.pulls == 0
    live.ask()
    with pytest.raises(ValueError, match="must be a new handle|not with quantile|must be of"):
        ma.Journal(path, live)
    ma.Journal(path).close()  # it is not locked


def test_a_handle_that_was_used_may_begin_a_journal(tmp_path: Path) -> None:
    live = _new()
    play(live, 50)
    with ma.Journal(tmp_path / "game", live) as journal:
        with pytest.raises(ma.ParameterError, match="`live` must be a handle without a journal"):
            ma.Journal(tmp_path / "other", live)
        play(journal, 20)
    with ma.Journal(tmp_path / "game") as again:
        assert again.live.to_bytes() == live.to_bytes()


def test_what_can_be_seen_is_the_handle_s(tmp_path: Path) -> None:
    with ma.Journal(tmp_path / "game", _new(), sync="always") as journal:
        play(journal, 40)
        live = journal.live
        for view in ("recommend", "arms", "progress"):
            assert repr(getattr(journal, view)()) == repr(getattr(live, view)())
        assert journal.top(3) == live.top(3)
        assert (journal.pulls, journal.n_arms) == (live.pulls, live.n_arms)
        assert journal.to_dataframe().equals(live.to_dataframe())
        assert (str(journal), journal._repr_html_()) == (str(live), live._repr_html_())
        assert repr(journal) == f"<Journal {str(journal.path)!r} of {live!r}>"
    assert journal.progress().pulls == live.pulls
    for call in (
        journal.ask,
        lambda: journal.ask(2),
        lambda: journal.tell(0, 1.0),
        journal.compact,
    ):
        with pytest.raises(ma.JournalError, match="is closed. Open the journal again"):
            call()
    journal.close()


# Compaction and syncing


def test_compaction_keeps_the_file_small(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.Journal(path, _new(), sync="never", compact_every=50) as journal:
        largest = 0
        for _ in range(500):
            journal.tell(journal.ask(), 0.5)
            largest = max(largest, path.stat().st_size)
        assert largest < 4000
        journal.ask(60)  # more than one compaction within
        known = journal.live.to_bytes()
        assert _reopened(tmp_path / "copy", path.read_bytes()) == known
        journal.compact()
        assert _reopened(tmp_path / "copy", path.read_bytes()) == known


def test_what_a_crash_within_a_compaction_leaves_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "game"
    ma.Journal(path, _new()).close()
    (tmp_path / "game.0123abcd.tmp").write_bytes(b"half")
    (tmp_path / "game.of-mine1.tmp").write_bytes(b"not ours")
    ma.Journal(path).close()
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["game", "game.lock", "game.of-mine1.tmp"]


def test_when_the_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(file)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    for sync, at_once, at_the_end in (("always", 3, 4), ("never", 0, 0)):
        with ma.Journal(tmp_path / sync, _new(), sync=sync) as journal:
            synced.clear()
            journal.tell(journal.ask(), 1.0)
            journal.ask(20)  # one write, one sync
            assert len(synced) == at_once
        assert len(synced) == at_the_end
    with ma.Journal(tmp_path / "game", _new(), sync=20) as journal:
        synced.clear()
        _in_turn(journal, 3)
        deadline = time.monotonic() + 30
        while not synced and time.monotonic() < deadline:
            time.sleep(0.005)
        assert synced  # without another event


@pytest.mark.parametrize("sync", ["sometimes", 0, -1, None, float("nan"), True])
def test_bad_sync(sync: Any, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match="`sync` must be"):
        ma.Journal(tmp_path / "game", _new(), sync=sync)
    with pytest.raises(ma.ParameterError, match="`compact_every` must be an integer >= 1"):
        ma.Journal(tmp_path / "game", _new(), compact_every=0)


# One writer


def test_a_second_opener_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.Journal(path, _new()) as journal:
        (tmp_path / "link").symlink_to(path)
        for name in (path, tmp_path / "link"):
            with pytest.raises(ma.JournalError, match="game is open already in this process"):
                ma.Journal(name)
        journal.ask()
    with ma.Journal(path) as journal:
        assert journal.pulls == 1
    policy: Any = ma.MOSS()
    with pytest.raises(ma.ParameterError, match=r"`live` must be what policy.live\(...\) returns"):
        ma.Journal(path, policy)
    with pytest.raises(ma.JournalError, match="There is no journal .*pass a handle"):
        ma.Journal(tmp_path / "nothing")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_may_not_write_and_does_not_keep_the_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "import manyarms as ma\n"
        "path = sys.argv[1]\n"
        "journal = ma.Journal(path, ma.MOSS().live(n_arms=9, horizon=99), sync='never')\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        journal.ask()\n"
        "    except ma.JournalError as error:\n"
        "        os.write(write, str(error).encode())\n"
        "    time.sleep(30)\n"
        "print(os.read(read, 999).decode())\n"
    )
    path = tmp_path / "game"
    done = subprocess.Popen(
        [sys.executable, "-c", code, path],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert done.stdout is not None
    try:
        assert "and this one is its fork" in done.stdout.readline()
        done.wait(30)
        with ma.Journal(path) as journal:  # while the fork is alive
            assert journal.pulls == 0
    finally:
        os.killpg(done.pid, 9)
        done.stdout.close()


# Failing writes


@pytest.mark.parametrize("happens", ["ask", "tell", "tell_many", "abandon", "retire", "compact"])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk(
    happens: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game"
    journal = ma.Journal(path, _new(), sync="always")
    play(journal, 100)
    pulls = journal.ask(5)
    known, before = journal.live.to_bytes(), path.read_bytes()
    actions: dict[str, Any] = {
        "ask": lambda: journal.ask(),
        "tell": lambda: journal.tell(pulls[0], 1.0),
        "tell_many": lambda: journal.tell_many([(pulls[0], 1.0), (pulls[1], 0.0)]),
        "abandon": lambda: journal.abandon(pulls[2]),
        "retire": lambda: journal.retire(pulls[3].arm),
        "compact": lambda: journal.compact(),
    }
    real = os.write

    def full(file: int, data: bytes = b"") -> int:
        if call == "write" and len(data) > 9:
            return real(file, data[:9])  # the disk takes the first bytes, and then no more
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(ma.JournalError, match="could not be written: .*No space left.*again"):
            actions[happens]()
    for action in (*actions.values(), journal.progress, lambda: journal.pending):
        with pytest.raises(ma.JournalError, match="could not be written"):
            action()
    with pytest.raises(ma.JournalError, match="could not be written"):
        journal.live.tell(pulls[4], 1.0)
    journal.close()
    assert path.read_bytes() == before
    with ma.Journal(path) as again:
        assert again.live.to_bytes() == known
        play(again, 20)


def test_a_sync_that_fails_later_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = ma.Journal(tmp_path / "game", _new(), sync=1)

    def broken(file: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        journal.ask()
        deadline = time.monotonic() + 30
        while journal._writer._failure is None and time.monotonic() < deadline:
            time.sleep(0.002)
        with pytest.raises(ma.JournalError, match="could not be written: .*Input/output error"):
            journal.ask()
    journal.close()


def test_where_no_thread_can_be_started_the_disk_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    synced: list[int] = []
    with ma.Journal(tmp_path / "game", _new()) as journal:
        monkeypatch.setattr(threading.Timer, "start", start)
        monkeypatch.setattr(os, "fsync", synced.append)
        journal.tell(journal.ask(), 1.0)
        assert len(synced) == 2
        known = journal.live.to_bytes()
    monkeypatch.undo()
    with ma.Journal(tmp_path / "game") as again:
        assert again.live.to_bytes() == known


# Interruptions


class _Interrupt:
    """Raises KeyboardInterrupt at the so-manieth line of the package that is run."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if "manyarms" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def happens(self, action: Callable[[], object]) -> bool:
        """Return whether the action was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            action()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


def _do(what: str, journal: ma.Journal, first: ma.Pull, second: ma.Pull) -> None:
    if what == "ask":
        journal.ask()
    elif what == "ask 3":
        journal.ask(3)
    elif what == "tell":
        journal.tell(first, 1.0)
    elif what == "tell_many":
        journal.tell_many([(first, 1.0), (second, 0.0)])
    elif what == "abandon":
        journal.abandon(first)
    else:
        journal.add_arms(2)


@pytest.mark.parametrize("happens", ["ask", "ask 3", "tell", "tell_many", "abandon", "add_arms"])
def test_a_call_interrupted_anywhere_spoils_nothing(happens: str, tmp_path: Path) -> None:
    """Every line of the call in turn: then the journal refuses, or all is in order."""
    line, refused = 1, 0
    while True:
        path = tmp_path / f"{line}"
        journal = ma.Journal(path, _new(ma.MOSS(count_late=True)), sync="never")
        first, second, _ = journal.ask(3)
        interrupted = _Interrupt(line).happens(partial(_do, happens, journal, first, second))
        known = None
        try:
            for pull in journal.pending:
                journal.tell(pull, 0.5, again="ignore")
            _in_turn(journal, 2)
            known = journal.live.to_bytes()
        except ma.JournalError:
            with pytest.raises(ma.JournalError, match="[Oo]pen the journal again"):
                journal.ask()
            refused += 1
        journal.close()
        with ma.Journal(path, sync="never") as again:
            assert known in (None, again.live.to_bytes())
            for pull in again.pending:
                again.tell(pull, 0.5)
            _in_turn(again, 2)
        if not interrupted:
            break
        line += 1
    assert line > 20
    assert refused > 5


def test_a_closed_journal_s_handle_does_not_move(tmp_path: Path) -> None:
    live = _new()
    with ma.Journal(tmp_path / "game", live) as journal:
        pull = journal.ask()
    known = live.to_bytes()
    for call in (
        live.ask,
        lambda: live.ask(2),
        lambda: live.tell(pull, 1.0),
        lambda: live.abandon(pull),
        lambda: live.add_arms(1),
        lambda: live.retire(0),
    ):
        with pytest.raises(ma.JournalError, match="is closed"):
            call()
        assert live.to_bytes() == known


# Damage


def test_damage_in_the_middle_names_the_place_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.Journal(path, _new(), sync="never") as journal:
        _in_turn(journal, 100)
    whole = path.read_bytes()
    first = len(whole) - 200 * RECORD_BYTES
    files = damaged_files(whole[:first], 100)  # the header and what was saved
    files = [data + whole[first:] for data in files]
    chance = random.Random(4)
    for _ in range(100):
        at = chance.randrange(first, len(whole) - 2 * RECORD_BYTES)
        files.append(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    files.append(whole[:first] + whole[first + RECORD_BYTES :])  # a record is missing
    for data in files:
        path.write_bytes(data)
        with pytest.raises(ma.SavedFileError, match=r"game .*[.]$"):
            ma.Journal(path)
        assert path.read_bytes() == data
    path.write_bytes(files[-2])
    with pytest.raises(ma.SavedFileError, match=r"damaged at byte \d+: event \d+ is wrong"):
        ma.Journal(path, _new())


def test_files_of_the_other_kind_are_named(tmp_path: Path) -> None:
    live = _new()
    live.save(tmp_path / "saved")
    with pytest.raises(ma.SavedFileError, match="is a saved handle, no journal.*Live.load"):
        ma.Journal(tmp_path / "saved")
    ma.Journal(tmp_path / "journal", live).close()
    with pytest.raises(ma.SavedFileError, match=r"is a journal. Open it with Journal\(path\)"):
        ma.Live.load(tmp_path / "journal")
    data = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(data[:8] + struct.pack("<I", 9) + data[12:])
    with pytest.raises(ma.SavedFileError, match="format 9, and this manyarms reads format 1"):
        ma.Journal(tmp_path / "journal")


@pytest.mark.parametrize(
    "events",
    [
        [(TOLD, 0, 1.0)],
        [(1, 1, 0)],
        [(1, 0, 12)],
        [(1, 0, 3), (TOLD, 1, 1.0)],
        [(9, 0, 3)],
        [(1, 0, -1)],
    ],
)
def test_records_that_contradict_each_other_are_refused(
    events: list[tuple[int, int, Any]], tmp_path: Path
) -> None:
    saved = _new().to_bytes()
    data, check = begin_file(saved), first_check(saved)
    for event in events:
        more, check = record(*event, check)
        data += more
    (tmp_path / "game").write_bytes(data)
    with pytest.raises(ma.SavedFileError, match="contradicts itself|unknown kind"):
        ma.Journal(tmp_path / "game")


def test_records_are_laid_out_as_documented() -> None:
    data, check = record(TOLD, 7, 0.5, 123)
    assert len(data) == RECORD_BYTES
    assert struct.unpack("<IB3xqd", data) == (check, TOLD, 7, 0.5)
    assert check == zlib.crc32(data[4:], 123)
