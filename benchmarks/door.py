"""Asks while strangers press: `python benchmarks/door.py`, on loopback, a minute.

1000 sockets log in and send no body, and another process sends requests without a token, 5000 a
second if it can. Printed is how long asks with a token take, and how many are answered, before and
during that. With the Python of another version's environment as an argument,
both take turns.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.serve.machines import TOKEN, call, free_port

SILENT, RATE = 1000, 5000
SHOP = "/v1/experiments/shop"
SPEC = {"policy": "moss++", "n_arms": 10_000, "horizon": 1_000_000}


@contextlib.contextmanager
def service(python: str) -> Iterator[int]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [python, "-m", "manyarms", "serve", "--quiet", "--port", str(port), "--store",
             f"sqlite:///{folder}/door.db"],
            env=os.environ | {"MANYARMS_TOKEN": TOKEN},
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            for _ in range(600):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if call(port, "GET", "/readyz", timeout=5)[0] == 200:
                        break
                time.sleep(0.1)
            status, answer = call(port, "PUT", SHOP, SPEC)
            assert status == 201, answer
            yield port
        finally:
            process.kill()
            process.wait()


def asks(port: int, seconds: float, clients: int = 4) -> str:
    """Ask one after the other in some threads; return what came of it."""
    taken: list[float] = []
    answers: Counter[str] = Counter()
    end = time.monotonic() + seconds
    head = {"Authorization": f"Bearer {TOKEN}"}

    def client() -> None:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while time.monotonic() < end:
            begun = time.perf_counter()
            try:
                link.request("POST", f"{SHOP}/asks", b"{}", head)
                reply = link.getresponse()
                reply.read()
            except (OSError, http.client.HTTPException) as error:
                answers[type(error).__name__] += 1
                link.close()
                continue
            answers[str(reply.status)] += 1
            if reply.status == 200:
                taken.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.sort()
    if not taken:
        return f"none is answered ({dict(answers)})"
    p50, p99 = (1000 * taken[int(share * len(taken))] for share in (0.5, 0.99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {dict(answers)}"


def flood(port: int, seconds: float) -> None:
    """Send requests without a token, ten at a time; print how many were answered in a second."""
    one = f"POST {SHOP}/asks HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    begun, done = time.monotonic(), 0
    link = socket.create_connection(("127.0.0.1", port), timeout=20)
    while (passed := time.monotonic() - begun) < seconds:
        if done > RATE * passed:
            time.sleep(0.001)
            continue
        try:
            link.sendall(one * 10)
            said = b""
            while said.count(b"HTTP/1.1 ") < 10:
                said += (piece := link.recv(65536))
                if not piece:
                    raise ConnectionResetError
        except OSError:
            link.close()
            link = socket.create_connection(("127.0.0.1", port), timeout=20)
        done += said.count(b"HTTP/1.1 ")
    print(f"{done / seconds:.0f}")


def opened(port: int, data: bytes, kept: contextlib.ExitStack) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=20)
    kept.enter_context(link).sendall(data)
    return link


def press(port: int, seconds: float) -> str:
    """Open sockets, begin to flood, and ask meanwhile."""
    with contextlib.ExitStack() as kept:
        for _ in range(SILENT):
            opened(port, b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n", kept)
        words = [sys.executable, __file__, "--flood", str(port), "--seconds", str(seconds)]
        flooding = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        found = asks(port, seconds - 1)
        rate = flooding.communicate()[0].strip() or "no"
        return f"{found}; {rate} requests/s without a token are answered"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--flood", type=int, default=0, help="used by itself")
    given = parser.parse_args()
    if given.flood:
        flood(given.flood, given.seconds)
        return
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for _ in range(given.turns):
        for python in [sys.executable, *given.pythons]:
            with service(python) as port:
                print(f"{python}, alone: {asks(port, given.seconds / 2)}", flush=True)
                print(f"{python}, pressed: {press(port, given.seconds)}", flush=True)


if __name__ == "__main__":
    main()
