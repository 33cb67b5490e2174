"""Those who keep the service waiting do not keep others from it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyarms.serve import app, connections, requests
from tests.serve.machines import TOKEN, InThread, call, in_thread, path_of, wait

pytestmark = pytest.mark.interpreted
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LOGIN = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"


@pytest.fixture
def hasty(served: InThread, monkeypatch: pytest.MonkeyPatch) -> InThread:
    """A node that waits for heads and readers for a moment only."""
    monkeypatch.setattr(connections, "SLOWEST_HEAD", 0.3)
    monkeypatch.setattr(connections, "SLOWEST_READER", 0.3)
    wait(lambda: call(served.port, "GET", "/healthz")[0] == 200)
    return served


@contextlib.contextmanager
def linked(one: InThread, data: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", one.port), timeout=15) as link:
        link.sendall(data)
        yield link


def is_ended(link: socket.socket) -> bool:
    """Whether the service closes a connection, within the time of the socket."""
    try:
        while link.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("data", [b"G", HEAD, b"\r\n", HEAD + b"X: "], ids=repr)
def test_a_head_that_does_not_come(hasty: InThread, data: bytes) -> None:
    with linked(hasty, data) as link:
        assert is_ended(link)


def sends_on(link: socket.socket, data: bytes, pause: float = 0.0) -> bool:
    """Whether one can send the same again and again, for seconds."""
    end = time.monotonic() + 15
    try:
        while time.monotonic() < end:
            link.sendall(data)
            time.sleep(pause)
    except (ConnectionResetError, BrokenPipeError):
        return False
    return True


def test_a_head_that_trickles(hasty: InThread) -> None:
    with linked(hasty, HEAD) as link:
        assert not sends_on(link, b"X: y\r\n", 0.01)


def test_blank_lines_after_a_request(hasty: InThread) -> None:
    """They stop uvicorn's clock of idle connections."""
    with linked(hasty, HEAD + b"\r\n") as link:
        assert link.recv(65536).startswith(b"HTTP/1.1 200")
        link.sendall(b"\r\n")
        assert is_ended(link)


def test_a_body_that_trickles_after_its_answer(hasty: InThread) -> None:
    asks = b"POST /v1/experiments/x/asks HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n"
    with linked(hasty, asks) as link:
        assert link.recv(65536).startswith(b"HTTP/1.1 401")
        assert not sends_on(link, b"x", 0.01)


def test_connections_between_requests_stay(hasty: InThread) -> None:
    with linked(hasty) as link:
        for pause in (0.0, 1.0):  # more than a head may take
            time.sleep(pause)
            link.sendall(HEAD + b"\r\n")
            assert link.recv(65536).startswith(b"HTTP/1.1 200")


CHUNKED = LOGIN.replace(b"Content-Length: 9999", b"Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    "beginning",
    [HEAD + b"X: ", HEAD, b"GET /", CHUNKED + b"0\r\nX: "],
    ids=["value", "name", "address", "trailer"],
)
def test_heads_without_end(served: InThread, beginning: bytes) -> None:
    with linked(served, beginning) as link:
        assert not sends_on(link, b"x" * 4096)


def test_answers_that_nobody_takes(hasty: InThread) -> None:
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        link.settimeout(15)
        link.connect(("127.0.0.1", hasty.port))
        assert not sends_on(link, b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 10)


def test_requests_far_ahead(served: InThread) -> None:
    """uvicorn reads on with each answer, and keeps thousands of requests for later."""
    with linked(served) as link:
        link.sendall((HEAD + b"\r\n") * connections.MOST_AHEAD)
        seen = b""
        while seen.count(b"HTTP/1.1 200") < connections.MOST_AHEAD:
            seen += link.recv(65536)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            link.sendall((HEAD + b"\r\n") * 3000)
        assert is_ended(link)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/serve.db?sync=never", connections=20) as one:
        yield one


@pytest.mark.parametrize(
    "data",
    [b"G", LOGIN, HEAD + b"\r\n", LOGIN + b"x"],
    ids=["heads", "bodies", "idle connections", "pieces of bodies"],
)
def test_silent_ones_make_room(small: InThread, data: bytes) -> None:
    """There are more of them than connections, and nobody's time is over yet."""
    assert call(small.port, "PUT", path_of("shop"), {"n_arms": 9})[0] == 201
    asks = f"{path_of('shop')}/asks"
    with contextlib.ExitStack() as kept:
        for _ in range(60):
            kept.enter_context(linked(small, data))
            assert call(small.port, "POST", asks, {}, token=TOKEN)[0] == 200
        assert call(small.port, "GET", "/healthz", token=None)[0] == 200


def test_requests_under_way_are_not_given_up_for_others(
    small: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "SLOWEST", 60.0)
    with contextlib.ExitStack() as kept:
        begun = [kept.enter_context(linked(small, LOGIN)) for _ in range(10)]
        for _ in range(60):
            kept.enter_context(linked(small, b"G"))
        for link in begun:
            link.sendall(b"x" * 9999)
            assert link.recv(100).startswith(b"HTTP/1.1 303")  # the token is wrong


def test_long_paths_are_not_remembered(tmp_path: Path) -> None:
    """Anybody could fill memory with them."""
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:
        before = app._route.cache_info().currsize
        for k in range(5):
            assert call(one.port, "GET", f"/v1/experiments/x/arms/{k}{'y' * 400}")[0] == 404
        assert app._route.cache_info().currsize <= before + 1
