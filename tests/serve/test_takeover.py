"""Two nodes on one database: one answers for the other, and takes over when it is gone."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.databases import database_of
from tests.serve.chaos import run
from tests.serve.machines import Node, call, check_postgres, node, postgres

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(store: str) -> Iterator[list[Node]]:
    both = [Node(store).start(), Node(store).start()]
    yield both
    for one in both:
        one.kill()


@pytest.fixture
def game(nodes: list[Node]) -> str:
    name = f"x{uuid.uuid4().hex[:8]}"
    spec = {"policy": "moss++", "n_arms": 1000, "horizon": 10_000, "seed": 2}
    assert call(nodes[0].port, "PUT", f"/v1/experiments/{name}", spec)[0] == 201
    return name


def post(node: Node, game: str, what: str, body: Any, **headers: Any) -> Any:
    status, answer = call(node.port, "POST", f"/v1/experiments/{game}/{what}", body, **headers)
    assert status == 200, answer
    return answer


def test_any_node_answers(nodes: list[Node], game: str) -> None:
    live = ma.MOSSPlusPlus().live(n_arms=1000, horizon=10_000, seed=2)
    for turn in range(20):
        node, other = nodes[turn % 2], nodes[(turn + 1) % 2]
        (pull,) = post(node, game, "asks", {}, Idempotency_Key=str(turn))["pulls"]
        again = post(other, game, "asks", {}, Idempotency_Key=str(turn))["pulls"]
        assert again == [pull]
        assert pull["arm"] == live.ask().arm
        tell = {"tells": [{"pull": pull["pull"], "reward": 1.0}]}
        assert post(other, game, "tells", tell)["results"][0]["applied"]
        live.tell(pull["pull"], 1.0)
    for node in nodes:
        assert call(node.port, "GET", f"/v1/experiments/{game}")[1]["told"] == 20
        body = {"keys": ["a"]}
        assert call(node.port, "POST", f"/v1/experiments/{game}/arms", body)[0] == 422
        assert call(node.port, "POST", f"/v1/experiments/{game}/arms", {"count": 1})[0] == 200


def test_a_killed_owner_is_followed_at_once(nodes: list[Node], game: str) -> None:
    pulls = post(nodes[0], game, "asks", {"k": 50}, Idempotency_Key="a")["pulls"]
    nodes[0].kill()
    begun = time.monotonic()
    again = post(nodes[1], game, "asks", {"k": 50}, Idempotency_Key="a")["pulls"]
    assert again == pulls
    assert time.monotonic() - begun < 4  # before the lease ends
    nodes[0].start()
    tell = {"tells": [{"pull": pulls[0]["pull"], "reward": 1.0}]}
    assert post(nodes[0], game, "tells", tell)["results"][0]["applied"]


def test_a_frozen_owner_cannot_answer(nodes: list[Node], game: str) -> None:
    post(nodes[0], game, "asks", {"k": 5})
    nodes[0].signal(signal.SIGSTOP)
    (pull,) = post(nodes[1], game, "asks", {})["pulls"]
    assert pull["pull"] == 5
    nodes[0].signal(signal.SIGCONT)
    tell = {"tells": [{"pull": 5, "reward": 1.0}]}  # which it has never heard of
    assert post(nodes[0], game, "tells", tell)["results"][0]["applied"]


def test_an_owner_that_is_told_to_end_hands_over(nodes: list[Node], game: str, store: str) -> None:
    post(nodes[0], game, "asks", {"k": 100})
    nodes[0].stop()
    database = database_of(store)
    database.open()
    row = database.find(game)
    assert row is not None
    assert (row.owner, row.head) == ("", 100)
    saved = database.snapshot(row.id)
    assert saved is not None
    assert saved[0] == 100  # nothing is left to be played again
    database.close()
    assert post(nodes[1], game, "asks", {})["pulls"][0]["pull"] == 100


def test_another_engine_takes_no_tail(nodes: list[Node], game: str, store: str) -> None:
    post(nodes[0], game, "asks", {"k": 3})
    for one in nodes:
        one.kill()
    database = database_of(store)
    database.open()
    database.run("UPDATE experiments SET engine = 'older' WHERE name = :name", name=game)
    database.close()
    nodes[1].start()
    status, answer = call(nodes[1].port, "POST", f"/v1/experiments/{game}/asks", {})
    assert (status, answer["code"]) == (503, "replay")
    assert "another version of the policy's code" in answer["message"]


def test_a_log_that_differs_is_never_played_on(nodes: list[Node], game: str, store: str) -> None:
    arm = post(nodes[0], game, "asks", {"k": 3})["pulls"][1]["arm"]
    for one in nodes:
        one.kill()
    database = database_of(store)
    database.open()
    row = database.find(game)
    assert row is not None
    database.run(
        "UPDATE events SET arm = :arm WHERE experiment = :x AND seq = 2", arm=arm + 1, x=row.id
    )
    database.close()
    nodes[1].start()
    status, answer = call(nodes[1].port, "POST", f"/v1/experiments/{game}/asks", {})
    assert (status, answer["code"]) == (503, "replay")
    assert (
        "cannot be played again"
        in call(nodes[1].port, "GET", f"/v1/experiments/{game}")[1]["alarm"]
    )


# Chaos, the short form


def test_chaos_on_sqlite(tmp_path: Any) -> None:
    assert run(f"sqlite:///{tmp_path}/chaos.db", None, kills=6, pauses=1, crashes=2) == []


def test_chaos_on_postgres() -> None:
    check_postgres()
    with postgres() as server:
        assert run(server.url, server, kills=6, pauses=1, crashes=2) == []


def test_keys_of_any_letters(store: str) -> None:
    """What import, search and export of keys must not mix up, on each kind of database."""
    keys = ["a\tb", "a\\tb", "a\nb", "\\N", "%", "%s", "'", '"', "ä", "\U0001f600", "x" * 1000, " "]
    with node(store) as one:
        path = f"/v1/experiments/k{uuid.uuid4().hex[:8]}"
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
