"""Clients that are slow, silent, or too many do not hold the service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from manyarms.serve.limits import LimitedProtocol

import manyarms as ma
from manyarms.serve import limits, requests
from manyarms.serve.requests import Response
from manyarms.serve.server import serve
from manyarms.serve.service import Settings
from tests.serve.machines import TOKEN, InThread, call, in_thread

pytestmark = pytest.mark.interpreted
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = f"POST /v1/tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    store = f"sqlite:///{tmp_path_factory.mktemp('tight')}/x.db?sync=never"
    with in_thread(store, connections=5, request_seconds=0.4, idle_seconds=60) as one:
        yield one


@contextlib.contextmanager
def opened(one: InThread, *sent: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", one.port), timeout=5) as link:
        for piece in sent:
            link.sendall(piece)
        yield link


def all_of(link: socket.socket) -> bytes:
    """What is sent until the service closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while piece := link.recv(65536):
            parts.append(piece)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"", b"408"),
        (WHOLE[:20], b"408"),
        (WHOLE + WHOLE[:20], b"408"),
        (WHOLE + b"\r\n", b"408"),  # which begins no request
        (
            b"POST /v1/tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n.",
            b"408",
        ),  # after 401
    ],
)
def test_slow_heads(tight: InThread, first: bytes, status: bytes) -> None:
    with opened(tight) as link:
        begun = time.monotonic()
        if first.startswith(WHOLE):
            link.sendall(WHOLE)
            assert b"200" in link.recv(65536)
        link.sendall(first.removeprefix(WHOLE))
        if first.startswith(b"POST"):
            assert b"401" in link.recv(65536)
            link.sendall(b".")  # a rest that never ends
        said = all_of(link)
        assert 0.3 < time.monotonic() - begun < 2
    assert said.startswith(b"HTTP/1.1 " + status), said


def test_large_heads(tight: InThread) -> None:
    with opened(tight, WHOLE[:-2], b"X: " + b"x" * 70_000) as link:
        assert all_of(link).startswith(b"HTTP/1.1 431")


def test_connections_that_wait_make_room(tight: InThread) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            link = stack.enter_context(opened(tight, WHOLE))
            assert b"200 OK" in link.recv(65536)
        for _ in range(8):
            assert call(tight.port, "GET", "/healthz")[0] == 200


def test_too_many_connections(tight: InThread) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(opened(tight, POST, b"Content-Length: 9\r\n\r\n"))
        time.sleep(0.1)
        with opened(tight, WHOLE) as link:
            head, _, body = all_of(link).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in head
        assert b"connection: close" in head
        assert json.loads(body)["code"] == "unavailable"
    assert call(tight.port, "GET", "/healthz")[0] == 200


def test_a_body_that_trickles(tight: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "SLOWEST", 0.3)
    with opened(tight, POST, b"Content-Length: 9999\r\n\r\n") as link:
        link.settimeout(0.1)
        said = b""
        begun = time.monotonic()
        while not said and time.monotonic() - begun < 5:
            link.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                said = link.recv(65536)
    assert said.startswith(b"HTTP/1.1 408"), said


@pytest.mark.patient
def test_a_client_that_does_not_read(tight: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    look, given_up = LimitedProtocol.look, threading.Event()

    def watched(connection: LimitedProtocol, now: float) -> None:
        look(connection, now)
        if connection._paused and connection.transport.is_closing():
            given_up.set()

    monkeypatch.setattr(limits, "_READING", 0.3)
    monkeypatch.setattr(LimitedProtocol, "look", watched)
    many = WHOLE.replace(b"/healthz", b"/openapi.json") * 500  # more than all buffers hold
    with opened(tight, many) as link:
        assert given_up.wait(60)
        said = all_of(link)
    assert said.startswith(b"HTTP/1.1 200")
    assert said.count(b"HTTP/1.1 200") < 500


def test_an_export_ends_when_its_reader_has_gone() -> None:
    made = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal made
        for made in range(100):  # noqa: B007
            await asyncio.sleep(0)
            yield b"x"

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        pass

    asyncio.run(Response(stream=pieces()).send(send, None, gone))  # type: ignore[arg-type]
    assert made < 5


@pytest.mark.patient
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_nodes_must_be_able_to_reach_it(tmp_path: Path, host: str) -> None:
    settings = Settings(store="postgresql://db.example/arms", host=host)
    with pytest.raises(ma.ParameterError, match="such as --address 10.0.0.5:8765"):
        asyncio.run(serve(settings, print))
    local = Settings(store=f"sqlite:///{tmp_path}/x.db", host=host)
    assert local.reached_at in ("127.0.0.1:8765", "[::1]:8765")
