"""Tests with the fixtures `address` or `store` run on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyarms.store import EventStore, open_store, postgres
from tests.store.servers import new_address

Opener = Callable[[], EventStore]


@pytest.fixture(autouse=True)
def _patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent the server from ending leaders on a busy machine."""
    monkeypatch.setattr(postgres, "SILENCE", 300.0)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.patient)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an address without a store."""
    return new_address() if request.param == "postgres" else f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def opened(address: str) -> Iterator[Opener]:
    """Return a function that opens the same store again, as new processes do."""
    stores = []

    def again() -> EventStore:
        stores.append(open_store(address))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opener) -> EventStore:
    """Return an open, empty store."""
    return opened()
