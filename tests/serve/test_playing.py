"""What a service does between two commits, seen from within: loads, deletions, windows, names."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from manyarms.serve import api, experiment, look
from manyarms.serve.requests import BodyClock, Request
from manyarms.serve.service import Service, Settings

pytestmark = pytest.mark.interpreted


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Service]:
    """A service that leads."""
    service = Service(Settings(f"sqlite:///{folder}/x.db?sync=never"), "secret")
    await service.start()
    assert service.leader.leads
    try:
        yield service
    finally:
        await service.close()


async def send(
    service: Service, handler: str, name: str, body: Any = None, **headers: str
) -> dict[str, Any]:
    """Let a handler of the API answer a request for an experiment."""
    text = json.dumps(body or {}).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": text}

    given = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    scope = {"headers": given, "query_string": b""}
    request = Request(scope, receive, {"experiment": name}, BodyClock())
    answer: dict[str, Any] = json.loads((await api.HANDLERS[handler](service, request)).body)
    return answer


def during_commits(
    service: Service, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Awaitable[Any]]
) -> None:
    """Do something whenever requests are applied and not committed yet."""
    commit = service.leader.store.commit

    async def late(group: Any) -> None:
        await work()
        await commit(group)

    monkeypatch.setattr(service.leader.store, "commit", late)


# Names of arms


def test_asks_have_keys_whatever_is_viewed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (experiment, look):
        monkeypatch.setattr(module, "_MOST_NAMES", 2, raising=False)

    async def main() -> None:
        async with serving(tmp_path) as service:
            await send(service, "put", "x", {"policy": "prospector", "seed": 1})
            await send(service, "add_arms", "x", {"keys": [f"key {k}" for k in range(20)]})
            given = await send(service, "ask", "x", {"k": 5}, idempotency_key="a")
            assert all(one["arm"].startswith("key ") for one in given["pulls"])

            async def view_all() -> None:
                for number in range(20):
                    seen = await service.view("arm_at", "x", number=number)
                    assert seen.arm == f"key {number}"

            during_commits(service, monkeypatch, view_all)
            again = await send(service, "ask", "x", {"k": 5}, idempotency_key="a")
            assert again["pulls"] == given["pulls"]

    asyncio.run(main())


def test_views_have_keys_when_others_were_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "_MOST_NAMES", 2)

    async def main() -> None:
        async with serving(tmp_path) as service:
            await send(service, "put", "x", {"policy": "prospector", "seed": 1})
            await send(service, "add_arms", "x", {"keys": [f"key {k}" for k in range(20)]})
            given = await send(service, "ask", "x", {"k": 9})
            service.leader.forget(service.leader.games["x"])  # it is loaded anew, without names
            for one in given["pulls"][:3]:
                number = int(one["arm"].removeprefix("key "))
                assert (await service.view("arm_at", "x", number=number)).arm == one["arm"]
            shown = await service.view("in_flight", "x")
            assert [one.arm for one in shown.oldest] == [one["arm"] for one in given["pulls"]]

    asyncio.run(main())
