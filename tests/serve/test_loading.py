"""Experiments are loaded when they are needed, from snapshots if possible."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import recorder
from manyarms.live.opening import replayed
from manyarms.serve import clock, experiment, loading, snapshots
from manyarms.store import EventStore
from tests.serve.machines import TOKEN, call, in_thread, new_name, opened, path_of, row_of, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


@pytest.mark.parametrize("share", [None, 0.5])
def test_windows_end_after_a_restart(
    store: str, share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for the control's pulls, and without requests to the experiment."""
    name = new_name()
    spec: dict[str, Any] = {"n_arms": 9, "window": 3600, "seed": 1}
    if share is not None:
        spec |= {"control": "today", "share": share}
    with in_thread(store) as one:
        assert call(one.port, "PUT", path_of(name), spec)[0] == 201
        assert call(one.port, "POST", f"{path_of(name)}/asks", {"k": 20})[0] == 200
    passed = clock._passed
    monkeypatch.setattr(clock, "_passed", lambda: passed() + 3600)
    with in_thread(store), opened(store) as other:
        number = row_of(other, name).id
        wait(lambda: other.last_seq(number) == 40)
        ended = [event.arm for event in other.events(number) if event.kind == "expired"]
        assert (-1 in ended) == (share is not None)


def test_many_windows_that_end_together_end_in_batches(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "_MOST_EXPIRED", 20)
    commit, pieces = EventStore.commit, list[int]()

    def counted(self: EventStore, appends: Any) -> None:
        pieces.extend(sum(e.kind == "expired" for e in append.events) for append in appends)
        commit(self, appends)

    monkeypatch.setattr(EventStore, "commit", counted)
    path = path_of(new_name())
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9, "window": 0.1})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {"k": 50})[0] == 200
        wait(lambda: call(one.port, "GET", path)[1]["abandoned"] == 50)
    assert sum(pieces) == 50
    assert max(pieces) <= 20


def test_loading_one_experiment_does_not_delay_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, load = threading.Event(), loading.read

    def slowly(store: Any, name: str) -> Any:
        assert name != "slow" or go.wait(60)
        return load(store, name)

    monkeypatch.setattr(loading, "read", slowly)
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call, one.port, "PUT", path_of("slow"), {"n_arms": 9}, timeout=60)
        try:
            assert call(one.port, "PUT", path_of("quick"), {"n_arms": 9})[0] == 201
            assert call(one.port, "POST", f"{path_of('quick')}/asks", {})[0] == 200
            assert not waiting.done()
        finally:
            go.set()
        assert waiting.result()[0] == 201


@pytest.mark.parametrize("damage", ["arm", "spec"])
def test_an_experiment_that_cannot_be_replayed_is_not_continued(store: str, damage: str) -> None:
    name = new_name()
    with in_thread(store) as one:
        call(one.port, "PUT", path_of(name), {"policy": "moss", "n_arms": 9, "horizon": 99})
        assert call(one.port, "POST", f"{path_of(name)}/asks", {"k": 3})[0] == 200
    with opened(store) as other, other.writing() as link:
        number = row_of(other, name).id
        if damage == "arm":
            changed = "UPDATE events SET arm = 8 - arm, reward = 1 "
            link.run(f"{changed} WHERE experiment = ? AND seq = 2", number)
        else:
            link.run("UPDATE experiments SET spec = '{}' WHERE id = ?", number)
    with in_thread(store) as one:
        status, answer = call(one.port, "POST", f"{path_of(name)}/asks", {})
        assert (status, answer["code"]) == (503, "replay")
        with ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN) as remote:
            assert remote.ask(timeout=60, retry_for=60, fallback="current").is_fallback
            with pytest.raises(ma.ServiceError):
                remote.ask()
        assert call(one.port, "GET", path_of(name))[0] == 503
        found = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        (alarm,) = [x["alarm"] for x in found if x["name"] == name]
        assert alarm
        # it cannot be stopped, but may be deleted
        assert call(one.port, "DELETE", path_of(name))[0] == 200
        assert call(one.port, "POST", f"{path_of(name)}/asks", {})[0] == 404


def test_another_process_writes_snapshots(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 500)
    for module in ("manyarms", "numpy", "sqlite3", "signal"):  # it must not import these
        (tmp_path / f"{module}.py").write_text("raise SystemExit('imported from the folder')\n")
    monkeypatch.chdir(tmp_path)
    name = new_name()
    live = ma.Prospector().live(n_arms=300, seed=1)
    with in_thread(store) as one, opened(store) as other:
        assert call(one.port, "PUT", path_of(name), {"n_arms": 300, "seed": 1})[0] == 201
        number = row_of(other, name).id
        for turn in range(1, 3):
            pulls = call(one.port, "POST", f"{path_of(name)}/asks", {"k": 600})[1]["pulls"]
            assert [pull["arm"] for pull in pulls] == [pull.arm for pull in live.ask(600)]
            wait(lambda: any(one.seq >= 500 * turn for one in other.snapshots(number)))  # noqa: B023
        assert replayed(other, name) == ""
    with in_thread(store) as one:
        pulls = call(one.port, "POST", f"{path_of(name)}/asks", {"k": 9})[1]["pulls"]
        assert [pull["arm"] for pull in pulls] == [pull.arm for pull in live.ask(9)]


def test_a_failed_snapshot_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 20)
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:

        def failed() -> int:
            said = [record.getMessage() for record in caplog.records]
            return sum(text.startswith("No snapshot of x") for text in said)

        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        for turn, wrong in enumerate(("/nowhere/python", sys.executable), 1):
            monkeypatch.setattr(sys, "executable", wrong)
            monkeypatch.setattr(snapshots, "_STORE", "ANOTHER_NAME")  # the process finds no store
            assert call(one.port, "POST", f"{path_of('x')}/asks", {"k": 30})[0] == 200
            wait(lambda: failed() == turn)  # noqa: B023
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200
        assert failed() == 2
    assert one.failure is None


def test_names_that_are_not_in_memory_are_found_in_the_store(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "MOST_KEYS", 3)
    monkeypatch.setattr(loading, "MOST_KEYS", 3)
    path = path_of(new_name())
    for turn in range(2):
        with in_thread(store) as one:
            if turn == 0:
                assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
            given = [
                call(one.port, "POST", f"{path}/asks", {"k": 2}, Idempotency_Key=f"k{k}")[1]
                for k in range(8)
            ]
            assert [one["pulls"][0]["pull"] for one in given] == list(range(0, 16, 2))
            status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k0")
            assert (status, answer["code"]) == (422, "key_reused")


def test_a_service_that_ends_kills_its_snapshot_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 20)
    begun, slow = tmp_path / "begun", tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 600\n")
    slow.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(slow))
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path_of('x')}/asks", {"k": 30})[0] == 200
        wait(begun.exists)
    assert [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize("change", ["spec = '{'", "state = CAST(x'ff' AS TEXT)"])
def test_a_damaged_experiment_stops_no_other(tmp_path: Path, change: str) -> None:
    """Its windows, the list and the pages go on; the damaged experiment can be deleted."""
    store, spec = f"sqlite:///{tmp_path}/x.db", {"n_arms": 9, "window": 3600, "missing": 0}
    with in_thread(store) as one:
        for name in ("a", "b", "c"):
            assert call(one.port, "PUT", path_of(name), spec)[0] == 201
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as link, link:
        link.execute(f"UPDATE experiments SET {change} WHERE name = 'b'")
    with in_thread(store) as one:
        wait(lambda: b"manyarms_loaded 2.0" in call(one.port, "GET", "/metrics")[1])  # windows
        listed = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        alarms = {row["name"]: row["alarm"] for row in listed}
        assert (alarms["a"], alarms["c"]) == ("", "")
        assert "damaged" in alarms["b"]
        page = call(one.port, "GET", "/")[1].decode()
        assert all(f"/experiments/{name}" in page for name in "abc")
        for method, path, body in (
            ("POST", f"{path_of('b')}/asks", {}),
            ("PUT", path_of("b"), spec),
            ("GET", path_of("b"), None),
        ):
            status, answer = call(one.port, method, path, body)
            assert (status, answer["code"]) == (503, "replay"), answer
            assert "damaged" in answer["message"]
        assert call(one.port, "POST", f"{path_of('a')}/asks", {})[0] == 200  # it still leads
        assert call(one.port, "DELETE", path_of("b"))[0] == 200
        assert call(one.port, "PUT", path_of("b"), spec)[0] == 201
        assert b"manyarms_terms_total 1.0" in call(one.port, "GET", "/metrics")[1]
