"""Experiments are loaded when somebody needs them, and unloaded when nobody does; snapshots."""

from __future__ import annotations

import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.game import Game

import manyarms as ma
from manyarms.serve import forked as forked_module
from manyarms.serve import leader as module
from manyarms.serve import snapshots
from tests.serve.machines import TOKEN, call, in_thread, new_name, opened, path_of, row_of, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def test_experiments_that_nobody_uses_are_unloaded(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE", 0.3)
    monkeypatch.setattr(module, "BEAT", 0.1)
    names = sorted(new_name() for _ in range(3))
    with in_thread(store) as one:
        for name in names:
            assert call(one.port, "PUT", path_of(name), {"n_arms": 99, "seed": 1})[0] == 201
            pulls = call(one.port, "POST", f"{path_of(name)}/asks", {"k": 3})[1]["pulls"]
            tells = [{"pull": p["pull"], "reward": 1.0} for p in pulls[:2]]
            assert call(one.port, "POST", f"{path_of(name)}/tells", {"tells": tells})[0] == 200
        before = call(one.port, "GET", path_of(names[0]))[1]
        wait(lambda: b"manyarms_loaded 0.0" in call(one.port, "GET", "/metrics")[1])
        with opened(store) as database:
            saved = database.snapshot(row_of(database, names[0]).id)
            assert saved is not None
            assert saved[0] == 5
        # the list shows them all the same, and loads none
        listed = {x["name"]: x for x in call(one.port, "GET", "/v1/experiments")[1]["experiments"]}
        shown = listed[names[0]]
        assert {k: v for k, v in shown.items() if k != "last_hour"} == {
            k: v for k, v in before.items() if k != "last_hour"
        }
        assert b"manyarms_loaded 0.0" in call(one.port, "GET", "/metrics")[1]
        assert call(one.port, "POST", f"{path_of(names[0])}/asks", {})[1]["pulls"][0]["pull"] == 3


def test_the_list_catches_up_with_what_a_killed_process_left(store: str) -> None:
    name = new_name()
    with in_thread(store) as one:
        assert call(one.port, "PUT", path_of(name), {"n_arms": 99, "seed": 1})[0] == 201
        (pull,) = call(one.port, "POST", f"{path_of(name)}/asks", {})[1]["pulls"]
        tell = {"tells": [{"pull": pull["pull"], "reward": 1.0}]}
        assert call(one.port, "POST", f"{path_of(name)}/tells", tell)[0] == 200
    with opened(store) as database:
        x = row_of(database, name).id
        for table in ("snapshots", "summaries"):
            database.run(f"DELETE FROM {table} WHERE experiment = :x", x=x)
    with in_thread(store) as one:

        def listed() -> Any:
            found = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
            return next(x for x in found if x["name"] == name)

        first = listed()
        assert (first["pulls"], first["told"], first["reward"]) == (1, 1, 1.0)
        wait(lambda: listed()["recommended"] is not None)


def test_a_window_is_watched_after_a_restart(store: str) -> None:
    name = new_name()
    with in_thread(store) as one:
        spec = {"n_arms": 9, "window": 1.0}
        assert call(one.port, "PUT", path_of(name), spec)[0] == 201
        assert call(one.port, "POST", f"{path_of(name)}/asks", {})[0] == 200
    with in_thread(store), opened(store) as database:
        wait(lambda: row_of(database, name).head == 2)  # nobody has asked for it


def test_loading_one_does_not_hold_up_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    load = Game.load.__func__  # type: ignore[attr-defined]

    def slowly(cls: Any, database: Any, row: Any) -> Any:
        if row.name == "slow":
            go.wait(20)
        return load(cls, database, row)

    monkeypatch.setattr(Game, "load", classmethod(slowly))
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call, one.port, "PUT", path_of("slow"), {"n_arms": 9})
        try:
            assert call(one.port, "PUT", path_of("quick"), {"n_arms": 9})[0] == 201
            assert call(one.port, "POST", f"{path_of('quick')}/asks", {})[0] == 200
            assert not waiting.done()
        finally:
            go.set()
        assert waiting.result()[0] == 201


@pytest.mark.parametrize("damage", ["arm", "spec"])
def test_a_log_that_cannot_be_played_is_not_played_on(store: str, damage: str) -> None:
    name = new_name()
    with in_thread(store) as one:
        call(one.port, "PUT", path_of(name), {"policy": "moss", "n_arms": 9, "horizon": 99})
        given = call(one.port, "POST", f"{path_of(name)}/asks", {"k": 3})[1]["pulls"]
    with opened(store) as database:
        x = row_of(database, name).id
        database.run("DELETE FROM snapshots WHERE experiment = :x", x=x)  # as after a kill
        if damage == "arm":
            database.run(
                "UPDATE events SET arm = (arm + 1) % 9 WHERE experiment = :x AND seq = 2", x=x
            )
        else:
            database.run(
                "UPDATE experiments SET spec = :s WHERE id = :x", s='{"policy":"unheard-of"}', x=x
            )
    with in_thread(store) as one:
        status, answer = call(one.port, "POST", f"{path_of(name)}/asks", {})
        assert (status, answer["code"]) == (503, "replay")
        with ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN) as remote:
            assert remote.ask(timeout=20, retry_for=20, fallback="current").is_fallback
            with pytest.raises(ma.ServiceError):
                remote.ask()
        if damage == "arm":
            was, now = (given[1]["arm"] + 1) % 9, given[1]["arm"]
            assert f"pull 1 was of arm {was}, and moss now chooses arm {now}" in answer["message"]
            assert f"start manyarms {ma.__version__} again" in answer["message"]
        assert call(one.port, "GET", path_of(name))[0] == 503
        found = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        alarms = [x["alarm"] for x in found if x["name"] == name]
        assert alarms == [answer["message"]]
        # nobody can stop it: it may be deleted all the same
        assert call(one.port, "DELETE", path_of(name))[0] == 200
        assert call(one.port, "POST", f"{path_of(name)}/asks", {})[0] == 404


# Snapshots


def test_a_snapshot_is_made_by_a_copy_of_the_process(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "EVENTS", 500)
    monkeypatch.setattr(snapshots, "_SMALL", 10)
    made: list[int] = []
    forked = forked_module.forked

    async def noted(work: Any) -> bytes:
        data = await forked(work)
        made.append(os.getpid())
        return data

    monkeypatch.setattr(snapshots, "forked", noted)
    name = new_name()
    with in_thread(store) as one, opened(store) as database:
        assert call(one.port, "PUT", path_of(name), {"n_arms": 300, "seed": 1})[0] == 201
        x = row_of(database, name).id
        for turn in range(1, 4):
            for _ in range(2):
                assert call(one.port, "POST", f"{path_of(name)}/asks", {"k": 300})[0] == 200
            wait(functools.partial(_has, made, turn))
        assert call(one.port, "POST", f"{path_of(name)}/pause")[0] == 200
        wait(lambda: (database.snapshot(x) or (0,))[0] == 1800)
        whole = Game(row_of(database, name))
        whole.begin(300)
        whole.follow(database, 1800)
        assert whole.snapshot() == Game.load(database, row_of(database, name)).snapshot()


def _has(made: list[int], count: int) -> bool:
    return len(made) == count


@pytest.mark.parametrize("small", [1, 1000])
def test_a_snapshot_that_failed_is_not_tried_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, small: int
) -> None:
    monkeypatch.setattr(snapshots, "EVENTS", 20)
    monkeypatch.setattr(snapshots, "_SMALL", small)

    def fails(game: Game) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Game, "snapshot", fails)
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with in_thread(url) as one:

        def failed() -> list[str]:
            said = [record.getMessage() for record in caplog.records]
            return [text for text in said if text.startswith("no snapshot of x")]

        def unsaved(count: int) -> bool:
            said: bytes = call(one.port, "GET", "/metrics")[1]
            return f"manyarms_unsaved_events {count}.0".encode() in said

        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path_of('x')}/asks", {"k": 30})[0] == 200
        wait(failed)
        assert "ZeroDivisionError" in failed()[0]
        for k in range(9):
            assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200
            wait(functools.partial(unsaved, 31 + k))  # none is being made
        assert len(failed()) == 1
        assert call(one.port, "POST", f"{path_of('x')}/asks", {"k": 20})[0] == 200
        wait(lambda: len(failed()) == 2)
    assert one.failure is None


def test_a_copy_that_fails_hurts_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_SMALL", 1)

    def fails(*parts: bytes) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(snapshots, "_packed", fails)
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 50})[0] == 201
        assert call(one.port, "POST", f"{path_of('x')}/asks", {"k": 9})[0] == 200
        assert call(one.port, "POST", f"{path_of('x')}/pause")[0] == 200
        assert call(one.port, "POST", f"{path_of('x')}/resume")[0] == 200
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200
