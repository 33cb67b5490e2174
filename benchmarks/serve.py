"""Measure the service's throughput on loopback: `python benchmarks/serve.py` (minutes).

Asks and tells alternate on MOSS++ with a million named arms. The comparison is a server of the same
kind with an empty handler. Other work on the machine slows both down, so look at their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.serve.machines import TOKEN, Node, call, free_port, postgres

ARMS = 1_000_000
EMPTY = """
import asyncio, sys, uvloop
from manyarms.serve.server import _bound, _Server, config
from manyarms.serve.service import ServerSettings

async def app(scope, receive, send):
    body = await receive()
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})

async def main():
    settings = ServerSettings(port=int(sys.argv[1]))
    server = _Server(config(app, settings))
    server.listening = lambda: None
    await server.serve(sockets=[_bound("127.0.0.1", settings.port)])

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


class Client(asyncio.Protocol):
    """A client with little overhead that sends a request when the last one is answered."""

    def __init__(self, path: str, k: int, until: float, seconds: list[float]) -> None:
        self._asks, self._tells = (_head(path, what) for what in ("asks", "tells"))
        self._ask = b'{"k":%d}' % k
        self._until, self._seconds = until, seconds
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer = b""
        self._sent = 0.0
        self.pulls = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send(self._asks, self._ask)

    def _send(self, head: bytes, body: bytes) -> None:
        self._sent = time.perf_counter()
        self._transport.write(b"%s%d\r\n\r\n%s" % (head, len(body), body))

    def data_received(self, data: bytes) -> None:
        if self._answer:
            data = self._answer + data
        head = _HEAD.match(data)
        if head is None or len(data) < head.end() + int(head[2]):
            self._answer = data
            return
        self._answer = b""
        now = time.perf_counter()
        body = data[head.end() :]
        if head[1] != b"200":
            self.done.set_exception(RuntimeError(data[:300]))
            return
        self._seconds.append(now - self._sent)
        if now > self._until:
            self._transport.close()
            self.done.set_result(None)
        elif body.startswith(b'{"pulls"'):
            pulls = [int(pull) for pull in _PULLS.findall(body)]
            self.pulls += len(pulls)
            tells = b",".join(b'{"pull":%d,"reward":%d}' % (pull, pull % 3 == 0) for pull in pulls)
            self._send(self._tells, b'{"tells":[%s]}' % tells)
        else:
            self._send(self._asks, self._ask)


_HEAD = re.compile(rb"HTTP/1.1 (\d+) (?s:.*?)content-length: (\d+)(?s:.*?)\r\n\r\n")
_PULLS = re.compile(rb'"pull":(\d+)')


def _head(path: str, what: str) -> bytes:
    return (
        f"POST {path}/{what} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Length: "
    ).encode()


async def _load(port: int, name: str, clients: int, k: int, seconds: float) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    taken: list[float] = []
    begun, spent_before = time.perf_counter(), time.process_time()
    some = []
    for _ in range(clients):
        _, one = await loop.create_connection(
            lambda: Client(f"/v1/experiments/{name}", k, begun + seconds, taken), "127.0.0.1", port
        )
        some.append(one)
    await asyncio.gather(*(one.done for one in some))
    spent = time.perf_counter() - begun
    taken.sort()
    return {
        "seconds": spent,
        "load": 1e6 * (time.process_time() - spent_before) / len(taken),
        "requests": len(taken) / spent,
        "pulls": sum(one.pulls for one in some) / spent,
        "p50": 1000 * taken[len(taken) // 2],
        "p99": 1000 * taken[int(0.99 * len(taken))],
    }


def load(port: int, name: str, clients: int, k: int = 1, seconds: float = 4.0) -> dict[str, float]:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_load(port, name, clients, k, seconds))


def cpu(process: subprocess.Popen[bytes] | None) -> float:
    """Return the processor seconds of a process, without its children."""
    assert process is not None
    parts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def empty_server() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", EMPTY, str(port)])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                call(port, "GET", "/")
                break
            time.sleep(0.05)
        yield port, process
    finally:
        process.kill()
        process.wait()


def keys(count: int) -> bytes:
    return b"".join(b'"item-%07d"\n' % k for k in range(count))


def make(node: Node, name: str, arms: int) -> float:
    spec = {"policy": "moss++", "horizon": 10_000_000, "seed": 1}
    status, answer = call(node.port, "PUT", f"/v1/experiments/{name}", spec)
    assert status == 201, answer
    begun = time.perf_counter()
    status, answer = call(
        node.port, "POST", f"/v1/experiments/{name}/arms", keys(arms), timeout=300,
        Content_Type="application/x-ndjson",
    )  # fmt: skip
    assert status == 200, answer
    return time.perf_counter() - begun


def throughput(
    kind: str, node: Node, empty: tuple[int, subprocess.Popen[bytes]], seconds: float
) -> None:
    took = make(node, "many", ARMS)
    print(f"{kind}: {ARMS} named arms imported in {took:.1f} s")
    for clients in (1, 32, 256):
        spent = cpu(empty[1])
        base = load(empty[0], "empty", clients, seconds=seconds)
        idle = 1e6 * (cpu(empty[1]) - spent) / (base["requests"] * base["seconds"])
        spent = cpu(node.process)
        one = load(node.port, "many", clients, seconds=seconds)
        busy = 1e6 * (cpu(node.process) - spent) / (one["requests"] * one["seconds"])
        share = one["requests"] / base["requests"]
        print(
            f"{kind}, {clients} clients: {one['requests']:.0f} requests/s "
            f"({share:.0%} of {base['requests']:.0f}), p50 {one['p50']:.1f} ms, "
            f"p99 {one['p99']:.1f} ms (empty: {base['p99']:.1f} ms); processor {busy:.0f} us a "
            f"request (empty: {idle:.0f} us, {idle / busy:.0%})",
            flush=True,
        )
    batch = load(node.port, "many", 8, k=100, seconds=seconds)
    print(f"{kind}, batches of 100: {batch['pulls']:.0f} pulls/s asked and told", flush=True)


def while_importing(kind: str, node: Node) -> None:
    """Measure asks while a million arms are added to the experiment."""
    make(node, "busy", 1000)
    code = (
        "import sys; sys.path[:0] = ['benchmarks', '.']\n"
        "import serve\n"
        f"more = serve.keys({ARMS}).replace(b'item', b'more')\n"
        f"begun = serve.time.perf_counter()\n"
        f"s, a = serve.call({node.port}, 'POST', '/v1/experiments/busy/arms', more, timeout=300, "
        "Content_Type='application/x-ndjson')\n"
        "assert s == 200, a\n"
        "print(serve.time.perf_counter() - begun)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parent.parent,
    )
    time.sleep(1.5)  # it starts, and creates the names
    during = load(node.port, "busy", 8, seconds=3.0)
    out, _ = process.communicate()
    print(
        f"{kind}: {ARMS} arms imported in {float(out):.1f} s while 8 clients asked: "
        f"{during['requests']:.0f} requests/s, p99 {during['p99']:.1f} ms",
        flush=True,
    )


def takeover(kind: str, store: str, events: int, times: int) -> None:
    """Measure the time from killing the leader of a long log to the standby's first answer."""
    nodes = [Node(store).start(), Node(store).start(wait=False)]
    try:
        spec = {"policy": "moss++", "n_arms": ARMS, "horizon": 10_000_000, "seed": 1}
        call(nodes[0].port, "PUT", "/v1/experiments/long", spec)
        done = 0
        while done < events:
            got = load(nodes[0].port, "long", 4, k=200, seconds=1.0)
            done += int(2 * got["pulls"] * 1.0)
        taken = []
        for turn in range(times):
            leader, standby = nodes[turn % 2], nodes[(turn + 1) % 2]
            standby.wait_for("/healthz")
            call(leader.port, "POST", "/v1/experiments/long/asks", {})
            leader.kill()
            begun = time.perf_counter()
            while call(standby.port, "POST", "/v1/experiments/long/asks", {})[0] != 200:
                time.sleep(0.01)
            taken.append(time.perf_counter() - begun)
            leader.start(wait=False)
        head = call(nodes[times % 2].port, "GET", "/v1/experiments/long")[1]["head"]
        print(
            f"{kind}: a standby leads after kill -9 with {head} events: median "
            f"{statistics.median(taken):.2f} s of {', '.join(f'{t:.2f}' for t in taken)}",
            flush=True,
        )
    finally:
        for one in nodes:
            one.kill()


def measure(kind: str, store: str, parts: list[str], seconds: float) -> None:
    if {"throughput", "import"} & set(parts):
        node = Node(store).start()
        try:
            with empty_server() as empty:
                if "throughput" in parts:
                    throughput(kind, node, empty, seconds)
                if "import" in parts:
                    while_importing(kind, node)
        finally:
            node.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert node.process is not None
                node.process.wait(30)
            node.kill()
    if "takeover" in parts:
        takeover(kind, store, 200_000, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="*", default=["sqlite", "postgres"])
    parser.add_argument("--parts", default="throughput,import,takeover")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    parts = given.parts.split(",")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for kind in given.stores:
        if kind == "sqlite":
            with tempfile.TemporaryDirectory() as folder:
                measure(kind, f"sqlite:///{folder}/bench.db", parts, given.seconds)
        else:
            with postgres(fsync=True) as server:
                measure(kind, server.url, parts, given.seconds)


if __name__ == "__main__":
    main()
