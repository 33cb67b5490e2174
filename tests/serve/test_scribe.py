"""The second process: follows logs, makes snapshots, computes views, says what is wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.scribe import Scribe, ScribeLink

from manyarms.live.databases import Database
from manyarms.serve import scribe as module
from manyarms.serve import service
from manyarms.serve.game import Game
from manyarms.serve.replica import Replica
from manyarms.serve.views import in_flight, summary
from tests.serve.machines import InThread, call, in_thread, opened, row_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]
PATH = "/v1/experiments/x"


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scribe of the node is a process, as it is for users."""
    monkeypatch.setattr(service, "ScribeLink", ScribeLink)
    monkeypatch.setattr(service, "_LOOK", 0.1)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/serve.db?sync=never") as one:
        spec = {"policy": "moss", "n_arms": 40, "horizon": 5000}
        assert call(one.port, "PUT", PATH, spec)[0] == 201
        yield one


@pytest.fixture
def database(served: InThread) -> Iterator[Database]:
    with opened(served.store) as one:
        yield one


def play(served: InThread, k: int, reward: float | None = 1.0) -> None:
    pulls = call(served.port, "POST", f"{PATH}/asks", {"k": k})[1]["pulls"]
    if reward is not None:
        tells = [{"pull": p["pull"], "reward": reward} for p in pulls]
        assert call(served.port, "POST", f"{PATH}/tells", {"tells": tells})[0] == 200


def owner(database: Database) -> str:
    row = row_of(database, "x")
    return row.owner


@pytest.mark.usefixtures("process")
def test_snapshots_make_the_tail_short(
    served: InThread, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVENTS", 50)
    play(served, 30)
    scribe = Scribe(database, owner(database))
    scribe.tick()
    row = row_of(database, "x")
    saved = database.snapshot(row.id)
    assert saved is not None
    assert (saved[0], row.head) == (60, 60)
    for _ in range(3):
        play(served, 30, reward=None)
        time.sleep(0.02)  # a snapshot waits until ten times what the last one took
        scribe.tick()
    row = row_of(database, "x")
    heads = database.run("SELECT seq FROM snapshots WHERE experiment = :x ORDER BY seq", x=row.id)
    assert 1 <= len(heads) <= 2  # the last two
    assert scribe.status()["x"]["head"] == 150
    loaded, whole = Game.load(database, row), Game(row)
    whole.begin(row.first_arms)
    whole.happen(list(database.events(row.id, 0)))
    assert loaded.snapshot() == whole.snapshot()
    assert Scribe(database, "somebody else").status() == {}


def test_answers(served: InThread, database: Database) -> None:
    play(served, 5)
    scribe = Scribe(database, "nobody")
    ask: dict[str, Any] = {"view": "leaders", "experiment": "x", "with": {"k": 3}}
    assert len(scribe.answer(ask)["ok"].arms) == 3
    assert scribe.answer(ask | {"experiment": "y"})["error"] == "unknown"
    assert scribe.answer(ask | {"view": "arms", "with": {"cursor": "no"}})["error"] == "invalid"
    assert scribe.answer({"view": "status"})["ok"]["x"]["head"] == 10
    # what is wrong with us is no mistake of whoever asks
    assert scribe.answer(ask | {"with": {"k": "three"}})["error"] == "unavailable"
    assert scribe.answer(ask | {"view": "no such view"})["error"] == "unavailable"


@pytest.mark.usefixtures("process")
def test_snapshots_of_an_experiment_whose_name_was_used_before(
    served: InThread, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVENTS", 50)
    scribe: Scribe | None = None
    for k in (90, 60):
        play(served, k)
        scribe = scribe or Scribe(database, owner(database))
        scribe.tick()
        row = row_of(database, "x")
        saved = database.snapshot(row.id)
        assert saved is not None
        assert saved[0] == 2 * k
        assert call(served.port, "POST", f"{PATH}/stop")[0] == 200
        assert call(served.port, "DELETE", PATH)[0] == 200
        assert (
            call(served.port, "PUT", PATH, {"policy": "moss", "n_arms": 40, "horizon": 999})[0]
            == 201
        )


def test_an_experiment_that_was_made_anew(served: InThread, database: Database) -> None:
    play(served, 5)
    scribe = Scribe(database, "nobody")
    ask: dict[str, Any] = {"view": "summary", "experiment": "x", "with": {}}
    assert scribe.answer(ask)["ok"].pulls == 5
    assert call(served.port, "POST", f"{PATH}/stop")[0] == 200
    assert call(served.port, "DELETE", PATH)[0] == 200
    assert scribe.answer(ask)["error"] == "unknown"
    assert call(served.port, "PUT", PATH, {"n_arms": 7})[0] == 201
    assert scribe.answer(ask)["ok"].n_arms == 7


@pytest.mark.usefixtures("process")
def test_a_log_that_differs_raises_an_alarm(served: InThread, database: Database) -> None:
    play(served, 5)
    replica = Replica(database, "x")
    play(served, 5)
    database.run("UPDATE events SET arm = (arm + 1) % 40 WHERE kind = 1 AND pull = 7")
    assert not replica.alarm
    replica.follow()
    assert "cannot be played again" in summary(replica).alarm
    assert replica.game.head == 10
    end = time.monotonic() + 20  # the node hears of it, and serves no longer from a wrong state
    while time.monotonic() < end:
        status, answer = call(served.port, "POST", f"{PATH}/asks", {})
        if status == 503:
            break
        time.sleep(0.1)
    assert answer["code"] == "replay"
    # nobody can stop it any more: it may be deleted all the same, and its name is free
    assert call(served.port, "POST", f"{PATH}/stop")[1]["code"] == "replay"
    assert call(served.port, "DELETE", PATH)[0] == 200
    assert call(served.port, "PUT", PATH, {"n_arms": 3})[0] == 201
    assert call(served.port, "POST", f"{PATH}/asks", {})[0] == 200


def test_an_alarm_if_rewards_differ_by_delay(served: InThread, database: Database) -> None:
    replica = Replica(database, "x")
    play(served, 200)
    replica.follow()
    assert in_flight(replica).alarm == ""
    for delay, reward in ((0.5, 1.0), (30.0, 0.0)):  # early rewards are the good ones
        for k in range(60):
            replica.game._delayed(delay, reward if k % 5 else 1 - reward)
    assert "differs by delay" in in_flight(replica).alarm


@pytest.mark.usefixtures("process")
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_a_scribe_that_dies_is_started_again(served: InThread) -> None:
    play(served, 5)
    assert call(served.port, "GET", PATH)[1]["pulls"] == 5
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
            if parent == os.getpid() and b"manyarms.serve.scribe" in words:
                os.kill(int(folder.name), signal.SIGKILL)
                killed += 1
    assert killed
    status = 0
    end = time.monotonic() + 20
    while status != 200 and time.monotonic() < end:
        status, answer = call(served.port, "GET", PATH)
        assert status in (200, 503)
    assert answer["pulls"] == 5
    play(served, 1)  # nothing else has noticed
