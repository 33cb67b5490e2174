"""One process leads and others stand by, on each kind of database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from manyarms.live.databases import UnreachableError
from manyarms.serve.batch import LostError
from manyarms.serve.stores import SQLiteStore, postgres

import manyarms as ma
from manyarms.serve import leader, tables
from tests.serve.machines import (
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


def test_a_standby_leads_when_the_leader_has_ended(store: str) -> None:
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
        assert f":{first.port} leads, and this one stands by" in answer["reason"]
        assert call(second.port, "GET", "/healthz", token=None)[0] == 200
        status, answer = call(second.port, "POST", f"{path}/asks", {})
        assert (status, answer["code"]) == (503, "unavailable")  # nothing was done
        html: dict[str, Any] = {"Accept": "text/html"}
        assert call(second.port, "GET", "/", **html)[0] == 503
        first.stop()
        second.wait_until_ready()
        again = call(second.port, "POST", f"{path}/asks", {"k": 5}, **asked)[1]["pulls"]
        assert again == pulls
        (pull,) = call(second.port, "POST", f"{path}/asks", {})[1]["pulls"]
        assert pull["arm"] == live.ask().arm


def test_a_leader_that_was_cut_off_says_nothing(store: str) -> None:
    """Its session is ended, as a standby does it: what it applied since is not answered."""
    if store.startswith("sqlite"):
        pytest.skip("on SQLite the lock is the kernel's: it cannot be taken from who lives")
    path = path_of(new_name())
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        with opened(store) as database:
            assert database.run(postgres._END_OTHER, **postgres._OUR_LOCK) == [(True,)]
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["code"]) in ((503, "unknown"), (503, "unavailable"))
        one.wait_until_ready()
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_a_lost_session_that_only_writes_costs_one_request(store: str) -> None:
    if store.startswith("sqlite"):
        pytest.skip("on SQLite there are no sessions")
    path = path_of(new_name())
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        with opened(store) as database:
            assert database.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                "'manyarms' AND pid <> pg_backend_pid()"
            )
        other = path_of(new_name())
        status, answer = call(one.port, "PUT", other, {"n_arms": 9})
        assert (status, answer["code"]) == (503, "unknown")
        assert call(one.port, "GET", "/readyz", token=None)[0] == 200
        assert b"manyarms_loaded 1.0" in call(one.port, "GET", "/metrics")[1]
        assert call(one.port, "PUT", other, {"n_arms": 9})[0] == 201


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


def test_a_file_that_is_not_that_file(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with in_thread(f"sqlite:///{file}?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        for what in (file, tmp_path / "x.db-wal"):
            aside = tmp_path / "aside"
            what.rename(aside)
            assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 503
            assert call(one.port, "GET", "/readyz", token=None)[0] == 503
            aside.rename(what)
            one.wait_until_ready()
            assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_nothing_is_created_in_a_file_that_is_gone(tmp_path: Path, what: str) -> None:
    file = tmp_path / "x.db"
    with in_thread(f"sqlite:///{file}?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        copy = file.read_bytes()
        file.unlink()
        if what == "replaced":
            file.write_bytes(copy)
        assert call(one.port, "PUT", path_of("y"), {"n_arms": 9})[0] == 503


def test_a_file_that_was_removed_is_not_made_anew(tmp_path: Path) -> None:
    file, aside = tmp_path / "x.db", tmp_path / "aside"
    with in_thread(f"sqlite:///{file}?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201

        def why_not() -> str:
            return str(call(one.port, "GET", "/readyz", token=None)[1].get("reason"))

        aside.mkdir()
        for what in tmp_path.glob("x.db*"):
            what.rename(aside / what.name)
        wait(lambda: "x.db was removed. Put it back" in why_not())  # it has tried to lead again
        assert not file.exists()
        with opened(f"sqlite:///{file}") as other:
            tables.setting(other, "identity", "another")
        wait(lambda: "is another database than before" in why_not())
        for what in [*tmp_path.glob("x.db*")]:
            what.unlink()
        for what in aside.iterdir():
            what.rename(tmp_path / what.name)
        one.wait_until_ready()
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200


def test_a_lock_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "BEAT", 60.0)  # else the first may take it again before the second
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with in_thread(url) as first:
        assert call(first.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        (tmp_path / "x.db.lock").unlink()
        with in_thread(url) as second:
            second.wait_until_ready()
            assert call(first.port, "POST", f"{path_of('x')}/asks", {})[0] == 503
            wait(lambda: call(first.port, "GET", "/readyz", token=None)[0] == 503)
            assert call(second.port, "POST", f"{path_of('x')}/asks", {})[0] == 200


def test_a_file_behind_a_link(tmp_path: Path) -> None:
    """There is one lock, whichever way a process takes."""
    (tmp_path / "there").mkdir()
    (tmp_path / "x.db").symlink_to(tmp_path / "there" / "y.db")
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as first:
        first.wait_until_ready(5)
        assert call(first.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        with in_thread(f"sqlite:///{tmp_path}/there/y.db?sync=never") as second:
            reason = call(second.port, "GET", "/readyz", token=None)[1]["reason"]
            assert f":{first.port} leads" in reason


def test_a_file_of_two_names(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with in_thread(f"sqlite:///{file}?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
    (tmp_path / "y.db").hardlink_to(file)
    with in_thread(f"sqlite:///{tmp_path}/y.db?sync=never") as one:
        status, answer = call(one.port, "GET", "/readyz", token=None)
        assert status == 503
        assert "has 2 names" in answer["reason"]


# Commits that fail


class Faults:
    """What goes wrong with the next commits that hold events."""

    def __init__(self) -> None:
        self.next: list[str] = []
        self.away = False


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    one = Faults()
    commit, begin = SQLiteStore.commit, SQLiteStore._open

    async def faulty(self: SQLiteStore, group: Any) -> None:
        if one.away:
            raise LostError("away")
        what = one.next.pop(0) if one.next and any(b.events for b in group) else ""
        if what == "mistake":
            raise ZeroDivisionError
        if what == "refused":
            raise LostError("refused")
        await commit(self, group)
        if what == "answer lost":
            raise LostError("lost")

    def away(self: SQLiteStore) -> None:
        if one.away:
            raise UnreachableError("away")
        begin(self)

    monkeypatch.setattr(SQLiteStore, "commit", faulty)
    monkeypatch.setattr(SQLiteStore, "_open", away)
    return one


@pytest.fixture
def served(faults: Faults, tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 50})[0] == 201
        yield one


def ask(served: InThread, **headers: Any) -> tuple[int, Any]:
    return call(served.port, "POST", f"{path_of('x')}/asks", {}, **headers)


@pytest.mark.parametrize("fault", ["refused", "answer lost", "mistake"])
def test_what_is_unknown_is_settled_by_a_retry(
    served: InThread, faults: Faults, fault: str
) -> None:
    for turn in range(3):
        faults.next = [fault]
        status, answer = ask(served, Idempotency_Key=str(turn))
        assert (status, answer["code"]) == (503, "unknown")
        served.wait_until_ready()
        status, answer = ask(served, Idempotency_Key=str(turn))
        assert (status, answer["pulls"][0]["pull"]) == (200, turn)
    assert call(served.port, "GET", path_of("x"))[1]["head"] == 3


def test_while_the_database_is_away(served: InThread, faults: Faults) -> None:
    assert ask(served)[0] == 200
    faults.away = True
    status, answer = ask(served, Idempotency_Key="k")
    assert (status, answer["code"]) == (503, "unknown")
    status, answer = ask(served)  # at once: nothing was done
    assert (status, answer["code"]) == (503, "unavailable")
    assert call(served.port, "GET", "/readyz", token=None)[0] == 503
    assert call(served.port, "GET", "/healthz", token=None)[0] == 200
    faults.away = False
    served.wait_until_ready()
    status, answer = ask(served, Idempotency_Key="k")
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)
    assert call(served.port, "GET", path_of("x"))[1]["pulls"] == 2


def test_a_process_that_ends_while_the_database_is_away(served: InThread, faults: Faults) -> None:
    assert ask(served)[0] == 200
    faults.away = True
    assert ask(served)[0] == 503
    begun = time.monotonic()
    served.stop()
    assert time.monotonic() - begun < 20


def test_a_policy_that_fails_midway(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment is half changed: it is loaded anew, and what was acknowledged is there."""
    from manyarms.live.game import LiveGame

    assert ask(served)[0] == 200
    asked = LiveGame.ask

    def fails(game: LiveGame) -> Any:
        asked(game)
        raise ZeroDivisionError

    monkeypatch.setattr(LiveGame, "ask", fails)
    status, answer = ask(served)
    assert (status, answer["code"]) == (500, "policy")
    monkeypatch.setattr(LiveGame, "ask", asked)
    status, answer = ask(served)
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_a_client_that_leaves_before_its_answer(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    slow = threading.Event()
    commit = SQLiteStore.commit

    async def slowly(self: SQLiteStore, group: Any) -> None:
        await asyncio.sleep(0.3)
        slow.set()
        await commit(self, group)

    monkeypatch.setattr(SQLiteStore, "commit", slowly)
    from tests.serve.machines import TOKEN

    with socket.create_connection(("127.0.0.1", served.port)) as link:
        link.sendall(
            f"POST {path_of('x')}/asks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Length: 2\r\n\r\n{}".encode()
        )
        time.sleep(0.1)
    assert slow.wait(10)
    status, answer = ask(served)
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_experiments_share_a_group(store: str) -> None:
    """Asks of several experiments at once: one transaction, and each has what it asked for."""
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


# Letters of all kinds


def test_keys_of_any_letters(store: str) -> None:
    """What import, search and events of keys must not mix up, on each kind of database."""
    keys = ["a\tb", "a\\tb", "a\nb", "\\N", "%", "%s", "'", '"', "ä", "\U0001f600", "x" * 1000, " "]
    with in_thread(store) as one:
        path = path_of(new_name())
        assert call(one.port, "PUT", path, {"policy": "prospector", "seed": 1})[0] == 201
        assert call(one.port, "POST", f"{path}/arms", {"names": keys})[0] == 200
        asked = call(one.port, "POST", f"{path}/asks", {"k": 12})[1]["pulls"]
        assert {pull["arm"] for pull in asked} == set(keys)
        listed = call(one.port, "GET", f"{path}/arms?sort=arm")[1]["arms"]
        assert [a["arm"] for a in listed] == sorted(keys)
        found = call(one.port, "GET", f"{path}/arms?sort=arm&search=%25")[1]["arms"]
        assert [a["arm"] for a in found] == ["%", "%s"]
        events = call(one.port, "GET", f"{path}/events")[1]["events"]
        assert [event["arm"] for event in events] == [pull["arm"] for pull in asked]
        again = call(one.port, "POST", f"{path}/arms", {"names": ["new", *keys]})[1]
        assert (again["added"], again["skipped"]) == (1, len(keys))
