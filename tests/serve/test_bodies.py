"""Reading bodies: timeouts, limits, chunks and order."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from manyarms.serve import app, requests
from tests.serve.machines import TOKEN, InThread, call, path_of

pytestmark = pytest.mark.interpreted
ASKS = f"POST /v1/experiments/x/asks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
ARMS = f"{ASKS.replace('/asks', '/arms')}Content-Type: application/x-ndjson\r\n"
LOGIN = "POST /login HTTP/1.1\r\nHost: x\r\n"


@contextlib.contextmanager
def sent(one: InThread, head: str, body: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", one.port), timeout=60) as link:
        link.sendall(f"{head}\r\n".encode() + body)
        yield link


def all_of(link: socket.socket) -> bytes:
    """Return what the service sends until it closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while piece := link.recv(65536):
            parts.append(piece)
    return b"".join(parts)


@pytest.mark.parametrize("head", [ASKS, LOGIN], ids=["api", "page"])
def test_a_missing_body_times_out(
    served: InThread, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """Also without a token, so silent clients use no resources for long."""
    monkeypatch.setattr(requests, "DEADLINE", 0.3)
    with sent(served, f"{head}Content-Length: 1999\r\n") as link:
        assert all_of(link).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("head", [ASKS, LOGIN], ids=["api", "page"])
def test_a_slow_body_times_out(
    served: InThread, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    monkeypatch.setattr(requests, "DEADLINE", 0.3)
    with sent(served, f"{head}Content-Length: 1999\r\n") as link:
        link.settimeout(0.1)
        said = b""
        for _ in range(1900):
            if said:
                break
            link.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                said = link.recv(65536)
    assert said.startswith(b"HTTP/1.1 408"), said


@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
def test_a_body_lost_by_an_upgrade_is_refused(served: InThread, chunked: bool) -> None:
    """curl --http2 and Java offer an upgrade; the server drops the body, and k would be 1."""
    assert call(served.port, "PUT", path_of("upgraded"), {"n_arms": 9})[0] in (200, 201)
    body, length = b'{"k": 3}', "Content-Length: 8"
    if chunked:
        body, length = b'8\r\n{"k": 3}\r\n0\r\n\r\n', "Transfer-Encoding: chunked"
    head = ASKS.replace("/x/", "/upgraded/")
    more = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    with sent(served, f"{head}{more}{length}\r\n", body) as link:
        said = all_of(link)
    assert said.startswith(b"HTTP/1.1 400"), said
    assert json.loads(said.partition(b"\r\n\r\n")[2])["code"] == "short"
    assert call(served.port, "GET", path_of("upgraded"))[1]["pulls"] == 0


@pytest.mark.parametrize(
    ("where", "size"), [("/v1/experiments/x/asks", 3_000_000), ("/login", 2049)]
)
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
def test_large_bodies(served: InThread, where: str, size: int, chunked: bool) -> None:
    if not chunked:
        assert call(served.port, "POST", where, b" " * size)[0] == 413
        return
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b" " * size)
    head = f"POST {where} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    with sent(served, f"{head}Transfer-Encoding: chunked\r\n", body) as link:
        assert link.recv(65536).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_may_be_empty(served: InThread) -> None:
    assert call(served.port, "PUT", path_of("pieces"), {"n_arms": 9})[0] == 201
    head = ASKS.replace("/x/", "/pieces/")
    with sent(served, f"{head}Transfer-Encoding: chunked\r\n", b"0\r\n\r\n") as link:
        assert link.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_may_come_after_its_head(served: InThread) -> None:
    assert call(served.port, "PUT", path_of("late"), {"n_arms": 9})[0] == 201
    head = ASKS.replace("/x/", "/late/")
    with sent(served, f"{head}Content-Length: 8\r\n") as link:
        # the service reads in order, so it has the head when this is answered
        assert call(served.port, "GET", "/healthz", token=None)[0] == 200
        link.sendall(b'{"k": 2}')
        assert link.recv(65536).startswith(b"HTTP/1.1 200")
    assert call(served.port, "GET", path_of("late"))[1]["pulls"] == 2


def test_deeply_nested_bodies_are_refused(served: InThread) -> None:
    deep = b"[" * 100_000
    assert call(served.port, "POST", "/v1/experiments/x/asks", deep)[0] in (400, 422)


HUGE = (2**63 - 1, 2**63, 10**30, -(10**30))


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "huge", {"n_arms": ...}),
        ("PUT", "huge", {"n_arms": 9, "horizon": ...}),
        ("POST", "late/asks", {"k": ...}),
        ("POST", "late/arms", {"count": ...}),
        ("POST", "late/observations", {"arm": ..., "rewards": [1.0]}),
        ("GET", "late/arms/{}", None),
        ("POST", "late/verdict", {"confidence": ...}),
        ("GET", "late/events?after={}", None),
    ],
)
def test_huge_numbers(served: InThread, method: str, path: str, body: object, huge: int) -> None:
    call(served.port, "PUT", path_of("late"), {"n_arms": 9})
    if isinstance(body, dict):
        body = {name: huge if value is ... else value for name, value in body.items()}
    path = path_of(path.format(huge))
    status, answer = call(served.port, method, path, body, Content_Type="application/json")
    assert 400 <= status < 500, answer


def test_requests_of_one_connection_are_answered_in_order(served: InThread) -> None:
    assert call(served.port, "PUT", path_of("piped"), {"n_arms": 9})[0] == 201
    head = ASKS.replace("/x/", "/piped/")
    ask = f"{head}Content-Length: 2\r\n\r\n{{}}"
    with sent(
        served, f"{ask}{ask}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    ) as link:
        said = all_of(link)
    assert said.count(b"HTTP/1.1 200") == 3
    assert said.index(b'"pull":0') < said.index(b'"pull":1') < said.index(b'"ready":true')


def test_an_interrupted_stream(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(served.port, "PUT", path_of("x"), {})[0] in (200, 201)
    monkeypatch.setattr(requests, "DEADLINE", 0.3)
    with sent(served, f"{ARMS}Content-Length: 1999\r\n", b'"red"\n') as link:
        assert all_of(link).startswith(b"HTTP/1.1 408")
    assert call(served.port, "GET", path_of("x"))[1]["n_arms"] == 0


def test_long_paths_are_not_cached(served: InThread) -> None:
    """They could fill the memory."""
    before = app.find.remembered.cache_info().currsize
    for k in range(5):
        assert call(served.port, "GET", f"/v1/experiments/x/arms/{k}{'y' * 400}")[0] == 404
    assert app.find.remembered.cache_info().currsize <= before + 1
