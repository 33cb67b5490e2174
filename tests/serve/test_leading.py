"""One process leads and others are standbys, on both kinds of database."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.errors import StoreUnavailableError
from manyarms.live.experiment import Experiment
from manyarms.serve import leader, server
from manyarms.store import EventStore, open_store
from tests.serve.machines import (
    TOKEN,
    InThread,
    call,
    check_postgres,
    in_thread,
    new_name,
    opened,
    path_of,
    wait,
)
from tests.serve.machines import (
    postgres as own_postgres,
)

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def test_a_standby_leads_after_the_leader_ends(store: str) -> None:
    path = path_of(new_name())
    live = ma.MOSSPlusPlus().live(n_arms=1000, horizon=10_000, seed=2)
    spec = {"policy": "moss++", "n_arms": 1000, "horizon": 10_000, "seed": 2}
    with in_thread(store) as first, in_thread(store) as second:
        assert call(first.port, "PUT", path, spec)[0] == 201
        asked: dict[str, Any] = {"Idempotency_Key": "k"}
        pulls = call(first.port, "POST", f"{path}/asks", {"k": 5}, **asked)[1]["pulls"]
        assert [one["arm"] for one in pulls] == [one.arm for one in live.ask(5)]
        status, answer = call(second.port, "GET", "/readyz", token=None)
        assert status == 503
        assert "leads, and this process stands by" in answer["reason"]
        assert call(second.port, "GET", "/healthz", token=None)[0] == 200
        status, answer = call(second.port, "POST", f"{path}/asks", {})
        assert (status, answer["code"]) == (503, "unavailable")  # nothing was changed
        html: dict[str, Any] = {"Accept": "text/html"}
        assert call(second.port, "GET", "/", **html)[0] == 503
        first.stop()
        second.wait_until_ready()
        again = call(second.port, "POST", f"{path}/asks", {"k": 5}, **asked)[1]["pulls"]
        assert again == pulls
        (pull,) = call(second.port, "POST", f"{path}/asks", {})[1]["pulls"]
        assert pull["arm"] == live.ask().arm


def test_a_leader_without_its_session_does_not_answer(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session was ended, so later changes are not acknowledged."""
    monkeypatch.setattr(leader, "BEAT", 60.0)  # otherwise it may lead again before the request
    if store.startswith("sqlite"):
        pytest.skip("on SQLite the lock cannot be taken from a running process")
    path = path_of(new_name())
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        with opened(store) as other, other.reading() as link:
            assert link.run(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            )
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["code"]) in ((503, "unknown"), (503, "unavailable"))
        one.wait_until_ready()
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_after_a_restart_of_the_server_the_first_load_works() -> None:
    check_postgres()
    with own_postgres() as server, in_thread(server.url) as one:
        path = path_of("x")
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        server.stop()
        wait(lambda: call(one.port, "GET", "/readyz", token=None)[0] == 503)
        server.start()
        one.wait_until_ready()
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        assert call(one.port, "GET", path)[1]["pulls"] == 1


def test_a_replaced_file_is_detected(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with in_thread(f"sqlite:///{file}") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        for what in (file, tmp_path / "x.db-wal"):
            aside = tmp_path / "aside"
            what.rename(aside)
            assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 503
            assert call(one.port, "GET", "/readyz", token=None)[0] == 503
            aside.rename(what)
            one.wait_until_ready()
            assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200


def test_a_removed_file_is_not_created_again(tmp_path: Path) -> None:
    file, aside = tmp_path / "x.db", tmp_path / "aside"
    with in_thread(f"sqlite:///{file}") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        aside.mkdir()
        for what in tmp_path.glob("x.db*"):
            what.rename(aside / what.name)
        wait(lambda: "was removed or replaced" in why_not(one))
        assert not file.exists()
        for what in aside.iterdir():
            what.rename(tmp_path / what.name)
        one.wait_until_ready()
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200


def why_not(one: InThread) -> str:
    return str(call(one.port, "GET", "/readyz", token=None)[1].get("reason"))


def test_a_removed_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes lead for some time, but neither overwrites the other's events."""
    monkeypatch.setattr(leader, "BEAT", 60.0)  # otherwise the first may take it before the second
    url, path = f"sqlite:///{tmp_path}/x.db", path_of("x")
    with in_thread(url) as first:
        assert call(first.port, "PUT", path, {"n_arms": 9})[0] == 201
        (tmp_path / "x.db.lock").unlink()
        with in_thread(url) as second:
            second.wait_until_ready()
            for one, number in ((first, 0), (second, 1)):
                status, answer = call(one.port, "POST", f"{path}/asks", {})
                assert (status, answer["pulls"][0]["pull"]) == (200, number)
            assert call(first.port, "POST", f"{path}/asks", {})[0] == 503
            wait(lambda: call(first.port, "GET", "/readyz", token=None)[0] == 503)
            assert call(second.port, "POST", f"{path}/asks", {})[1]["pulls"][0]["pull"] == 2


def test_a_link_to_the_file(tmp_path: Path) -> None:
    """The lock is the same for the link and the file."""
    (tmp_path / "there").mkdir()
    (tmp_path / "x.db").symlink_to(tmp_path / "there" / "y.db")
    with in_thread(f"sqlite:///{tmp_path}/x.db") as first:
        first.wait_until_ready()
        assert call(first.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        with in_thread(f"sqlite:///{tmp_path}/there/y.db") as second:
            assert "leads, and this process stands by" in why_not(second)


def test_a_script_writes_the_same_experiment(store: str) -> None:
    """Nothing is overwritten: the service loads the experiment again, and continues."""
    name = new_name()
    with in_thread(store) as one:
        spec = {"policy": "moss", "n_arms": 50, "horizon": 100, "seed": 1}
        assert call(one.port, "PUT", path_of(name), spec)[0] == 201
        assert call(one.port, "POST", f"{path_of(name)}/asks", {})[0] == 200
        with ma.load(store, name=name) as live:
            assert live.ask().id == 1
        status, answer = call(one.port, "POST", f"{path_of(name)}/asks", {}, Idempotency_Key="k")
        assert (status, answer["code"]) == (503, "unknown")
        one.wait_until_ready()
        status, answer = call(one.port, "POST", f"{path_of(name)}/asks", {}, Idempotency_Key="k")
        assert (status, answer["pulls"][0]["pull"]) == (200, 2)


def test_other_requests_are_answered_while_a_script_locks_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite allows one writer at a time, and the service waits in a thread, not in its loop."""
    monkeypatch.setattr(server, "open_store", partial(open_store, wait=600.0))
    store = f"sqlite:///{tmp_path}/x.db"
    with in_thread(store) as one, ThreadPoolExecutor(1) as pool:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        with opened(store) as other, other.writing() as link, link.transaction():
            asked = pool.submit(call, one.port, "POST", f"{path_of('x')}/asks", {})
            for _ in range(10):
                assert call(one.port, "GET", "/healthz", token=None)[0] == 200
                assert call(one.port, "GET", path_of("x"))[0] == 200
            assert not asked.done()
            with in_thread(store) as second:  # a standby starts without writing
                assert call(second.port, "GET", "/readyz", token=None)[0] == 503
        assert asked.result()[0] == 200


# Failing commits


class Faults:
    """The failures of the next commits with events."""

    def __init__(self) -> None:
        self.next: list[str] = []
        self.away = False


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    one = Faults()
    commit, lead = EventStore.commit, EventStore.lead

    def faulty(self: EventStore, appends: Any) -> None:
        if one.away:
            raise StoreUnavailableError("away")
        what = one.next.pop(0) if one.next else ""
        if what == "mistake":
            raise ZeroDivisionError
        if what == "refused":
            raise StoreUnavailableError("the disk is full")
        commit(self, appends)
        if what == "answer lost":
            raise StoreUnavailableError("lost")

    def away(self: EventStore) -> bool:
        if one.away:
            raise StoreUnavailableError("away")
        return lead(self)

    monkeypatch.setattr(EventStore, "commit", faulty)
    monkeypatch.setattr(EventStore, "lead", away)
    return one


@pytest.fixture
def served(faults: Faults, tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 50})[0] == 201
        yield one


def ask(served: InThread, **headers: Any) -> tuple[int, Any]:
    return call(served.port, "POST", f"{path_of('x')}/asks", {}, **headers)


@pytest.mark.parametrize("fault", ["refused", "answer lost", "mistake"])
def test_a_retry_settles_an_unknown_commit(served: InThread, faults: Faults, fault: str) -> None:
    for turn in range(3):
        faults.next = [fault]
        status, answer = ask(served, Idempotency_Key=str(turn))
        assert (status, answer["code"]) == (503, "unknown")
        served.wait_until_ready()
        status, answer = ask(served, Idempotency_Key=str(turn))
        assert (status, answer["pulls"][0]["pull"]) == (200, turn)
    assert call(served.port, "GET", path_of("x"))[1]["seq"] == 3


def test_without_the_database(served: InThread, faults: Faults) -> None:
    assert ask(served)[0] == 200
    faults.away = True
    status, answer = ask(served, Idempotency_Key="k")
    assert (status, answer["code"]) == (503, "unknown")
    status, answer = ask(served)  # at once, and nothing was changed
    assert (status, answer["code"]) == (503, "unavailable")
    assert call(served.port, "GET", "/readyz", token=None)[0] == 503
    assert call(served.port, "GET", "/healthz", token=None)[0] == 200
    faults.away = False
    served.wait_until_ready()
    status, answer = ask(served, Idempotency_Key="k")
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)
    assert call(served.port, "GET", path_of("x"))[1]["pulls"] == 2


def test_a_process_ends_without_the_database(served: InThread, faults: Faults) -> None:
    assert ask(served)[0] == 200
    faults.away = True
    assert ask(served)[0] == 503
    served.stop()
    assert served.failure is None


def test_a_policy_that_raises(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half-changed experiment is loaded again, with all acknowledged events."""
    assert ask(served)[0] == 200
    asked = Experiment.ask

    def fails(experiment: Experiment, *given: Any, **more: Any) -> Any:
        asked(experiment, *given, **more)
        raise ZeroDivisionError

    monkeypatch.setattr(Experiment, "ask", fails)
    status, answer = ask(served)
    assert (status, answer["code"]) == (500, "policy")
    monkeypatch.setattr(Experiment, "ask", asked)
    status, answer = ask(served)
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_a_client_that_disconnects_before_its_answer(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    commit = EventStore.commit

    def slowly(self: EventStore, appends: Any) -> None:
        begun.set()
        assert go.wait(60)
        commit(self, appends)

    monkeypatch.setattr(EventStore, "commit", slowly)
    with socket.create_connection(("127.0.0.1", served.port)) as link:
        link.sendall(
            f"POST {path_of('x')}/asks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Length: 2\r\n\r\n{}".encode()
        )
        assert begun.wait(60)
    go.set()
    status, answer = ask(served)
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_experiments_share_a_commit(store: str) -> None:
    """Asks of several experiments at once are in one transaction, each with its own answer."""
    names = [new_name() for _ in range(4)]
    with in_thread(store) as one, ThreadPoolExecutor(8) as pool:
        for name in names:
            assert call(one.port, "PUT", path_of(name), {"n_arms": 99})[0] == 201
        answers = list(
            pool.map(
                lambda name: call(one.port, "POST", f"{path_of(name)}/asks", {"k": 2}), names * 10
            )
        )
        assert all(status == 200 for status, _ in answers)
        for name in names:
            given = [a["pulls"] for (_, a), n in zip(answers, names * 10, strict=True) if n == name]
            assert sorted(p["pull"] for pulls in given for p in pulls) == list(range(20))


# Names in Unicode


def test_unicode_names(store: str) -> None:
    """Import, search and events must distinguish these names, on both kinds of database."""
    keys = ["a\tb", "a\\tb", "a\nb", "\\N", "%", "%s", "'", '"', "ä", "\U0001f600", "x" * 1000, " "]
    with in_thread(store) as one:
        path = path_of(new_name())
        assert call(one.port, "PUT", path, {"policy": "prospector", "seed": 1})[0] == 201
        assert call(one.port, "POST", f"{path}/arms", {"names": keys})[0] == 200
        asked = call(one.port, "POST", f"{path}/asks", {"k": 12})[1]["pulls"]
        assert {pull["arm"] for pull in asked} == set(keys)
        listed = call(one.port, "GET", f"{path}/arms?sort=arm")[1]["arms"]
        assert [a["arm"] for a in listed] == keys
        found = call(one.port, "GET", f"{path}/arms?sort=arm&search=%25")[1]["arms"]
        assert [a["arm"] for a in found] == ["%", "%s"]
        events = call(one.port, "GET", f"{path}/events")[1]["events"]
        assert [event["arm"] for event in events[1:]] == [pull["arm"] for pull in asked]
        again = call(one.port, "POST", f"{path}/arms", {"names": ["new", *keys]})[1]
        assert (again["added"], again["skipped"]) == (1, len(keys))
