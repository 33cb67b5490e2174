"""Long and failing background work does not end the leader's term."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import pytest

from manyarms.errors import StoreUnavailableError
from manyarms.live.experiment import Experiment
from manyarms.serve import leader, loading
from manyarms.store import EventStore
from tests.serve.machines import InThread, call, in_thread, new_name, opened, path_of, row_of, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def terms(one: InThread) -> float:
    """Return how often a process became leader."""
    text = call(one.port, "GET", "/metrics", token=None)[1].decode()
    return float(text.partition("\nmanyarms_terms_total ")[2].split()[0])


@pytest.fixture
def wait_for_heartbeats(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that waits for three heartbeats."""
    beats, beat = list[None](), EventStore.beat

    def counted(self: EventStore) -> None:
        beat(self)
        beats.append(None)

    def goes_on() -> None:
        enough = len(beats) + 3
        wait(lambda: len(beats) >= enough)

    monkeypatch.setattr(EventStore, "beat", counted)
    monkeypatch.setattr(leader, "BEAT", 0.01)
    return goes_on


def test_heartbeats_continue_while_many_experiments_are_loaded(
    store: str, monkeypatch: pytest.MonkeyPatch, wait_for_heartbeats: Callable[[], None]
) -> None:
    names, go, load = [new_name() for _ in range(30)], threading.Event(), loading.read
    with opened(store) as other:
        for name in names:
            other.create(name, {})

    def slowly(store: Any, name: str) -> Any:
        assert go.wait(60)
        return load(store, name)

    monkeypatch.setattr(loading, "read", slowly)
    with in_thread(store) as one, ThreadPoolExecutor(30) as pool:
        try:
            asked = [pool.submit(call, one.port, "GET", path_of(name)) for name in names]
            assert call(one.port, "GET", "/v1/experiments")[0] == 200  # without waiting
            wait_for_heartbeats()
        finally:
            go.set()
        assert {each.result()[1]["code"] for each in asked} == {"replay"}
        assert {call(one.port, "DELETE", path_of(name))[0] for name in names} == {200}
        assert terms(one) == 1


def test_heartbeats_continue_while_the_event_loop_is_busy(
    store: str, monkeypatch: pytest.MonkeyPatch, wait_for_heartbeats: Callable[[], None]
) -> None:
    begin, path = Experiment.begin_season, path_of(new_name())

    def slowly(self: Experiment, *given: Any) -> None:
        wait_for_heartbeats()
        begin(self, *given)

    monkeypatch.setattr(Experiment, "begin_season", slowly)
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/season", {})[1]["season"] == 2
        assert terms(one) == 1


def test_a_failed_deletion_of_rows_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: EventStore, *given: Any) -> bool:
        raise StoreUnavailableError("busy")

    purge = EventStore.purge
    monkeypatch.setattr(EventStore, "prune_requests", fails)
    monkeypatch.setattr(EventStore, "purge", fails)
    url, path = f"sqlite:///{tmp_path}/x.db", path_of("x")
    with in_thread(url) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        caplog.clear()
        assert call(one.port, "DELETE", path_of("x"))[1]["code"] == "not_stopped"
        assert call(one.port, "POST", f"{path}/stop")[0] == 200
        assert call(one.port, "DELETE", path)[0] == 200
        wait(lambda: caplog.text.count("not be deleted; trying again later: busy") == 2)
        assert terms(one) == 1
        monkeypatch.setattr(EventStore, "purge", purge)
        assert call(one.port, "PUT", path, {})[0] == 201
        assert call(one.port, "DELETE", path)[0] == 200

        def left() -> int:
            with opened(url) as other, other.reading() as link:
                return int(link.first("SELECT count(*) FROM experiments")[0])

        wait(lambda: left() == 0)


def delayed(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> tuple[threading.Event, Callable[[Future[Any]], None]]:
    """Delay the next call of a store's method; return an event for its start, and its end.

    The call continues when a request is answered, or seems to wait for the call.
    """
    begun, go, whole = threading.Event(), threading.Event(), getattr(EventStore, method)

    def slowly(self: EventStore, *given: Any) -> Any:
        if not begun.is_set():
            begun.set()
            assert go.wait(60)
        return whole(self, *given)

    def end(request: Future[Any]) -> None:
        wait_for([request], timeout=0.5)
        go.set()

    monkeypatch.setattr(EventStore, method, slowly)
    return begun, end


def test_a_deletion_waits_for_a_running_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path_of("x")
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one, ThreadPoolExecutor(2) as pool:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        assert call(one.port, "POST", f"{path}/stop")[0] == 200
        begun, end = delayed(monkeypatch, "commit")
        body = {"tells": [{"pull": 0, "reward": 1}]}
        told = pool.submit(call, one.port, "POST", f"{path}/tells", body)
        assert begun.wait(60)
        deleted = pool.submit(call, one.port, "DELETE", path)
        end(deleted)
        assert (told.result()[0], deleted.result()[0]) == (200, 200)
        assert call(one.port, "GET", path)[0] == 404
        assert terms(one) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"), [("PATCH", "", {"epsilon": 0.1}), ("POST", "/pause", None)]
)
def test_an_acknowledged_stop_is_not_reverted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    """Requests that change the state of one experiment run one after the other."""
    url = f"sqlite:///{tmp_path}/x.db"
    with in_thread(url) as one, ThreadPoolExecutor(2) as pool:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        begun, end = delayed(monkeypatch, "set_state")
        first = pool.submit(call, one.port, method, f"{path_of('x')}{path}", body)
        assert begun.wait(60)
        stopped = pool.submit(call, one.port, "POST", f"{path_of('x')}/stop")
        end(stopped)
        assert (first.result()[0], stopped.result()[0]) == (200, 200)
        assert call(one.port, "POST", f"{path_of('x')}/resume")[1]["code"] == "stopped"
        with opened(url) as other:
            assert row_of(other, "x").state["state"] == "stopped"
