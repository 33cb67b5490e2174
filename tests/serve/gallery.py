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
from manyarms.serve.owned import Owned

from manyarms.live.databases import Database, database_of
from manyarms.serve import messages as m

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


class _Past(Owned):
    """An experiment whose clock is ours."""

    at = 0.0

    @property
    def now(self) -> float:
        return self.at


def play(
    database: Database,
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
    assert database.create(name, text, state, "secret", **columns)
    row = database.find(name)
    assert row is not None
    assert database.acquire(name, "gallery", row.epoch)
    asyncio.run(_played(database, name, keyed, pulls, mean, delay, every))
    database.note("anna", name, "create")


async def _played(
    database: Database,
    name: str,
    keys: list[str],
    pulls: int,
    mean: Callable[[int], float],
    delay: Callable[[random.Random, float], float],
    every: float,
) -> None:
    row = database.find(name)
    assert row is not None
    owned = _Past.load(database, row)
    owned.start(lambda owned: None)
    begun = time.time() - pulls * every
    owned.at = begun
    if keys:
        for some in _pieces(enumerate(keys), 50_000):
            database.add_arms(row.id, row.epoch, some)
        owned.add_arms(len(keys))
    dice = random.Random(name)
    post: list[tuple[float, int, float]] = []  # (when, pull, reward), the earliest first
    for k in range(pulls):
        owned.at = begun + k * every
        while post and post[0][0] <= owned.at:
            _, pull, reward = heapq.heappop(post)
            owned.tell(pull, reward)
        given = owned.ask(1, f"worker {k % 3}" if k > pulls - 50 else None, None, "")
        (pull,) = given.pulls[-1:]
        reward = float(dice.random() < mean(given.arms[pull]))
        heapq.heappush(post, (owned.at + delay(dice, reward), pull, reward))
        if k % 5000 == 4999:
            _commit(database, owned)
    _commit(database, owned)
    assert owned.live is not None
    database.save(owned.id, owned.head, owned.engine, *owned.snapshot(), epoch=owned.epoch)
    database.release(owned.id, owned.epoch)


def _commit(database: Database, owned: Owned) -> None:
    assert database.commit([owned.take().batch]) == [True]


def _pieces(rows: Iterable[Any], size: int) -> Iterable[list[Any]]:
    some = iter(rows)
    while piece := list(itertools.islice(some, size)):
        yield piece


def fill(path: Path, *, arms: int = 20_000, pulls: int = 20_000) -> str:
    """Make a gallery; return the store's address."""
    url = f"sqlite:///{path}"
    database = database_of(url)
    database.open()

    def good(arm: int) -> float:
        return 0.62 if arm % 97 == 0 else 0.1 + 0.35 * (arm * 2654435761 % 1000) / 1000

    def slow(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 8) if reward else 45.0 + dice.expovariate(1 / 30)

    def plain(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 20)

    captions = (f"caption {k:06d}" for k in range(arms))
    spec = m.Spec(policy="prospector", horizon=2 * pulls, seed=3)
    play(database, "captions", spec, keys=captions, pulls=pulls, mean=good, delay=plain, every=1.3)
    spec = m.Spec(policy="moss", horizon=6000)
    play(database, "hostile", spec, keys=HOSTILE, pulls=3000, mean=good, delay=slow, every=1.0)
    play(database, "buttons", m.Spec(policy="moss", n_arms=4, horizon=2000), pulls=2000,
         mean=lambda arm: 0.1 + 0.25 * arm, every=20.0)  # fmt: skip
    text = msgspec.json.encode(m.Spec()).decode()
    assert database.create("new", text, "empty", "secret", keyed=1, n_arms=0)
    database.close()
    return url
