"""Attacks on the service over HTTP, most of them without a token."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyarms.serve.requests import DEADLINE
from tests.attack.on_text import BITS
from tests.attack.runner import Attempt, Workspace, attack
from tests.serve.machines import TOKEN, Node, call, node, path_of

SILENT = 1000  # sockets at once
SHOP = path_of("shop")
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LOGIN = b"POST /login HTTP/1.1\r\nHost: x\r\n"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Node]:
    """Start a service with one experiment."""
    with node(f"sqlite:///{folder}/serve.db") as one:
        assert call(one.port, "PUT", SHOP, {"n_arms": 100, "seed": 1})[0] == 201
        yield one


def still_serves(one: Node, count: int = 10) -> Iterator[Attempt]:
    """Ask, tell, and check that the process runs."""
    for _ in range(count):
        status, answer = call(one.port, "POST", f"{SHOP}/asks", {}, timeout=10)
        yield f"an ask is answered {status}", status == 200
        if status == 200:
            tells = [{"pull": answer["pulls"][0]["pull"], "reward": 1.0}]
            status = call(one.port, "POST", f"{SHOP}/tells", {"tells": tells}, timeout=10)[0]
            yield f"a tell is answered {status}", status == 200
    status = call(one.port, "GET", "/healthz", token=None, timeout=10)[0]
    yield f"/healthz is {status}", status == 200


def _sockets(one: Node, data: bytes, kept: contextlib.ExitStack) -> list[socket.socket]:
    """Open many connections, send the same data on each, and keep them open."""
    links = []
    for _ in range(SILENT):
        link = socket.create_connection(("127.0.0.1", one.port), timeout=2 * DEADLINE)
        links.append(kept.enter_context(link))
        link.sendall(data)
    return links


def _is_ended(link: socket.socket) -> bool:
    try:
        while link.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


SILENCES = {
    "a login without a body": LOGIN + b"Content-Length: 9999\r\n\r\n",
    "a login with a part of its body": LOGIN + b"Content-Length: 9999\r\n\r\nx",
    "a login in chunks": LOGIN + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a body after 100 Continue": LOGIN + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n",
}


@attack("service: missing bodies")
def silent_sockets(workspace: Workspace) -> Iterator[Attempt]:
    """Check that other requests are served, and that the sockets are closed."""
    with served(workspace.folder) as one, contextlib.ExitStack() as kept:
        links = {}
        for what, data in SILENCES.items():
            links[what] = _sockets(one, data, kept)
            for outcome, held in still_serves(one):
                yield f"{len(links) * SILENT} sockets, the last with {what}: {outcome}", held
        for what, some in links.items():
            for link in some:
                yield f"a socket with {what} is ended", _is_ended(link)


@attack("service: slow bodies")
def trickling_sockets(workspace: Workspace) -> Iterator[Attempt]:
    """Check that sockets that send a byte now and then are closed."""
    with served(workspace.folder) as one, contextlib.ExitStack() as kept:
        open_ones = []
        for _ in range(50):
            link = socket.create_connection(("127.0.0.1", one.port), timeout=20)
            kept.enter_context(link).sendall(LOGIN + b"Content-Length: 999999\r\n\r\n")
            open_ones.append(link)
        end = time.monotonic() + 2 * DEADLINE
        while open_ones and time.monotonic() < end:
            for link in list(open_ones):
                try:
                    link.sendall(b"x")
                except OSError:
                    open_ones.remove(link)
                    yield "a slow body is ended", True
            time.sleep(0.5)
        yield from (("a slow body continues", False) for _ in open_ones)
        yield from still_serves(one)


@attack("service: requests without reading answers")
def unread_answers(workspace: Workspace) -> Iterator[Attempt]:
    with served(workspace.folder) as one, contextlib.ExitStack() as kept:
        for number in range(50):
            link = socket.create_connection(("127.0.0.1", one.port), timeout=0.2)
            kept.enter_context(link)
            with contextlib.suppress(OSError):  # the buffer is full, or the connection is closed
                for _ in range(1000):
                    link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
            for outcome, held in still_serves(one, 1):
                yield f"{number + 1} connections: {outcome}", held


@attack("service: floods without a token")
def floods(workspace: Workspace) -> Iterator[Attempt]:
    """Send requests on many connections, and asks in between."""
    lines = [b"POST %s/asks" % SHOP.encode(), b"GET /", b"GET /v1/experiments", b"POST /login"]
    requests = [b"%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" % line for line in lines]
    with served(workspace.folder) as one:
        end, seen = time.monotonic() + 10, list[int]()

        def flood(data: bytes) -> None:
            with socket.create_connection(("127.0.0.1", one.port), timeout=20) as link:
                while time.monotonic() < end:
                    link.sendall(data * 20)
                    said = b""
                    while said.count(b"HTTP/1.1 ") < 20:
                        said += link.recv(1 << 20)
                    seen.extend(int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:])

        threads = [threading.Thread(target=flood, args=(data,)) for data in requests * 2]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            yield from still_serves(one, 1)
        for thread in threads:
            thread.join()
        yield from ((f"a request is answered {status}", status < 500) for status in seen)


# Fuzzed requests: no answer has a status of 500 or more, and other requests are served

BODIES: dict[str, Any] = {
    "PUT /v1/experiments/made": {
        "policy": {"name": "moss", "parameters": {}}, "n_arms": 9, "horizon": 100, "seed": 1,
        "reward_range": [0.0, 1.0], "window": 5.0, "missing": 0.0, "hold": True,
    },
    f"POST {SHOP}/asks": {"k": 2},
    f"POST {SHOP}/tells": {"tells": [{"pull": 0, "reward": 0.5}, {"pull": 1, "reward": 1}]},
    f"POST {SHOP}/abandons": {"pulls": [1, 2]},
    f"POST {SHOP}/arms": {"count": 3},
    f"POST {SHOP}/restores": {"arm": 3},
    f"POST {SHOP}/observations": {"arm": 3, "rewards": [0.5, 1.0]},
    "POST /login": {"token": "x"},
}  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2**53,
    2**63,
    10**30,
    5e-324,
    -0.0,
    1e308,
    "",
    "x" * 5000,
    "\0",
    "\ud800",
]
VALUES += ["=1+1", "../..", [], {}, [[]] * 50, {"": {}}, [None] * 3000, "1" * 400, "nan"]


def _changed(chance: random.Random, value: Any) -> Any:
    """Return a value with a part replaced, removed or renamed."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(list(value))
        what = chance.random()
        if what < 0.1:
            return {key: part for key, part in value.items() if key != name}
        if what < 0.2:
            return value | {chance.choice(["", "zzz", name.upper()]): value[name]}
        return value | {name: _changed(chance, value[name])}
    if isinstance(value, list) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _changed(chance, value[at]), *value[at + 1 :]]
    return chance.choice(VALUES)


def _damaged(chance: random.Random, data: bytes) -> bytes:
    """Return data with parts removed, repeated or inserted."""
    for _ in range(chance.randint(1, 3)):
        first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        last = min(last, first + chance.choice([0, 1, 8, 64]))
        bit = chance.choice(BITS).encode("utf-8", "surrogatepass")
        data = data[:first] + chance.choice([bit, b"", data[first:last] * 3]) + data[last:]
    return data


@attack("service: fuzzed bodies")
def fuzzed_bodies(workspace: Workspace) -> Iterator[Attempt]:
    chance = workspace.chance
    with served(workspace.folder) as one:
        for number in range(4000):
            line, body = chance.choice(list(BODIES.items()))
            data = json.dumps(_changed(chance, body)).encode()
            if number % 3 == 0:
                data = _damaged(chance, data)
            method, path = line.split()
            kind = chance.choice(["application/json", "application/x-ndjson", "", "\xff"])
            status, answer = call(one.port, method, path, data, Content_Type=kind, timeout=20)
            if method == "PUT" and status == 201:
                call(one.port, "POST", f"{path}/stop", {})
                call(one.port, "DELETE", path)
            yield f"{line} with {data[:200]!r} is answered {status} {answer!r:.200}", status < 500
        yield from still_serves(one)


HEADERS = ["Origin: https://a.example", "Cookie: manyarms_token=%C3x; a=b", "Content-Length: 2"]
HEADERS += ["Transfer-Encoding: chunked", "Upgrade: h2c", "Connection: Upgrade"]
HEADERS += ["Expect: 100-continue", "Idempotency-Key: k", "X-Forwarded-For: ::1"]


@attack("service: fuzzed heads")
def fuzzed_heads(workspace: Workspace) -> Iterator[Attempt]:
    chance = workspace.chance
    with served(workspace.folder) as one:
        for number in range(3000):
            line = chance.choice(
                [*BODIES, f"GET {SHOP}/arms?limit=5&sort=mean", f"GET {SHOP}/events?after=1"]
            )
            text = f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n"
            if number % 2:
                text += f"Authorization: Bearer {TOKEN}\r\n"
            for header in chance.sample(HEADERS, 3):
                text += f"{header}\r\n"
            data = _damaged(chance, text.encode()) + chance.choice([b"\r\n", b"\r\n{}", b""])
            status = _status(one, data)
            yield f"{data[:300]!r} is answered {status}", status is None or status < 500
        yield from still_serves(one)


def _status(one: Node, data: bytes) -> int | None:
    """Send data, then close; return the status of the first answer, None if there is none."""
    with socket.create_connection(("127.0.0.1", one.port), timeout=20) as link:
        with contextlib.suppress(OSError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
        said = b""
        with contextlib.suppress(OSError):
            said = link.recv(65536)
    if not said:
        return None
    version, status = said.split()[:2]
    if version != b"HTTP/1.1" or status == b"100":
        return None if status == b"100" else 599
    return int(status)
