"""A process that is told to end does so soon, whatever it is doing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from manyarms.live.databases import Database, UnreachableError
from manyarms.serve.batch import LostError
from manyarms.serve.forked import forked
from manyarms.serve.stores import Readers, SQLiteStore

from manyarms.serve import server
from manyarms.serve.leader import Leader
from tests.serve.machines import call, in_thread, opened, path_of, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def test_a_copy_ends_with_who_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    waitpid = os.waitpid

    def noted(child: int, options: int) -> tuple[int, int]:
        child, status = waitpid(child, options)
        ended.append(os.waitstatus_to_exitcode(status))
        return child, status

    monkeypatch.setattr(os, "waitpid", noted)

    def work() -> bytes:
        time.sleep(5)
        return b""

    async def cancel() -> None:
        task = asyncio.create_task(forked(work))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert ended == [-signal.SIGKILL]


def test_a_copy_hears_signals_itself() -> None:
    async def compute() -> bytes:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
        return await forked(lambda: signal.getsignal(signal.SIGTERM).name.encode())  # type: ignore[union-attr]

    assert asyncio.run(compute()) == b"SIG_DFL"


def test_a_copy_has_no_files_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the system says that there is no limit, and has no call that closes many."""

    def one_by_one(low: int, high: int) -> None:
        for file in range(low, min(high, 300)):
            with contextlib.suppress(OSError):
                os.close(file)

    monkeypatch.setattr(os, "sysconf", lambda name: -1)
    monkeypatch.setattr(os, "closerange", one_by_one)
    read, write = os.pipe()
    os.dup2(read, 200)

    def work() -> bytes:
        try:
            os.fstat(200)
        except OSError:
            return b"closed"
        return b"open"

    try:
        assert asyncio.run(forked(work)) == b"closed"
    finally:
        for file in (read, write, 200):
            os.close(file)


def test_a_copy_says_what_was_wrong() -> None:
    def work() -> bytes:
        raise ValueError("no such arm")

    with pytest.raises(OSError, match=r"ValueError\('no such arm'\)"):
        asyncio.run(forked(work))


def test_a_log_is_not_read_to_its_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with opened(url):
        readers = Readers(url, 1, "loader")
    begun: list[int] = []

    def load(database: Database) -> None:
        for _ in range(300):
            list(database.events(1, 0))
            begun.append(1)
            time.sleep(0.01)

    async def end() -> None:
        loading = asyncio.create_task(readers.read(load))
        while not begun:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(readers.close)
        await loading

    with pytest.raises(UnreachableError):
        asyncio.run(end())


def test_a_request_under_way_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, asked = server.config, []

    def impatient(app: Any, settings: Any) -> Any:
        made = config(app, settings)
        made.timeout_graceful_shutdown = 0.1  # type: ignore[assignment]
        return made

    async def never(self: Leader, name: str) -> None:
        asked.append(name)
        await asyncio.sleep(60)

    monkeypatch.setattr(server, "config", impatient)
    monkeypatch.setattr(Leader, "find", never)
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call, one.port, "POST", f"{path_of('x')}/asks", {})
        wait(lambda: asked)
        one.stop()
        status, said = answer.result()
    assert (status, said["code"]) == (503, "unknown")


def test_a_database_that_goes_away_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with in_thread(url) as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200

        async def away(self: SQLiteStore, function: Any) -> None:
            raise LostError("away")

        monkeypatch.setattr(SQLiteStore, "write", away)
        one.stop()
    assert one.failure is None
    assert not (tmp_path / "x.db.lock").exists()
