"""A process that is asked to end does so, also during requests and if the store fails."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from manyarms.errors import StoreUnavailableError
from manyarms.serve import server
from manyarms.serve.loading import Loader
from manyarms.store import EventStore
from tests.serve.machines import call, in_thread, path_of, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def test_a_running_request_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, asked = server.config, list[str]()

    def impatient(app: Any, settings: Any) -> Any:
        made = config(app, settings)
        made.timeout_graceful_shutdown = 0.1  # type: ignore[assignment]
        return made

    async def never(self: Loader, name: str) -> None:
        asked.append(name)
        await asyncio.Event().wait()

    monkeypatch.setattr(server, "config", impatient)
    monkeypatch.setattr(Loader, "find", never)
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call, one.port, "POST", f"{path_of('x')}/asks", {})
        wait(lambda: asked)
        one.stop()
        status, said = answer.result()
    assert (status, said["code"]) == (503, "unknown")


def test_a_store_that_fails_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:
        assert call(one.port, "PUT", path_of("x"), {"n_arms": 9})[0] == 201
        assert call(one.port, "POST", f"{path_of('x')}/asks", {})[0] == 200

        def away(self: EventStore) -> None:
            raise StoreUnavailableError("away")

        monkeypatch.setattr(EventStore, "resign", away)
        one.stop()
    assert one.failure is None
