"""Recorded handles: nothing acknowledged is lost, and two writers never overwrite each other."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.errors import WriteConflictError
from manyarms.live import opening, recorder, replaying
from manyarms.store import LONGEST_ARM_NAME, copy, open_store
from tests.inference.random_events import in_turn, new, play
from tests.live.stores import ADDRESSES, copied, known, leave
from tests.serve.machines import new_name

NAMES = ["red", "blue", "green"]


def begun(path: Path, **given: Any) -> ma.Live:
    chosen: dict[str, Any] = {"arms": NAMES, "horizon": 500, "seed": 1, "name": "shop"} | given
    policy = chosen.pop("policy", ma.MOSS())
    live: ma.Live = policy.live(store=path / "shop.db", **chosen)
    return live


@pytest.mark.parametrize("place", ADDRESSES)
@pytest.mark.parametrize("policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(count_late=True)], ids=str)
def test_a_reopened_handle_continues_unchanged(
    place: str, policy: ma.Policy, tmp_path: Path
) -> None:
    store, name = ADDRESSES[place](tmp_path), new_name()
    given: dict[str, Any] = {"arms": [f"arm {k}" for k in range(40)], "horizon": 5000, "seed": 2}
    given["now"] = lambda: 1e9
    twin = policy.live(**given)
    live = policy.live(**given, store=store, name=name)
    for _ in range(4):
        play(live, 60)
        play(twin, 60)
        leave(live) if place == "sqlite" else live.close()
        live = ma.load(store, name=name, now=given["now"])
        assert known(live) == known(twin)
    live.close()


def test_the_same_script_begins_and_continues(tmp_path: Path) -> None:
    for pulls in (0, 10, 20):
        with begun(tmp_path) as live:
            assert live.pulls == pulls
            in_turn(live, 10)
    with ma.load(tmp_path / "shop.db") as live:
        assert live.pulls == 30
        assert "experiment 'shop'" in repr(live)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": ma.Prospector()}, "policy is 'moss' in the store, and 'prospector' was given"),
        ({"horizon": 9}, "horizon is 500 in the store, and 9 was given"),
        ({"seed": 2}, "seed is 1 in the store, and 2 was given"),
        ({"reward_range": (0, 2)}, r"\(0.0, 1.0\) in the store, and \(0.0, 2.0\) was given"),
        ({"control": "now", "window": 60}, "None in the store, and 'now' was given; window is"),
        ({"arms": ["red", "black"]}, "'blue' in the store, and 'black' was given; change arms"),
        ({"arms": NAMES[:2]}, "there are 3 arms in the store, and 2 were given"),
        ({"arms": None, "n_arms": 3}, r"arms have names in the store, and n_arms=3 was given"),
    ],
)
def test_different_settings_are_refused_and_named(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    begun(tmp_path).close()
    with pytest.raises(ma.ParameterError, match=said):
        begun(tmp_path, **given)
    begun(tmp_path, seed=None).close()  # any seed fits
    begun(tmp_path).close()


def test_numbered_arms_may_have_grown(tmp_path: Path) -> None:
    given: dict[str, Any] = {"arms": None, "n_arms": 3}
    with begun(tmp_path, **given) as live:
        live.add_arms(2)
    with begun(tmp_path, **given) as live:
        assert live.n_arms == 5
    with begun(tmp_path, name="names") as live:
        live.add_arms(["black"])
    for arms in (NAMES, [*NAMES, "black"]):
        with begun(tmp_path, name="names", arms=arms) as live:
            assert live.n_arms == 4
    with pytest.raises(ma.ParameterError, match="n_arms is 3 in the store, and 4 was given"):
        begun(tmp_path, **given | {"n_arms": 4})


def test_the_name_may_be_left_out_if_there_is_one_experiment(tmp_path: Path) -> None:
    begun(tmp_path).close()
    ma.load(tmp_path / "shop.db").close()
    begun(tmp_path, name=None).close()
    with pytest.raises(ma.ParameterError, match="has 2 experiments: 'experiment', 'shop'"):
        ma.load(tmp_path / "shop.db")
    with pytest.raises(ma.ParameterError, match="has no experiment 'x'. It has: 'experiment'"):
        ma.load(tmp_path / "shop.db", name="x")
    with pytest.raises(ma.PathNotFoundError, match="There is no store"):
        ma.load(tmp_path / "none.db")
    with pytest.raises(ma.ParameterError, match="`name` needs `store`"):
        ma.MOSS().live(n_arms=3, horizon=9, name="shop")


@pytest.mark.parametrize("name", ["a/b", "ü ?&=", "x" * 200, "'; DROP TABLE events"])
def test_odd_names_of_experiments(name: str, tmp_path: Path) -> None:
    with begun(tmp_path, name=name) as live:
        live.ask()
    with ma.load(tmp_path / "shop.db", name=name) as live:
        assert live.pulls == 1
    for wrong in ("", "a\0b", "x" * 201, "half \ud83c"):
        with pytest.raises(ma.ParameterError, match="The name of an experiment must be"):
            begun(tmp_path, name=wrong)


def test_long_names_of_arms(tmp_path: Path) -> None:
    long = "prompt " * 2000
    with begun(tmp_path, arms=["short", long]) as live:
        live.observe(long, 1.0)
    with ma.load(tmp_path / "shop.db") as live:
        assert live.recommend().arm == long
    for wrong in ("x" * (LONGEST_ARM_NAME + 1), "", "a\0b"):
        for store in (None, tmp_path / "other.db"):
            with pytest.raises(ma.ParameterError, match="The name of an arm must be"):
                ma.MOSS().live(arms=["a", wrong], horizon=9, store=store)


def test_integers_as_names(tmp_path: Path) -> None:
    with begun(tmp_path, arms=[70, 10**30]) as live:
        live.observe(10**30, 1.0)
        live.add_arms([-5])
    with ma.load(tmp_path / "shop.db") as live:
        assert live.recommend().arm == 10**30
        live.observe(-5, 0.0)


def test_every_pull_that_ask_returns_is_recorded(tmp_path: Path) -> None:
    with begun(tmp_path) as live:
        pulls = [live.ask(), *live.ask(5)]
        with open_store(tmp_path / "shop.db", read_only=True) as store:
            record = store.find("shop")
            assert record is not None
            events = list(store.events(record.id))
        assert [(event.kind, event.pull) for event in events] == [("asked", p.id) for p in pulls]
        assert [live.arm_name(event.arm or 0) for event in live.events()] == [p.arm for p in pulls]
        assert [event.seq for event in live.events(after=4)] == [5, 6]
        assert list(live.events(after=6)) == list(live.events(after=7)) == []
    with pytest.raises(ma.TurnError, match="not recorded, or it was closed"):
        live.events()


def test_a_second_writer_is_refused_and_overwrites_nothing(tmp_path: Path) -> None:
    one, two = begun(tmp_path), begun(tmp_path)
    pull = one.ask()
    with pytest.raises(WriteConflictError, match="is writing|other events"):
        two.ask()
    with pytest.raises(ma.StoreError, match="Open it again with load"):
        two.ask()
    assert two.progress().pulls == 1  # this pull may not be recorded
    one.tell(pull, 1.0)
    two.close()
    one.close()
    with begun(tmp_path) as live:
        assert live.progress().told == 1


def test_two_processes_begin_one_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = opening._begin

    def slower(*given: Any) -> Any:
        monkeypatch.setattr(opening, "_begin", real)
        begun(tmp_path).close()  # another process is faster
        return real(*given)

    monkeypatch.setattr(opening, "_begin", slower)
    with begun(tmp_path) as live:
        in_turn(live, 3)
    monkeypatch.setattr(opening, "_begin", slower)
    with pytest.raises(ma.ParameterError, match="horizon is 500 in the store"):
        begun(tmp_path, horizon=9, name="shop")


_KILLED = """
import sys
import manyarms as ma
live = ma.MOSS().live(n_arms=50, horizon=10**6, seed=1, store=sys.argv[1], durable=sys.argv[2])
while True:
    pull = live.ask()
    print(f"asked {pull.id} {pull.arm}", flush=True)
    live.tell(pull, float(pull.arm % 2))
    print(f"told {pull.id}", flush=True)
"""


@pytest.mark.patient
@pytest.mark.parametrize("durable", ["process", "power"])
def test_a_kill_loses_no_acknowledged_call(durable: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    for lines in (1, 50, 300):
        child = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(path), durable], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        said = [child.stdout.readline().split() for _ in range(lines)]
        os.kill(child.pid, signal.SIGKILL)
        said += [line.split() for line in child.stdout.read().splitlines()]
        child.stdout.close()
        child.wait()
        with ma.load(path) as live:
            pending = {pull.id for pull in live.pending}
            for what, number, *arm in (line for line in said if len(line) > 1):
                assert int(number) < live.pulls
                if arm and int(number) in pending:
                    assert live._experiment.ledger.pending[int(number)].arm == int(arm[0])
                if what == "told":
                    assert int(number) not in pending
            for pull in live.pending:
                live.tell(pull, 0.0)


# Snapshots


def snapshots_of(path: Path) -> list[int]:
    with open_store(path) as store:
        return [found.seq for found in store.snapshots(store.experiments()[0].id)]


def test_snapshots_are_stored_after_a_number_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 10)
    live = begun(tmp_path, arms=None, n_arms=50)
    in_turn(live, 40)
    leave(live)
    first = snapshots_of(tmp_path / "shop.db")
    assert len(first) == 2
    with ma.load(tmp_path / "shop.db") as live:
        live.ask()
    assert snapshots_of(tmp_path / "shop.db")[0] == 81  # at closing


def test_a_snapshot_that_fails_does_not_close_the_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 5)

    def failing(experiment: Any) -> bytes:
        raise OSError(28, "No space left on device")

    with begun(tmp_path) as live:
        with monkeypatch.context() as patch:
            patch.setattr(recorder, "snapshot", failing)
            in_turn(live, 20)
        assert "No snapshot of" in caplog.text
        in_turn(live, 5)
    assert snapshots_of(tmp_path / "shop.db")
    with ma.load(tmp_path / "shop.db") as live:
        assert live.pulls == 25


@pytest.mark.parametrize("change", ["version = 'other'", "data = x'00', checksum = 3523407757"])
def test_an_unusable_snapshot_is_skipped(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older snapshot is tried, and then the whole log."""
    live = begun(tmp_path)
    in_turn(live, 10)
    live.close()
    with begun(tmp_path) as live:
        in_turn(live, 10)
    path = tmp_path / "shop.db"
    newest, older = snapshots_of(path)
    for spoiled, expected in ((newest, older), (older, 0)):
        link = sqlite3.connect(path)
        link.execute(f"UPDATE snapshots SET {change} WHERE seq = {spoiled}")
        link.commit()
        link.close()
        began: list[int] = []
        real = replaying.replay

        def watched(
            experiment: Any, *given: Any, began: Any = began, real: Any = real, **named: Any
        ) -> None:
            began.append(experiment.seq)
            real(experiment, *given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(opening, "replay", watched)
            handle = ma.load(path)
        assert (began[-1], handle.pulls) == (expected, 20)
        leave(handle)


# Failures


def test_a_failed_commit_stops_only_the_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begun(tmp_path)
    pull = live.ask()
    recording = live._recorder.recording
    assert recording is not None

    def full(appends: Any) -> None:
        raise ma.StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(recording.store, "commit", full)
        with pytest.raises(ma.StoreError, match="The disk is full. Open it again with load"):
            live.tell(pull, 1.0)
    for call in (live.ask, lambda: live.retire("red")):
        with pytest.raises(ma.StoreError, match="was not written: The disk is full"):
            call()
    assert live.progress().pulls == 1
    live.close()
    with ma.load(tmp_path / "shop.db") as again:
        assert again.pending == [pull]
        again.tell(pull, 1.0, again="ignore")


def test_a_season_is_recorded(tmp_path: Path) -> None:
    live = begun(tmp_path)
    in_turn(live, 20)
    late = live.ask()
    live.season(policy=ma.Prospector())
    in_turn(live, 5)
    live.season(policy=ma.MOSS(), horizon=50)
    in_turn(live, 5)
    expected = copied(live)
    leave(live)
    with ma.load(tmp_path / "shop.db") as live:
        assert known(live) == known(expected)
        assert (live.policy, live.pulls, live.horizon) == (ma.MOSS(), 31, 76)
        assert live.pending == [late]
        live.tell(late, 1.0)
    with pytest.raises(ma.ParameterError, match="other settings: horizon is 500 in the store"):
        begun(tmp_path, horizon=50)


def test_a_copy_continues_like_the_original(tmp_path: Path) -> None:
    """From SQLite to PostgreSQL and back, with a pull that is pending since the beginning."""
    places = [f"{tmp_path}/first.db", ADDRESSES["postgres"](tmp_path), f"{tmp_path}/back.db"]
    name, arms = new_name(), [f"arm {k}" for k in range(30)]
    given: Any = {"control": "today", "share": 0.3, "seed": 4, "now": lambda: 1e9}
    with ma.Prospector().live(arms=arms, store=places[0], name=name, **given) as live:
        late = live.ask(40)
        in_turn(live, 60)
        live.retire(["arm 3", "arm 7"])
        live.observe("arm 9", [1.0, 0.0])
        live.season(policy=ma.MOSS(), horizon=300)
        late += live.ask(10)
        in_turn(live, 60)
        live.restore("arm 3")
        live.season(policy=ma.EmpMOSSPlusPlus(), horizon=400)
        late += live.ask(10)
        state = known(live)
    for source, target in pairwise(places):
        with open_store(source) as old, open_store(target) as new_one:
            assert copy(old, new_one, [name]) == [name]
    ends = []
    for place in places:
        with ma.load(place, name=name, now=lambda: 1e9) as live:
            assert known(live) == state
            asked = live.ask(50)
            live.tell_many([(pull, float(pull.id % 3 == 0)) for pull in [*late, *asked[::2]]])
            asked += live.ask(100)
            ends.append((asked, live.pending, live.verdict(), known(live)))
            assert {"today", "arm 3"} & {pull.arm for pull in asked}
    assert ends[0] == ends[1] == ends[2]


def test_save_and_load(tmp_path: Path) -> None:
    live = new(ma.EmpMOSSPlusPlus())
    play(live, 100)
    path = tmp_path / "saved.db"
    for _ in range(2):  # an existing file is replaced
        live.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["saved.db"]
    with ma.load(path) as again:
        assert known(again) == known(live)
        assert list(again.events()) == []
        play(again, 50)
        before = known(again)
        for saving in (again, live):
            with pytest.raises(ma.ParameterError, match="has it open, close it there"):
                saving.save(path)
        play(again, 10)
    with ma.load(path) as more:
        assert more.pending == again.pending
    assert known(again) != before


@pytest.mark.parametrize("lost", [(), ("saved.db",), ("saved.db-shm",)], ids=str)
def test_a_file_that_a_killed_process_had_open_can_be_replaced(
    lost: tuple[str, ...], tmp_path: Path
) -> None:
    """The write-ahead log must not be applied to the new file."""
    live = new(ma.EmpMOSSPlusPlus())
    play(live, 100)
    live.save(tmp_path / "first.db")
    killed = tmp_path / "killed"
    killed.mkdir()
    with ma.load(tmp_path / "first.db") as other:
        play(other, 50)
        for ending in ("", "-wal", "-shm"):  # as after a kill
            shutil.copy(tmp_path / f"first.db{ending}", killed / f"saved.db{ending}")
    for name in lost:
        (killed / name).unlink()
    play(live, 10)
    live.save(killed / "saved.db")
    assert [file.name for file in killed.iterdir()] == ["saved.db"]
    with ma.load(killed / "saved.db") as again:
        assert known(again) == known(live)
