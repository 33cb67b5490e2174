"""A node for the tests of a module, and stores of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server

from manyarms.serve import access, leader, service
from manyarms.store import postgres
from tests.serve.machines import InThread, in_thread, shared_postgres


@pytest.fixture(scope="session", autouse=True)
def _quickly() -> Iterator[None]:
    """Make servers in threads end at once; normally they check ten times a second."""
    sooner = vars(asyncio) | {"sleep": lambda seconds: asyncio.sleep(seconds / 10)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**sooner))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patiently() -> Iterator[None]:
    """Prevent timeouts of servers in threads on a busy machine, and let tests move the clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "SILENCE", 300.0)
        patch.setattr(service, "_SETTLING", 60.0)
        patch.setattr(leader, "_ENDING", 60.0)
        patch.setattr(leader, "_LONGEST_PAUSE", 0.1)
        patch.setattr(access, "_PAUSE", 0.0)
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Run a node on SQLite."""
    with in_thread(f"sqlite:///{tmp_path_factory.mktemp('serve')}/serve.db") as one:
        yield one


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty SQLite file, or of the shared PostgreSQL server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/serve.db"
    return shared_postgres()
