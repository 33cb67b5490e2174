"""One node: what it does with experiments that are gone, broken, or left by others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.node import ServiceNode
from manyarms.serve.owned import Owned
from manyarms.serve.scribe import Scribe

from manyarms.live.databases import database_of
from manyarms.live.store import TOLD
from manyarms.serve.errors import BrokenError, LostError, RefusedError
from manyarms.serve.requests import Request
from manyarms.serve.service import Service, Settings
from manyarms.serve.views import VIEWS
from tests.serve.machines import call, in_thread, new_name, opened, row_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


def on_node(url: str, what: Callable[[ServiceNode], Awaitable[None]]) -> None:
    async def main() -> None:
        node = ServiceNode(url, "127.0.0.1:1")
        await node.start()
        try:
            await what(node)
        finally:
            await node.close()

    asyncio.run(main())


@pytest.fixture
def left(tmp_path: Path) -> str:
    """A store with an experiment that nobody can play, and a stopped one that holds a reward."""
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with in_thread(url) as one:
        for name in ("broken", "held"):
            path, spec = f"/v1/experiments/{name}", {"n_arms": 9, "window": 60, "early": "hold"}
            assert call(one.port, "PUT", path, spec)[0] == 201
            assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
            tell = {"tells": [{"pull": 0, "reward": 1.0}]}
            assert call(one.port, "POST", f"{path}/tells", tell)[0] == 200
        assert call(one.port, "POST", "/v1/experiments/held/stop")[0] == 200
    with opened(url) as database:
        database.run(
            """UPDATE experiments SET spec = '{"policy":"unheard-of"}' WHERE name = 'broken'"""
        )
    return url


def test_those_who_wait_are_told_when_an_experiment_is_dropped(left: str) -> None:
    async def drop(node: ServiceNode) -> None:
        owned = await node.find("held")
        assert isinstance(owned, Owned)
        waiting = owned.touch().done
        node.forget(owned)
        with pytest.raises(LostError):
            await asyncio.wait_for(waiting, 5)

    on_node(left, drop)


def test_a_dropped_handle_does_nothing_more(left: str) -> None:
    """A request may have waited with it: its successor must be heard, and the log stay as it is."""

    async def drop(node: ServiceNode) -> None:
        stale = await node.find("held")
        assert isinstance(stale, Owned)
        node.broke(stale, BrokenError("half changed"))
        fresh = await node.find("held")
        assert isinstance(fresh, Owned)
        waiting = fresh.touch().done
        for change in (stale.touch, lambda: stale.abandon(0), lambda: stale.add_arms(1)):
            with pytest.raises(LostError):
                change()
        await asyncio.wait_for(waiting, 5)
        assert stale.forming.batch.events == []

    on_node(left, drop)


def test_one_who_is_cancelled_takes_no_other_with_it(left: str) -> None:
    """A node that ends cancels the requests on the long way; others wait for the same commit."""

    async def cancel(node: ServiceNode) -> None:
        service = Service(Settings(store=left))
        service.node = node
        await node.find("held")
        held = Request({"headers": ()}, None, {"experiment": "held"})
        one, other = (asyncio.create_task(service.apply(held, Owned.touch)) for _ in range(2))
        await asyncio.sleep(0)
        one.cancel()
        with pytest.raises(RefusedError, match="about to end; whether this was done is not known"):
            await one
        await asyncio.wait_for(other, 5)

    on_node(left, cancel)


def test_a_node_adopts_what_waits_and_passes_over_what_is_broken(left: str) -> None:
    async def adopt(node: ServiceNode) -> None:
        with pytest.raises(RefusedError, match="cannot be played again"):
            await node.find("broken")
        row = await node.read(lambda database: database.find("broken"))
        assert row is not None
        assert row.owner == ""  # another version of the service may take it
        node._unplayable.clear()
        await node._adopt()
        assert list(node.owned) == ["held"]
        owned = node.owned["held"]
        owned.expire(time.time() + 60)
        assert not owned.held
        assert [row.kind for row in owned.forming.batch.events] == [TOLD]

    on_node(left, adopt)


def test_a_broken_experiment_does_not_end_the_scribe(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(left) as database:
        database.run("UPDATE experiments SET owner = 'me'")
        scribe = Scribe(database, "me")
        scribe.tick()
        assert scribe.status()["held"]["head"] == 2
        ask: dict[str, Any] = {"view": "summary", "experiment": "broken", "with": {}}
        assert scribe.answer(ask)["error"] == "unavailable"

        def fails(replica: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setitem(VIEWS, "summary", fails)
        assert scribe.answer(ask | {"experiment": "held"})["error"] == "unavailable"


def test_an_equal_address_is_not_enough(store: str) -> None:
    """Two nodes may both call themselves 127.0.0.1:1; the database knows whether one stands."""
    name = new_name()
    other = database_of(store)
    other.open()
    other.create(name, "{}", "running", "secret", n_arms=9)
    owner = "node 0123 at 127.0.0.1:1"
    other.hold_session(owner)
    other.acquire(name, owner, 0)
    row = row_of(other, name)

    async def look(node: ServiceNode) -> None:
        assert await node._may_take(row, node.address) is store.startswith("sqlite")
        other.close()
        await asyncio.sleep(0.2)
        assert await node._may_take(row, node.address)

    on_node(store, look)
