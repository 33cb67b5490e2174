"""One node for the tests of a module, on each kind of store where that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server

from manyarms.serve import leader, service
from manyarms.store import postgres
from tests.serve.machines import InThread, in_thread, shared_postgres


@pytest.fixture(scope="session", autouse=True)
def _quickly() -> Iterator[None]:
    """Let servers in threads end at once: they look ten times a second whether they are to."""
    sooner = vars(asyncio) | {"sleep": lambda seconds: asyncio.sleep(seconds / 10)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**sooner))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patiently() -> Iterator[None]:
    """Let no server in a thread give up because the machine is busy, and all see moved clocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "SILENCE", 300.0)
        patch.setattr(service, "_SETTLING", 60.0)
        patch.setattr(leader, "_ENDING", 60.0)
        patch.setattr(leader, "_LONGEST_PAUSE", 0.1)
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """A node on SQLite."""
    with in_thread(f"sqlite:///{tmp_path_factory.mktemp('serve')}/serve.db") as one:
        yield one


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty SQLite, or of the one PostgreSQL of this run."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/serve.db"
    return shared_postgres()
