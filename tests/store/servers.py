"""A PostgreSQL server on loopback for one run of the tests."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

_NEEDED = "MANYARMS_NEEDS_POSTGRES"


def check_postgres() -> None:
    """Skip the test if PostgreSQL is not installed; fail where it must not be skipped."""
    if _programs() is None or not hasattr(os, "getuid"):
        reason = "PostgreSQL is not installed (apt-get install postgresql)"
        if os.environ.get(_NEEDED):
            pytest.fail(reason)
        pytest.skip(reason)


def new_address() -> str:
    """Return the address of an empty schema of the shared server."""
    import psycopg

    check_postgres()
    schema = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_shared(), autocommit=True) as link:
        link.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{_shared()}?options=-csearch_path%3D{schema}"


def _programs() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@functools.cache
def _shared() -> str:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(_server())


@contextlib.contextmanager
def _server() -> Iterator[str]:
    """Start a server that is not run by root; yield its address."""
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="manyarms-postgres-"))
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    subprocess.run(
        [str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
         "--locale=C", "--no-sync"],
        check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "shared_buffers": "64MB",
        "log_min_messages": "panic",
    }
    words = [f"-c{name}={value}" for name, value in settings.items()]
    process = subprocess.Popen(
        [str(programs / "postgres"), "-D", data, *words],
        user=user, cwd=folder, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        _wait_for(address)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(address: str) -> None:
    import psycopg

    end = time.monotonic() + 120
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
