"""Two nodes in one process, on each kind of database: requests are sent on."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import manyarms as ma
from manyarms.live.databases import database_of
from manyarms.serve.access import Access, Caller, digest_of, mark_of
from tests.serve.machines import TOKEN, call, in_thread, new_name, opened, row_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def test_any_node_answers(store: str) -> None:
    name = new_name()
    path = f"/v1/experiments/{name}"
    live = ma.MOSSPlusPlus().live(n_arms=1000, horizon=10_000, seed=2)
    with in_thread(store) as first, in_thread(store) as second:
        ports = [first.port, second.port]
        spec = {"policy": "moss++", "n_arms": 1000, "horizon": 10_000, "seed": 2}
        assert call(ports[0], "PUT", path, spec)[0] == 201
        for turn in range(20):
            port, other = ports[turn % 2], ports[(turn + 1) % 2]
            key: dict[str, Any] = {"Idempotency_Key": str(turn)} if turn % 3 else {}
            status, answer = call(port, "POST", f"{path}/asks", {}, **key)
            assert status == 200, answer
            (pull,) = answer["pulls"]
            if key:
                assert call(other, "POST", f"{path}/asks", {}, **key)[1]["pulls"] == [pull]
            assert pull["arm"] == live.ask().arm
            tell = {"tells": [{"pull": pull["pull"], "reward": 1.0}]}
            assert call(other, "POST", f"{path}/tells", tell)[1]["results"][0]["applied"]
            live.tell(pull["pull"], 1.0)
        for port in ports:
            assert call(port, "GET", path)[1]["told"] == 20
            assert call(port, "POST", f"{path}/arms", {"keys": ["a"]})[0] == 422
            assert call(port, "POST", f"{path}/arms", {"count": 1})[0] == 200
        asks, access = f"{path}/asks", Access(secret_of(store))
        for proof, known in (
            ("1", False),
            (access.forwarding("GET", asks), False),
            (Access("guess").forwarding("POST", asks), False),
            (access.forwarding("POST", asks), True),
        ):
            status, answer = call(ports[1], "POST", asks, {}, X_Manyarms_Forwarded=proof)
            assert (status, answer.get("code")) == ((503, "not_owner") if known else (200, None))
        first.stop()  # it hands over
        status, answer = call(ports[1], "POST", f"{path}/asks", {})
        assert (status, answer["pulls"][0]["pull"]) == (200, 23)


def secret_of(store: str) -> str:
    with opened(store) as database:
        return database.setting("secret", "")


def test_a_session_with_two_nodes(store: str) -> None:
    """The node that a page comes from checks its origin, and nobody else can say it did."""
    name = new_name()
    path = f"/v1/experiments/{name}"
    with in_thread(store) as first, in_thread(store) as second:
        call(first.port, "PUT", path, {"n_arms": 9})
        assert call(first.port, "POST", f"{path}/asks", {})[0] == 200  # it is the owner
        caller = Caller("environment", "admin", mark=mark_of(digest_of(TOKEN)))
        cookie = Access(secret_of(store)).session_cookie(caller, path="/", secure=False)
        session: dict[str, Any] = {"Cookie": cookie.split(";")[0]}
        for host, status in ((second.port, 200), (first.port, 403)):
            origin = f"http://127.0.0.1:{host}"
            for action in ("pause", "resume"):
                asked = call(
                    second.port, "POST", f"{path}/{action}", b"", token=None, Origin=origin,
                    X_Manyarms_Forwarded="1", **session,
                )  # fmt: skip
                assert asked[0] == status, asked


def test_a_handle_and_the_service_do_not_meet(store: str) -> None:
    """A game that was recorded without the service is not its own, nor the other way round."""
    mine, theirs = new_name(), new_name()
    joint = "&" if "?" in store else "?"
    with in_thread(store) as one:
        with ma.recorded(f"{store}{joint}experiment={mine}", ma.MOSS().live(n_arms=9, horizon=9)):
            assert (
                call(one.port, "POST", f"/v1/experiments/{mine}/asks", {})[1]["code"] == "recorded"
            )
        call(one.port, "PUT", f"/v1/experiments/{theirs}", {"n_arms": 9})
        assert call(one.port, "POST", f"/v1/experiments/{theirs}/asks", {})[0] == 200
        with pytest.raises(ma.StoreError, match="is an experiment of the service"):
            ma.recorded(f"{store}{joint}experiment={theirs}")
        names = [x["name"] for x in call(one.port, "GET", "/v1/experiments")[1]["experiments"]]
        assert mine not in names
        assert theirs in names


def test_a_node_that_was_taken_over_from_asks_the_other(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name()
    path = f"/v1/experiments/{name}"
    database = database_of(store)
    with in_thread(store) as one:
        call(one.port, "PUT", path, {"n_arms": 9})
        call(one.port, "POST", f"{path}/asks", {"k": 2})
        database.open()
        row = row_of(database, name)
        with monkeypatch.context() as patched:
            patched.setattr(type(database), "lease", 0.0)
            assert database.acquire(name, "node x at 127.0.0.1:9", row.epoch)
        database.close()
        # the lease of the other is over: this node loads anew, and knows what was committed
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["pulls"][0]["pull"]) == (200, 2)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE experiments SET engine = 'older' WHERE id = :x", "another version of the policy"),
        ("UPDATE events SET arm = (arm + 1) % 9 WHERE experiment = :x AND seq = 2", "played again"),
    ],
    ids=["engine", "event"],
)
def test_a_log_that_cannot_be_played_is_not_played_on(store: str, damage: str, said: str) -> None:
    name = new_name()
    path = f"/v1/experiments/{name}"
    with in_thread(store) as one:
        call(one.port, "PUT", path, {"policy": "moss", "n_arms": 9, "horizon": 99})
        call(one.port, "POST", f"{path}/asks", {"k": 3})
    with opened(store) as database:
        row = row_of(database, name)
        database.run("DELETE FROM snapshots WHERE experiment = :x", x=row.id)  # as after a kill
        database.run(damage, x=row.id)
    with in_thread(store) as one:
        status, answer = call(one.port, "POST", f"{path}/asks", {})
        assert (status, answer["code"]) == (503, "replay")
        assert said in answer["message"]
        assert said in call(one.port, "GET", path)[1]["alarm"]
        # nobody can stop it: it may be deleted all the same
        assert call(one.port, "DELETE", path)[0] == 200
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 404


def test_keys_of_any_letters(store: str) -> None:
    """What import, search and export of keys must not mix up, on each kind of database."""
    keys = ["a\tb", "a\\tb", "a\nb", "\\N", "%", "%s", "'", '"', "ä", "\U0001f600", "x" * 1000, " "]
    with in_thread(store) as one:
        path = f"/v1/experiments/{new_name()}"
        spec = {"policy": "prospector", "seed": 1}
        assert call(one.port, "PUT", path, spec)[0] == 201
        assert call(one.port, "POST", f"{path}/arms", {"keys": keys})[0] == 200
        asked = call(one.port, "POST", f"{path}/asks", {"k": 12})[1]["pulls"]
        assert {pull["arm"] for pull in asked} == set(keys)
        listed = call(one.port, "GET", f"{path}/arms?sort=arm")[1]["arms"]
        assert [a["arm"] for a in listed] == sorted(keys)
        found = call(one.port, "GET", f"{path}/arms?sort=arm&search=%25")[1]["arms"]
        assert [a["arm"] for a in found] == ["%", "%s"]
        lines = call(one.port, "GET", f"{path}/export?what=arms")[1].splitlines()
        assert [json.loads(line)["key"] for line in lines] == keys
        again = call(one.port, "POST", f"{path}/arms", {"keys": ["new", "ä"]})
        assert (again[0], again[1]["code"]) == (409, "key_exists")
        assert "'ä'" in again[1]["message"]


def test_experiments_share_a_group(store: str) -> None:
    """Asks of several experiments at once: one transaction, and each has what it asked for."""
    names = [new_name() for _ in range(4)]
    with in_thread(store) as one, ThreadPoolExecutor(8) as pool:
        for name in names:
            assert call(one.port, "PUT", f"/v1/experiments/{name}", {"n_arms": 99})[0] == 201
        ask = lambda name: call(one.port, "POST", f"/v1/experiments/{name}/asks", {"k": 2})  # noqa: E731
        answers = list(pool.map(ask, names * 10))
        assert all(status == 200 for status, _ in answers)
        for name in names:
            given = [a["pulls"] for (_, a), n in zip(answers, names * 10, strict=True) if n == name]
            assert sorted(p["pull"] for pulls in given for p in pulls) == list(range(20))


def test_an_ask_that_may_have_been_applied_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer of the owner is lost; the second time its database is away."""
    store, path = f"sqlite:///{tmp_path}/x.db?sync=never", "/v1/experiments/x"
    request = httpx.AsyncClient.request
    sent: list[Any] = []

    async def lost(client: httpx.AsyncClient, *words: Any, **named: Any) -> Any:
        sent.append(words)
        if len(sent) > 1:
            return httpx.Response(503, json={"code": "unavailable"})
        await request(client, *words, **named)
        raise httpx.ReadError("lost")

    with in_thread(store) as first, in_thread(store) as second:
        call(first.port, "PUT", path, {"n_arms": 9})
        call(first.port, "POST", f"{path}/asks", {})
        monkeypatch.setattr(httpx.AsyncClient, "request", lost)
        status, answer = call(second.port, "POST", f"{path}/asks", {})
        assert (status, answer["code"], len(sent)) == (503, "unknown", 2)
        assert call(first.port, "GET", path)[1]["pulls"] == 2


@pytest.mark.parametrize("arrives", [True, False])
def test_arms_whose_answer_is_lost_may_be_there(
    store: str, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """`unavailable` means that nothing was done: a client sends it again, and doubles the arms."""
    path = f"/v1/experiments/{new_name()}"
    request = httpx.AsyncClient.request

    async def lost(client: httpx.AsyncClient, *words: Any, **named: Any) -> Any:
        if not arrives:
            raise httpx.ConnectError("nobody listens")
        await request(client, *words, **named)
        raise httpx.ReadError("the owner died after its commit")

    with in_thread(store) as first, in_thread(store) as second:
        call(first.port, "PUT", path, {"n_arms": 9})
        call(first.port, "POST", f"{path}/asks", {})
        monkeypatch.setattr(httpx.AsyncClient, "request", lost)
        status, answer = call(second.port, "POST", f"{path}/arms", {"count": 5})
        assert (status, answer["code"]) == (503, "unknown" if arrives else "unavailable")
        assert call(first.port, "GET", path)[1]["n_arms"] == (14 if arrives else 9)
