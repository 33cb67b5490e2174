"""Of two processes on a database, one leads when the other is killed, frozen or ended."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.chaos import run
from tests.serve.machines import Node, call, check_postgres, new_name, path_of, postgres, wait

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(store: str) -> Iterator[list[Node]]:
    first = Node(store).start()
    both = [first, Node(store).start(wait=False)]
    yield both
    for one in both:
        with contextlib.suppress(ProcessLookupError):
            one.signal(signal.SIGCONT)
        one.kill()


def test_the_standby_takes_over(nodes: list[Node], store: str) -> None:
    first, second = nodes
    path = path_of(new_name())
    spec = {"policy": "moss++", "n_arms": 1000, "horizon": 10_000, "seed": 2}
    assert call(first.port, "PUT", path, spec)[0] == 201
    asked: dict[str, Any] = {"Idempotency_Key": "a"}
    status, answer = call(first.port, "POST", f"{path}/asks", {"k": 50}, **asked)
    assert status == 200
    first.kill()
    second.wait()
    assert call(second.port, "POST", f"{path}/asks", {"k": 50}, **asked)[1] == answer
    first.start(wait=False)
    first.wait_for("/healthz")  # a standby answers this
    if not store.startswith("sqlite"):
        second.signal(signal.SIGSTOP)  # frozen, so its session is ended
        first.wait()
        assert call(first.port, "POST", f"{path}/asks", {})[1]["pulls"][0]["pull"] == 50
        second.signal(signal.SIGCONT)
        wait(lambda: call(second.port, "GET", "/readyz", token=None)[0] == 503)
        first, second = second, first
    second.stop()  # ended by a signal
    first.wait()
    assert call(first.port, "POST", f"{path}/asks", {})[0] == 200


def test_chaos_on_sqlite(tmp_path: Any) -> None:
    assert run(f"sqlite:///{tmp_path}/chaos.db", None, kills=6, freezes=1, crashes=2) == []


def test_chaos_on_postgres() -> None:
    check_postgres()
    with postgres() as server:
        assert run(server.url, server, kills=6, freezes=1, crashes=2) == []
