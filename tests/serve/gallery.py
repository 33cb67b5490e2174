"""Experiments with a history, for tests and screenshots of the dashboard."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.live.settings import check_settings
from manyarms.store import open_store

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


def play(
    path: Path,
    name: str,
    policy: ma.Policy,
    *,
    pulls: int,
    mean: Callable[[int], float],
    delay: Callable[[random.Random, float], float] = lambda dice, reward: 1.0,
    every: float = 1.0,
    **settings: Any,
) -> None:
    """Record an experiment with one pull every `every` seconds until now."""
    begun = at = time.time() - pulls * every
    numbers = {arm: k for k, arm in enumerate(settings.get("arms", ()))}
    dice = random.Random(name)
    rewards: list[tuple[float, int, float]] = []  # (when, pull, reward), earliest first
    with policy.live(store=path, name=name, now=lambda: at, **settings) as live:
        for k in range(pulls):
            at = begun + k * every
            while rewards and rewards[0][0] <= at:
                _, number, reward = heapq.heappop(rewards)
                live.tell(number, reward)
            pull = live.ask()
            reward = float(dice.random() < mean(numbers.get(pull.arm, pull.arm)))
            heapq.heappush(rewards, (at + delay(dice, reward), pull.id, reward))


def fill(path: Path, *, arms: int = 20_000, pulls: int = 20_000) -> str:
    """Record the experiments; return the store's address."""

    def good(arm: int) -> float:
        return 0.62 if arm % 97 == 0 else 0.1 + 0.35 * (arm * 2654435761 % 1000) / 1000

    def slow(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 8) if reward else 45.0 + dice.expovariate(1 / 30)

    def plain(dice: random.Random, reward: float) -> float:
        return dice.expovariate(1 / 20)

    captions = [f"caption {k:06d}" for k in range(arms)]
    play(path, "captions", ma.Prospector(), arms=captions, horizon=2 * pulls, seed=3,
         pulls=pulls, mean=good, delay=plain, every=1.3)  # fmt: skip
    play(path, "hostile", ma.MOSS(), arms=HOSTILE, horizon=6000, seed=0,
         pulls=3000, mean=good, delay=slow)  # fmt: skip
    play(path, "buttons", ma.MOSS(), n_arms=4, horizon=2000, seed=0, pulls=2000,
         mean=lambda arm: 0.1 + 0.25 * arm, every=20.0)  # fmt: skip
    with open_store(path) as store:  # without arms, as the service creates it
        empty = dict.fromkeys(("horizon", "control", "reward", "epsilon", "window", "missing"))
        given = empty | {"share": 0.05, "hold": False, "reward_range": (0.0, 1.0)}
        settings = check_settings(ma.Prospector(), n_arms=0, names="text", seed=0, **given)
        store.create("new", settings.to_spec())
    return f"sqlite:///{path}"
