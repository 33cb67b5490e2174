"""The short way of plain asks and tells gives the answers of the long way, however they come."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.committer import Answers, Forming
from manyarms.serve.quick import QuickProtocol

from manyarms.live.databases import Batch
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve import access
from manyarms.serve import quick as quick_module
from tests.serve.machines import TOKEN, InThread, call, in_thread

pytestmark = pytest.mark.interpreted
PATH = "/v1/experiments/x"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "_REMEMBERED", 1000.0)  # the short way is for tokens that are known
        with in_thread(f"sqlite:///{folder}/x.db?sync=never") as one:
            yield one


@pytest.fixture
def served(node: InThread) -> InThread:
    call(node.port, "POST", f"{PATH}/stop")
    call(node.port, "DELETE", PATH)
    assert call(node.port, "PUT", PATH, {"n_arms": 50, "seed": 1})[0] == 201
    assert call(node.port, "POST", f"{PATH}/asks", {})[0] == 200  # it is loaded
    return node


@pytest.fixture
def quick(served: InThread, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request that may be plain was answered on the short way."""
    ways: list[bool] = []
    applied = QuickProtocol._applied

    def noted(protocol: QuickProtocol, name: str, right: str) -> bool:
        ways.append(applied(protocol, name, right))
        return ways[-1]

    monkeypatch.setattr(QuickProtocol, "_applied", noted)
    return ways


def post(what: str, body: bytes, *more: str, version: str = "1.1") -> bytes:
    lines = [f"POST {PATH}/{what} HTTP/{version}", "Host: x", f"Content-Length: {len(body)}", *more]
    if not any(line.startswith("Authorization") for line in more):
        lines.append(f"Authorization: Bearer {TOKEN}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers(port: int, *pieces: bytes, count: int = 1) -> list[tuple[int, bytes, bytes]]:
    """Send pieces one by one; return the status, the head and the body of each answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            link.sendall(piece)
            time.sleep(0.2 * (len(pieces) > 1))
        data = b""
        found: list[tuple[int, bytes, bytes]] = []
        while len(found) < count:
            head, ended, rest = data.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if ended and length is not None and len(rest) >= int(length[1]):
                found.append((int(head[9:12]), head, rest[: int(length[1])]))
                data = rest[int(length[1]) :]
                continue
            part = link.recv(65536)
            assert part, (data, found)
            data += part
        if b"connection: close" in found[-1][1]:
            assert link.recv(1) == b""
        return found


def test_both_ways_answer_alike(served: InThread, quick: list[bool]) -> None:
    request = post("asks", b'{"k": 2}')
    whole = answers(served.port, request)[0]
    in_pieces = answers(served.port, request[:-3], request[-3:])[0]
    assert quick == [True]  # what comes slowly goes the long way
    assert whole[0] == in_pieces[0] == 200
    lines = [re.sub(rb"length: \d+", b"", head) for _, head, _ in (whole, in_pieces)]
    assert sorted(lines[0].split(b"\r\n")) == sorted(lines[1].split(b"\r\n"))
    assert b'"pull":1' in whole[2]
    assert b'"pull":3' in in_pieces[2]
    tells = post("tells", b'{"tells": [{"pull": 1, "reward": 1}, {"pull": 99, "reward": 0}]}')
    first, again = (answers(served.port, tells)[0][2] for _ in range(2))
    assert first.startswith(b'{"results":[{"pull":1,"applied":true},{"pull":99,"applied":false')
    assert again == first.replace(b"true", b"false")
    assert quick == [True] * 3


def test_requests_of_one_connection_are_answered_in_order(
    served: InThread, quick: list[bool]
) -> None:
    look = f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    asks = post("asks", b"{}")
    found = answers(served.port, asks + asks + look + asks, count=4)
    pulls = [re.findall(rb'"pull":(\d)', body) for _, _, body in found]
    assert [pulls[k] for k in (0, 1, 3)] == [[b"1"], [b"2"], [b"3"]]
    assert b'"name":"x"' in found[2][2]


@pytest.mark.parametrize(
    ("more", "version", "status", "closes"),
    [
        (["Connection: close"], "1.1", 200, True),
        ([], "1.0", 200, True),
        (["Authorization: Bearer wrong"], "1.1", 401, False),
        (["Idempotency-Key: ~made"], "1.1", 422, False),
        (["Idempotency-Key: mine"], "1.1", 200, False),
        (["X-Manyarms-Forwarded: 1.2"], "1.1", 200, False),
        (["Cookie: manyarms_session=1.2"], "1.1", 200, False),
    ],
)
def test_what_is_not_plain(
    served: InThread, more: list[str], version: str, status: int, closes: bool
) -> None:
    found = answers(served.port, post("asks", b"{}", *more, version=version))[0]
    assert (found[0], b"connection: close" in found[1]) == (status, closes)


@pytest.mark.parametrize("body", [b"{", b'{"k": 0}', b'{"k": "\xff"}', b'{"no": 1}'])
def test_bodies_that_are_wrong(served: InThread, quick: list[bool], body: bytes) -> None:
    status, _, said = answers(served.port, post("asks", body))[0]
    assert status in (400, 422), said
    assert quick == [False]


def test_large_bodies(served: InThread) -> None:
    for room, status in ((100_000, 200), (3_000_000, 413)):
        asks = post("asks", b"{%s}" % (b" " * room))
        assert answers(served.port, asks)[0][0] == status


def test_a_body_may_come_after_its_head(served: InThread, quick: list[bool]) -> None:
    assert call(served.port, "POST", f"{PATH}/asks", b'{"k": 1}')[0] == 200
    head, _, body = post("asks", b'{"k": 1}').partition(b"\r\n\r\n")
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(head + b"\r\n\r\n")
        link.sendall(body)
        assert link.recv(65536).startswith(b"HTTP/1.1 200")
        link.sendall(head + b"\r\n\r\n")  # and leaves
    assert answers(served.port, head + b"\r\n\r\n" + body)[0][0] == 200
    assert len(quick) == 3


def test_a_key_is_asked_for_once(served: InThread, quick: list[bool]) -> None:
    asks = post("asks", b"{}", "Idempotency-Key: k")
    first, again = (answers(served.port, asks)[0][2] for _ in range(2))
    assert first == again
    other = post("asks", b'{"k": 2}', "Idempotency-Key: k")
    assert answers(served.port, other)[0][0] == 422
    assert quick == [True, True, False]


def test_another_header_does_not_become_a_token(served: InThread) -> None:
    """A token in the address is not remembered for whatever the header said beside it."""
    odd = "Authorization: Basic eDp5"
    body = post("asks", b"{}", odd).replace(b"/asks HTTP", f"/asks?token={TOKEN} HTTP".encode())
    answers(served.port, body)
    assert answers(served.port, post("asks", b"{}", odd))[0][0] == 401


def test_a_client_that_leaves_before_its_answer(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SQLite.commit

    def slow(database: SQLite, batches: Any) -> list[bool]:
        time.sleep(0.3)
        return commit(database, batches)

    monkeypatch.setattr(SQLite, "commit", slow)
    with socket.create_connection(("127.0.0.1", served.port)) as link:
        link.sendall(post("asks", b"{}"))
        time.sleep(0.1)
    status, answer = call(served.port, "POST", f"{PATH}/asks", {})
    assert (status, answer["pulls"][0]["pull"]) == (200, 2)


def test_what_follows_an_ask_and_is_no_http_is_refused_after_it(served: InThread) -> None:
    """Else an ask would be applied, and answered with 400."""
    asks, large = post("asks", b"{}"), b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000
    chunked = b"Transfer-Encoding: chunked\r\n\r\nno length"
    in_part = asks.replace(b"Content-Length: 2\r\n", b"").partition(b"\r\n\r\n")[0]
    for rest, status in (
        (b"\0garbage\r\n\r\n", 400),
        (in_part + b"\r\n" + chunked, 400),
        (large, 431),
    ):
        found = answers(served.port, asks + asks + rest, count=3)
        assert [answer[0] for answer in found] == [200, 200, status]
        assert b"connection: close" in found[-1][1]
        assert answers(served.port, in_part + b"\r\n" + chunked)[0][0] == 400


def test_trailers_are_no_headers(served: InThread) -> None:
    head = f"POST {PATH}/asks HTTP/1.1\r\nHost: x\r\n"
    trailer = f"Authorization: Bearer {TOKEN}\r\n"
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailer}\r\n"
    next_one = f"{head}Content-Length: 2\r\n\r\n{{}}"
    found = answers(served.port, (chunked + next_one).encode(), count=2)
    assert [status for status, _, _ in found] == [401, 401]


def test_long_addresses_are_not_kept(served: InThread) -> None:
    before = quick_module._parts.cache_info().misses
    long = f"GET /{'x' * 60_000} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    assert answers(served.port, long)[0][0] == 404
    assert quick_module._parts.cache_info().misses == before


@pytest.mark.patient
def test_a_node_that_ends_while_an_ask_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed after the answer: the node need not wait for its client."""
    commit = SQLite.commit
    lost = threading.Event()

    def lose(database: SQLite, batches: Sequence[Batch]) -> list[bool]:
        if lost.is_set() or not any(batch.events for batch in batches):
            return commit(database, batches)
        lost.set()
        time.sleep(0.5)
        return [False] * len(batches)

    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one:
        call(one.port, "PUT", PATH, {"n_arms": 50})
        call(one.port, "POST", f"{PATH}/asks", {})
        monkeypatch.setattr(SQLite, "commit", lose)
        with socket.create_connection(("127.0.0.1", one.port), timeout=10) as link:
            link.sendall(post("asks", b"{}", "Idempotency-Key: k"))
            assert lost.wait(5)
            one.stop()
            answer = link.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer


def test_who_comes_to_a_batch_that_nobody_waits_for_is_answered() -> None:
    """The database was away for long, and is back: the batch that formed is still to be sent."""

    async def play() -> list[str]:
        heard: list[str] = []
        forming = Forming(Batch(1, 1, 0), asyncio.get_running_loop().create_future())
        forming.when_done(lambda done: heard.append(f"first {done.exception()!r}"))
        forming.done.set_exception(TimeoutError())
        forming.when_done(lambda done: heard.append(f"second {done.exception()!r}"))
        await asyncio.sleep(0.01)
        return heard

    assert asyncio.run(play()) == ["first TimeoutError()", "second TimeoutError()"]


def test_an_answer_that_fails_stops_no_other() -> None:
    def fails(done: asyncio.Future[Answers]) -> None:
        done.exception()  # raises CancelledError

    async def play() -> list[bool]:
        heard: list[bool] = []
        forming = Forming(Batch(1, 1, 0), asyncio.get_running_loop().create_future())
        forming.when_done(fails)
        forming.when_done(lambda done: heard.append(done.cancelled()))
        forming.done.cancel()
        await asyncio.sleep(0.01)
        return heard

    assert asyncio.run(play()) == [True]
