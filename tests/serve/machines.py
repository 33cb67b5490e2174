"""Processes for tests of the service: nodes and a PostgreSQL server, on loopback."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from manyarms.serve import clock, local_token
from manyarms.serve.access import digest_of, new_token
from manyarms.store import EventStore, ExperimentRecord, Token, open_store

__all__ = [
    "TOKEN",
    "InThread",
    "Node",
    "Postgres",
    "call",
    "drop_token",
    "free_port",
    "in_thread",
    "made_token",
    "new_name",
    "node",
    "opened",
    "path_of",
    "postgres",
    "postgres_folder",
    "request",
    "row_of",
    "shared_postgres",
    "wait",
]

TOKEN = "ma_for_tests_and_nothing_else"
_NEEDED = "MANYARMS_NEEDS_POSTGRES"


def new_name() -> str:
    """Return an unused name of an experiment."""
    return f"x{uuid.uuid4().hex[:8]}"


def path_of(name: str) -> str:
    """Return the URL path of an experiment; its name may be any text."""
    return f"/v1/experiments/{quote(name, safe='')}"


def wait(true: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.02)


@contextlib.contextmanager
def opened(store: str) -> Iterator[EventStore]:
    """Open a store."""
    with open_store(store) as one:
        yield one


def made_token(store: str, name: str, role: str, *, expires: float | None = None) -> str:
    """Return a new token, which expires after `expires` seconds."""
    token, now = new_token(), clock.now()
    until = None if expires is None else now + expires
    with opened(store) as one:
        one.add_token(Token(name, role, digest_of(token), now, until))
    return token


def drop_token(store: str, name: str) -> None:
    """Revoke a token."""
    with opened(store) as one:
        assert local_token.remove_token(one, name)


def row_of(store: EventStore, name: str) -> ExperimentRecord:
    """Return the record of an existing experiment."""
    found = store.find(name)
    assert found is not None
    return found


def free_port() -> int:
    """Return a free port below those of outgoing connections, which could take it first."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def request(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, Any] | None = None,
    *,
    timeout: float = 60,
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request; return the answer and its body."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as link:
        link.request(method, path, body, headers or {})
        answer = link.getresponse()
        return answer, answer.read()


def call(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = TOKEN,
    timeout: float = 60,
    **headers: Any,
) -> tuple[int, Any]:
    """Send a request; return the status and the answer, decoded if it is JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        named["Authorization"] = f"Bearer {token}"
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    answer, text = request(port, method, path, data, named, timeout=timeout)
    kind = answer.headers.get("content-type", "")
    return answer.status, json.loads(text) if text and kind == "application/json" else text


class Node:
    """A node in a new process."""

    def __init__(self, store: str, *words: str) -> None:
        self.store, self.port, self._words = store, free_port(), words
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True) -> Node:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "manyarms", "serve", "--store", self.store),
                *("--port", str(self.port), "--quiet", *self._words),
            ],
            env=os.environ | {"MANYARMS_TOKEN": TOKEN},
            stdout=subprocess.DEVNULL,
        )
        if wait:
            self.wait()
        return self

    def wait(self, seconds: float = 120) -> None:
        self.wait_for("/readyz", seconds)

    def wait_for(self, path: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, "the node has ended"
            with contextlib.suppress(OSError, http.client.HTTPException):
                if call(self.port, "GET", path, timeout=10)[0] == 200:
                    return
            time.sleep(0.02)
        raise TimeoutError(f"no node at {self.address} after {seconds} s")

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


class InThread:
    """A node in a thread of this process, which starts fast and is included in coverage."""

    def __init__(self, store: str, **settings: Any) -> None:
        self.store, self.port, self._settings = store, free_port(), settings
        self._ready = threading.Event()
        self._end: Callable[[], None] | None = None
        self.said: list[str] = []
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _run(self) -> None:
        from manyarms.serve.server import loop_factory, serve
        from manyarms.serve.service import ServerSettings

        def ready(end: Callable[[], None]) -> None:
            self._end = end
            self._ready.set()

        settings = ServerSettings(store=self.store, port=self.port, **self._settings)
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve(settings, self.said.append, ready=ready))
        except BaseException as error:
            self.failure = error
            self._ready.set()

    def start(self) -> InThread:
        self._thread.start()
        assert self._ready.wait(120)
        if self.failure is not None:
            raise self.failure
        return self

    def wait_until_ready(self, seconds: float = 120) -> None:
        wait(lambda: call(self.port, "GET", "/readyz", token=None)[0] == 200, seconds)

    def stop(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()
        self._thread.join(120)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def in_thread(store: str, **settings: Any) -> Iterator[InThread]:
    """Run a node in a thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYARMS_TOKEN", TOKEN)
        one = InThread(store, **settings).start()
        try:
            yield one
        finally:
            one.stop()


@contextlib.contextmanager
def node(store: str) -> Iterator[Node]:
    """Run a node."""
    one = Node(store).start()
    try:
        yield one
    finally:
        one.kill()


def postgres_folder() -> Path | None:
    """Return the folder of PostgreSQL's programs."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Postgres:
    """A PostgreSQL server on loopback, in a new folder, not run as root."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        programs = postgres_folder()
        assert programs is not None
        self._programs, self._folder, self._fsync = programs, folder, fsync
        self._user = "postgres" if os.getuid() == 0 else None
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _run(self, *words: str) -> None:
        subprocess.run(
            words, check=True, user=self._user, cwd=self._folder, stdout=subprocess.DEVNULL
        )

    def make(self) -> Postgres:
        if self._user:
            import pwd  # not on Windows

            who = pwd.getpwnam(self._user)
            os.chown(self._folder, who.pw_uid, who.pw_gid)
        self._run(
            str(self._programs / "initdb"), "-D", str(self._folder / "data"), "-A", "trust",
            "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        return self

    def start(self) -> Postgres:
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if self._fsync else "off",
            "shared_buffers": "64MB",
            "logging_collector": "off",
            "log_min_messages": "panic",
        }
        words = [f"-c{name}={value}" for name, value in settings.items()]
        self.process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self._folder / "data"), *words],
            user=self._user,
            cwd=self._folder,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            import psycopg

            with contextlib.suppress(psycopg.Error):
                psycopg.connect(self.url, connect_timeout=2).close()
                return self
            time.sleep(0.05)
        raise TimeoutError("PostgreSQL does not start")

    def crash(self) -> None:
        """Crash the server: nothing is written, and the next start recovers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(120)


@functools.cache
def _shared() -> str:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgres()).url


def shared_postgres() -> str:
    """Return the address of a shared PostgreSQL server; skip the test if it is not installed."""
    check_postgres()
    return _shared()


def check_postgres() -> None:
    """Without PostgreSQL, skip the test, or fail if it must run."""
    if postgres_folder() is None or not hasattr(os, "getuid"):
        reason = "PostgreSQL is not installed (apt-get install postgresql)"
        if os.environ.get(_NEEDED):
            pytest.fail(reason)
        pytest.skip(reason)


@contextlib.contextmanager
def postgres(*, fsync: bool = False) -> Iterator[Postgres]:
    """Run a PostgreSQL server; skip the test if it is not installed."""
    check_postgres()
    folder = Path(tempfile.mkdtemp(prefix="manyarms-postgres-"))
    server = Postgres(folder, fsync=fsync).make()
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
