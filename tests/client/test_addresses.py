"""A client with the addresses of two processes, a leader and a standby that takes over."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.client import AsyncRemote
from tests.client.comparison import plain, play
from tests.serve.machines import TOKEN, Node, new_name, shared_postgres

pytestmark = pytest.mark.interpreted


@contextlib.contextmanager
def two(store: str) -> Iterator[list[Node]]:
    """Run a leader and a standby."""
    both = [Node(store), Node(store)]
    try:
        both[0].start()
        both[1].start(wait=False).wait_for("/healthz")
        yield both
    finally:
        for one in both:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                one.signal(signal.SIGCONT)
            one.kill()


def urls_of(nodes: Iterable[Node]) -> list[str]:
    return [f"http://{one.address}" for one in nodes]


class Failures:
    """Stop, kill or freeze the leader while requests are pending."""

    def __init__(self, nodes: list[Node], events: dict[int, str]) -> None:
        self._leader, self._other = nodes
        self._events = events
        self._thread = threading.Thread()

    def __call__(self, turn: int) -> None:
        if turn in self._events:
            self.wait()
            self._thread = threading.Thread(target=self._fail, args=(self._events[turn],))
            self._thread.start()

    def wait(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _fail(self, what: str) -> None:
        threading.Event().wait(random.uniform(0.0, 0.01))
        if what == "freeze":
            self._leader.signal(signal.SIGSTOP)
            self._other.wait()
            self._leader.signal(signal.SIGCONT)
        else:
            {"kill": self._leader.kill, "stop": self._leader.stop}[what]()
            self._other.wait()
            self._leader.start(wait=False).wait_for("/healthz")
        self._leader, self._other = self._other, self._leader


def compare(store: str, events: dict[int, str], **settings: Any) -> None:
    """Play while leaders fail, and compare with a handle."""
    policy, spec = ma.MOSSPlusPlus(beta=0.6), {"n_arms": 300, "horizon": 500, "seed": 5}
    live = policy.live(**spec)  # type: ignore[arg-type]
    with two(store) as nodes:
        urls = urls_of(reversed(nodes))  # the standby comes first
        made = ma.Remote.create(urls, new_name(), policy, token=TOKEN, retry_for=300, **spec)  # type: ignore[arg-type]
        assert made.url == urls[1]
        assert any(
            one["name"] == made.experiment for one in ma.Remote.experiments(urls, token=TOKEN)
        )
        failures = Failures(nodes, events)
        with ma.Remote(urls, made.experiment, token=TOKEN, retry_for=300, **settings) as remote:
            assert play(remote, 1, before=failures) == play(live, 1)
            failures.wait()
            assert remote.progress() == live.progress()
            assert plain(remote.top(5)) == plain(live.top(5))


@pytest.mark.patient
def test_arms_are_those_of_a_handle_when_leaders_stop(tmp_path: Path) -> None:
    compare(f"sqlite:///{tmp_path}/serve.db", {15: "kill", 40: "stop"})


@pytest.mark.patient
def test_arms_are_those_of_a_handle_when_a_leader_is_frozen() -> None:
    compare(shared_postgres(), {15: "freeze", 40: "kill"}, timeout=2.0)


@pytest.mark.patient
def test_many_clients_lose_and_repeat_nothing_when_the_leader_is_killed(tmp_path: Path) -> None:
    with two(f"sqlite:///{tmp_path}/serve.db") as nodes:
        urls = urls_of(nodes)
        remote = ma.Remote.create(
            urls, "x", "moss", n_arms=50, token=TOKEN, horizon=9999, seed=1, retry_for=300
        )
        told: list[int] = []  # which the service has acknowledged

        killed = threading.Lock()

        def heard(*pulls: int) -> None:
            """Record pulls; kill the leader halfway."""
            told.extend(pulls)
            if len(told) > 60 and killed.acquire(blocking=False):
                nodes[0].kill()

        def threads(_: int) -> None:
            for _ in range(25):
                pull = remote.ask()
                remote.tell(pull, 1.0)
                heard(pull.id)

        async def task(remote: AsyncRemote) -> None:
            for _ in range(25):
                pulls = await remote.ask(2)
                await remote.tell_many([(pull, 0.0) for pull in pulls])
                heard(*(pull.id for pull in pulls))

        async def tasks() -> None:
            async with AsyncRemote(urls, "x", token=TOKEN, retry_for=300) as remote:
                await asyncio.gather(*(task(remote) for _ in range(4)))

        with ThreadPoolExecutor(6) as pool:
            work = [pool.submit(threads, k) for k in range(4)]
            work.append(pool.submit(asyncio.run, tasks()))
            for one in work:
                one.result(300)
        assert killed.locked()
        assert sorted(told) == list(range(300))
        seen = remote.progress()
        assert (seen.pulls, seen.told, seen.pending) == (300, 300, 0)
        assert seen.mean_reward == pytest.approx(1 / 3)
        assert remote.url == urls[1]
