"""Experiments with a past, made in a moment: what the dashboard is looked at with."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from manyarms.serve.stores import SQLiteStore

from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.experiment import Experiment

HOSTILE = [
    "<script>alert('arm')</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "left \u202eright\u2066 turned",
    "../../etc/passwd",
    "l o n g " * 110,
    "   ",
    "naïve café ☕ 日本語",
]


class _Past(Experiment):
    """An experiment whose clock is ours."""

    at = 0.0

    @property
    def now(self) -> float:
        return self.at


async def play(
    store: SQLiteStore,
    name: str,
    spec: m.Spec,
    *,
    keys: Iterable[str] = (),
    pulls: int,
    mean: Callable[[int], float],
    delay: Callable[[random.Random, float], float] = lambda dice, reward: 1.0,
    every: float = 1.0,
) -> None:
    """Create an experiment that was played until now, a pull every so many seconds."""
    keyed = list(keys)
    state = "running" if spec.n_arms else "empty"
    text = msgspec.json.encode(spec).decode()
    columns = {"keyed": int(spec.n_arms is None), "n_arms": spec.n_arms or 0}
    await store.write(lambda db: db.create(name, text, state, "secret", **columns))
    row = await store.write(lambda db: db.find(name))
    assert row is not None
    owned = await store.write(lambda db: _Past.load(db, row))
    owned.start(lambda owned: None)
    begun = time.time() - pulls * every
    owned.at = begun
    if keyed:
        for some in _pieces(enumerate(keyed), 50_000):
            await store.write(lambda db, some=some: tables.add_arms(db, row.id, some))  # type: ignore[misc]
        owned.add_arms(len(keyed))
    dice = random.Random(name)
    post: list[tuple[float, int, float]] = []  # (when, pull, reward), the earliest first
    for k in range(pulls):
        owned.at = begun + k * every
        while post and post[0][0] <= owned.at:
            _, pull, reward = heapq.heappop(post)
            owned.tell(pull, reward)
        given = owned.ask(1, None)
        (pull,) = given.pulls[-1:]
        reward = float(dice.random() < mean(given.arms[pull]))
        heapq.heappush(post, (owned.at + delay(dice, reward), pull, reward))
        if k % 5000 == 4999:
            await store.commit([owned.take()])
    await store.commit([owned.take()])
    await store.write(lambda db: db.save(owned.id, owned.head, *owned.snapshot()))


def _pieces(rows: Iterable[Any], size: int) -> Iterable[list[Any]]:
    some = iter(rows)
    while piece := list(itertools.islice(some, size)):
        yield piece


def fill(path: Path, *, arms: int = 20_000, pulls: int = 20_000) -> str:
    """Make a gallery; return the store's address."""
    url = f"sqlite:///{path}"
    asyncio.run(_fill(url, arms, pulls))
    return url


async def _fill(url: str, arms: int, pulls: int) -> None:
    tables.opened(url).close()  # as a process that starts does
    store = SQLiteStore(url, "gallery")
    await store.lead(lambda leader: None)

    def good(arm: int) -> float:
        return 0.62 if arm % 97 == 0 else 0.1 + 0.35 * (arm * 2654435761 % 1000) / 1000

    def slow(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 8) if reward else 45.0 + dice.expovariate(1 / 30)

    def plain(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 20)

    captions = (f"caption {k:06d}" for k in range(arms))
    spec = m.Spec(policy="prospector", horizon=2 * pulls, seed=3)
    await play(
        store, "captions", spec, keys=captions, pulls=pulls, mean=good, delay=plain, every=1.3
    )
    spec = m.Spec(policy="moss", horizon=6000)
    await play(store, "hostile", spec, keys=HOSTILE, pulls=3000, mean=good, delay=slow, every=1.0)
    await play(store, "buttons", m.Spec(policy="moss", n_arms=4, horizon=2000), pulls=2000,
               mean=lambda arm: 0.1 + 0.25 * arm, every=20.0)  # fmt: skip
    text = msgspec.json.encode(m.Spec()).decode()
    await store.write(lambda db: db.create("new", text, "empty", "secret", keyed=1, n_arms=0))
    await store.leave()
    store.close()
