"""Two processes on one database: one takes over when the other is killed, frozen, or ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.chaos import run
from tests.serve.machines import Node, call, check_postgres, new_name, opened, postgres, row_of

pytestmark = pytest.mark.slow
LEASE = 1.0  # seconds


@pytest.fixture
def nodes(store: str) -> Iterator[list[Node]]:
    both = [Node(store, lease=LEASE).start(wait=False) for _ in range(2)]
    for one in both:
        one.wait()
    yield both
    for one in both:
        one.kill()


@pytest.fixture
def game(nodes: list[Node]) -> str:
    name = new_name()
    spec = {"policy": "moss++", "n_arms": 1000, "horizon": 10_000, "seed": 2}
    assert call(nodes[0].port, "PUT", f"/v1/experiments/{name}", spec)[0] == 201
    return name


def post(node: Node, game: str, what: str, body: Any, **headers: Any) -> Any:
    status, answer = call(node.port, "POST", f"/v1/experiments/{game}/{what}", body, **headers)
    assert status == 200, answer
    return answer


def applied(node: Node, game: str, pull: int) -> bool:
    tell = {"tells": [{"pull": pull, "reward": 1.0}]}
    done: bool = post(node, game, "tells", tell)["results"][0]["applied"]
    return done


def test_what_befalls_an_owner(nodes: list[Node], game: str, store: str) -> None:
    first, second = nodes
    pulls = post(first, game, "asks", {"k": 50}, Idempotency_Key="a")["pulls"]
    first.kill()
    with opened(store) as database:
        assert 0 < row_of(database, game).lease_left <= LEASE
        database.run("UPDATE experiments SET lease_until = lease_until + 60")
    again = post(second, game, "asks", {"k": 50}, Idempotency_Key="a")["pulls"]
    assert again == pulls  # it is followed at once, not when its lease is over
    first.start()
    assert applied(first, game, pulls[0]["pull"])

    second.signal(signal.SIGSTOP)  # it is frozen, and followed when its lease is over
    assert post(first, game, "asks", {})["pulls"][0]["pull"] == 50
    second.signal(signal.SIGCONT)
    assert applied(second, game, 50)  # which it has never heard of

    first.stop()  # it is told to end, and hands over
    with opened(store) as database:
        row = row_of(database, game)
        assert (row.owner, row.head) == ("", 53)
        saved = database.snapshot(row.id)
        assert saved is not None
        assert saved[0] == 53  # nothing is left to be played again
    assert post(second, game, "asks", {})["pulls"][0]["pull"] == 51


# Chaos, the short form


def test_chaos_on_sqlite(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/chaos.db"
    assert run(store, None, kills=6, pauses=1, crashes=2, lease=LEASE) == []


def test_chaos_on_postgres() -> None:
    check_postgres()
    with postgres() as server:
        assert run(server.url, server, kills=6, pauses=1, crashes=2, lease=LEASE) == []
