"""One node for the tests of a module, on each kind of store where that matters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import uvicorn.server

from manyarms.live.databases import UnreachableError
from manyarms.serve import service
from manyarms.serve.committer import DatabaseThread
from manyarms.serve.scribe import TICK, Scribe, ScribeLink
from tests.serve.machines import InThread, in_thread, shared_postgres


class ScribeInThread(ScribeLink):
    """A scribe in a thread of this process: most tests need no second process."""

    async def start(self) -> None:
        url, owner = (self._environment[f"MANYARMS_SCRIBE_{name}"] for name in ("STORE", "OWNER"))
        self._thread = DatabaseThread(url, "scribe")
        await self._thread.start()
        self._scribe = Scribe(self._thread.database, owner)
        self._ticking = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            with contextlib.suppress(UnreachableError):
                await self._thread.call(lambda database: self._scribe.tick())
            await asyncio.sleep(TICK)

    async def _exchange(self, data: bytes) -> bytes:
        asked = msgspec.msgpack.decode(data)
        return msgspec.msgpack.encode(
            await self._thread.call(lambda database: self._scribe.answer(asked))
        )

    async def close(self) -> None:
        self._ticking.cancel()
        await self._thread.stop()


@pytest.fixture(scope="session", autouse=True)
def _quickly() -> Iterator[None]:
    """Let nodes in threads have scribes in threads, and end at once.

    `test_scribe` tries the process. The server looks ten times a second whether it is to end.
    """
    sooner = vars(asyncio) | {"sleep": lambda seconds: asyncio.sleep(seconds / 10)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "ScribeLink", ScribeInThread)
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**sooner))
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """A node on SQLite."""
    with in_thread(f"sqlite:///{tmp_path_factory.mktemp('serve')}/serve.db?sync=never") as one:
        yield one


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty SQLite, or of the one PostgreSQL of this run."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/serve.db?sync=never"
    return shared_postgres()
