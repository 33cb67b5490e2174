"""What a service does between two commits, seen from within: loads, deletions, windows, names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from manyarms.live.databases import UnreachableError
from manyarms.serve.batch import LostError
from manyarms.serve.game import Game

from manyarms.serve import experiment, look, tables
from manyarms.serve import leader as leader_module
from manyarms.serve.access import Caller
from manyarms.serve.errors import RefusedError
from manyarms.serve.requests import Request
from manyarms.serve.routes import ROUTES
from manyarms.serve.service import Service, Settings

pytestmark = pytest.mark.interpreted


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Service]:
    """A service that leads."""
    store = f"sqlite:///{folder}/x.db?sync=never"
    tables.opened(store).close()  # as a process that starts does
    service = Service(Settings(store))
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
    request = Request(scope, receive)
    request.arguments = {"experiment": name}
    (route,) = [route for route in ROUTES if route.name == handler]
    if route.request is not None:
        request.body = await request.read(route.request)
    answer: dict[str, Any] = json.loads((await route.handler(service, request)).body)
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


async def until(true: Callable[[], Any], seconds: float = 20) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


# Names of arms


def test_asks_have_keys_whatever_is_viewed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (experiment, look):
        monkeypatch.setattr(module, "_MOST_NAMES", 2, raising=False)

    async def main() -> None:
        async with serving(tmp_path) as service:
            await send(service, "put", "x", {"policy": "prospector", "seed": 1})
            await send(service, "add_arms", "x", {"names": [f"key {k}" for k in range(20)]})
            given = await send(service, "ask", "x", {"k": 5}, idempotency_key="a")
            assert all(one["arm"].startswith("key ") for one in given["pulls"])

            async def view_all() -> None:
                for number in range(20):
                    seen = await service.view("arm", "x", key=f"key {number}")
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
            await send(service, "add_arms", "x", {"names": [f"key {k}" for k in range(20)]})
            given = await send(service, "ask", "x", {"k": 9})
            service.leader.forget(service.leader.games["x"])  # it is loaded anew, without names
            for one in given["pulls"][:3]:
                assert (await service.view("arm", "x", key=one["arm"])).arm == one["arm"]
            shown = await service.view("pending", "x")
            assert [one.arm for one in shown.oldest] == [one["arm"] for one in given["pulls"]]

    asyncio.run(main())


# Loads


def test_a_load_of_an_earlier_term_is_not_that_of_a_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = [threading.Event() for _ in range(3)]
    begun: list[threading.Event] = []
    load = Game.load.__func__  # type: ignore[attr-defined]

    def gated(cls: Any, database: Any, row: Any) -> Any:
        begun.append(gates[len(begun)])
        begun[-1].wait(20)
        return load(cls, database, row)

    async def main() -> None:
        async with serving(tmp_path) as service:
            leader = service.leader
            await send(service, "put", "x", {"n_arms": 9})
            leader.forget(leader.games["x"])
            monkeypatch.setattr(Game, "load", classmethod(gated))
            earlier = asyncio.create_task(leader.find("x"))
            await until(lambda: len(begun) == 1)
            leader.lose(LostError("for a test"))
            await until(lambda: not leader.leads)
            await until(lambda: leader.leads)
            later = asyncio.create_task(leader.find("x"))
            await until(lambda: len(begun) == 2)
            gates[0].set()
            with pytest.raises(RefusedError, match="Another process leads"):
                await earlier
            joins = asyncio.create_task(leader.find("x"))
            gates[2].set()
            await asyncio.sleep(0.05)
            gates[1].set()
            assert await later is await joins is leader.games["x"]
            assert len(begun) == 2

    try:
        asyncio.run(main())
    finally:
        for gate in gates:
            gate.set()


def test_whoever_waits_for_an_object_that_was_replaced_hears_that_it_is_lost(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as service:
            await send(service, "put", "x", {"n_arms": 9})
            replaced = service.leader.games.pop("x")
            waiter = replaced.committed()
            service.leader._forget()
            assert isinstance(waiter.exception(), LostError)

    asyncio.run(main())


# Deletions


def test_nobody_finds_an_experiment_while_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as service:
            leader = service.leader
            for name in ("x", "other"):
                await send(service, "put", name, {"n_arms": 9})
            await send(service, "ask", "x", {"k": 2})
            await send(service, "stop", "x")
            await leader.snapshots.save(leader.games["x"])  # after the one that this began
            other, write, refusals = leader.games["other"], leader.store.write, []

            async def late(function: Any) -> Any:
                monkeypatch.setattr(leader.store, "write", write)
                for handler, body in (("get", {}), ("delete", {}), ("abandon", {"pulls": [0]})):
                    try:
                        await send(service, handler, "x", body)
                    except RefusedError as error:
                        refusals.append((error.failure.status, error.failure.message))
                return await write(function)

            monkeypatch.setattr(leader.store, "write", late)
            deleting = send(service, "delete", "x")
            telling = send(service, "tell", "x", {"tells": [{"pull": 1, "reward": 1.0}]})
            done = await asyncio.gather(deleting, telling, return_exceptions=True)
            assert done[0] == {"name": "x", "state": "stopped"}
            assert refusals == [(503, "'x' is being deleted. Nothing was done.")] * 3
            with pytest.raises(RefusedError, match="There is no experiment 'x'"):
                await send(service, "get", "x")
            await send(service, "ask", "other")
            assert (leader.terms, leader.games["other"]) == (1, other)

    asyncio.run(main())


# Windows


def test_the_list_unloads_nothing_whose_window_is_watched(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as service:
            leader = service.leader
            await send(service, "put", "x", {"n_arms": 9, "window": 1.0})
            await send(service, "ask", "x", {"k": 3})
            leader.forget(leader.games["x"])  # as after a kill: the list must load it
            listed = await service.listing(Caller("a", "admin", None))
            assert [one.name for one in listed.experiments] == ["x"]
            await until(lambda: leader.games["x"].committed_head == 6)

    asyncio.run(main())


def test_windows_are_watched_though_the_first_read_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_windows, reads = tables.with_windows, 0

    def away_at_first(database: Any) -> list[str]:
        nonlocal reads
        reads += 1
        if reads <= 4:
            raise UnreachableError("away")
        return with_windows(database)

    async def main() -> None:
        async with serving(tmp_path) as service:
            await send(service, "put", "x", {"n_arms": 9, "window": 60.0})
            await send(service, "ask", "x", {"k": 3})
        monkeypatch.setattr(tables, "with_windows", away_at_first)
        monkeypatch.setattr(leader_module, "BEAT", 0.05)
        async with serving(tmp_path) as service:
            await until(lambda: "x" in service.leader.games, 5)

    asyncio.run(main())


def test_many_windows_that_end_together_leave_others_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "_MOST_EXPIRED", 20, raising=False)
    sizes: list[int] = []

    async def main() -> None:
        async with serving(tmp_path) as service:
            leader = service.leader
            await send(service, "put", "x", {"n_arms": 9, "window": 0.3})
            await send(service, "ask", "x", {"k": 50})
            commit = leader.store.commit

            async def noted(group: Any) -> None:
                sizes.extend(len(batch.events) for batch in group)
                await commit(group)

            monkeypatch.setattr(leader.store, "commit", noted)
            await until(lambda: leader.games["x"].committed_head == 100)

    asyncio.run(main())
    assert sizes == [20, 20, 10]


# Experiments that nobody uses


def test_each_idle_experiment_is_unloaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_module, "BEAT", 0.01)
    begun: list[str] = []

    async def main() -> None:
        async with serving(tmp_path) as service:
            leader, go = service.leader, asyncio.Event()
            for name in ("fails", "x", "y"):
                await send(service, "put", name, {"n_arms": 9})

            async def slowly(one: experiment.Experiment) -> None:
                begun.append(one.name)
                await go.wait()
                if one.name == "fails":
                    raise ZeroDivisionError

            monkeypatch.setattr(leader, "before_unloading", slowly)
            for one in leader.games.values():
                one.used -= 2 * leader_module.IDLE
            await until(lambda: begun)
            await asyncio.sleep(0.1)
            at_once = len(begun)
            go.set()
            await until(lambda: set(leader.games) == {"fails"})
            monkeypatch.setattr(leader, "before_unloading", None)
            assert at_once == 1

    asyncio.run(main())
    assert sorted(begun) == ["fails", "x", "y"]


# Asks that are remembered


def test_keys_of_asks_take_little_memory(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as service:
            leader = service.leader
            await send(service, "put", "x", {"n_arms": 9})
            given = [await send(service, "ask", "x", {"k": 100}, idempotency_key="a")]
            await send(service, "observe", "x", {"arm": 3, "rewards": [1.0]})
            given.append(await send(service, "ask", "x", {"k": 40}, idempotency_key="b"))
            (gap,) = set(range(100, 140)) - {pull["pull"] for pull in given[1]["pulls"]}
            expected = [range(100), [pull for pull in range(100, 141) if pull != gap]]
            for _ in range(2):
                kept = (await leader.find("x")).keys
                assert [kept[key].pulls for key in "ab"] == expected
                again = await send(service, "ask", "x", {"k": 100}, idempotency_key="a")
                assert again == given[0]
                again = await send(service, "ask", "x", {"k": 40}, idempotency_key="b")
                assert again == given[1]
                leader.forget(leader.games["x"])  # and the same after it was loaded anew

    asyncio.run(main())
