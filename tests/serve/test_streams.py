"""Pages that follow: a token has a few of them, and all of them leave room for asks."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyarms.serve.dashboard import pages
from tests.serve.machines import TOKEN, InThread, call, in_thread, path_of, wait

pytestmark = pytest.mark.interpreted
CONNECTIONS = 12


@pytest.fixture
def small(tmp_path: Path) -> Iterator[InThread]:
    store = f"sqlite:///{tmp_path}/serve.db?sync=never"
    with in_thread(store, connections=CONNECTIONS) as one:
        yield one


def viewer(one: InThread, name: str) -> str:
    made: str = call(one.port, "POST", "/v1/tokens", {"name": name, "role": "viewer"})[1]["token"]
    return made


def follow(one: InThread, token: str, kept: contextlib.ExitStack) -> tuple[int, socket.socket]:
    """Open a stream and keep it; return its status."""
    link = kept.enter_context(socket.create_connection(("127.0.0.1", one.port), timeout=10))
    head = f"GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    link.sendall(head.encode())
    return int(link.recv(4096).split()[1]), link


def test_a_token_has_few_streams(small: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MOST_OF_ONE", 3)
    first, second = viewer(small, "first"), viewer(small, "second")
    with contextlib.ExitStack() as kept:
        opened = [follow(small, first, kept) for _ in range(3)]
        assert [status for status, _ in opened] == [200, 200, 200]
        assert follow(small, first, kept)[0] == 429
        assert follow(small, second, kept)[0] == 200
        opened[0][1].close()
        wait(lambda: follow(small, first, kept)[0] == 200)
        assert follow(small, first, kept)[0] == 429


def test_streams_leave_room_for_asks(small: InThread) -> None:
    assert call(small.port, "PUT", path_of("shop"), {"n_arms": 9})[0] == 201
    token = viewer(small, "many")
    with contextlib.ExitStack() as kept:
        given = [follow(small, token, kept) for _ in range(CONNECTIONS // 2 + 1)]
        assert [status for status, _ in given] == [200] * (CONNECTIONS // 2) + [503]
        given[-1][1].close()
        for _ in range(5):
            assert call(small.port, "POST", f"{path_of('shop')}/asks", {}, token=TOKEN)[0] == 200
