"""Shared by the scripts that measure peers: arms, timing and output."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter

WARM_UP_STEPS = 10
MOST_STEPS = 1000
MOST_SECONDS = 5.0


class BernoulliArms:
    """Bernoulli arms: a hundredth has mean 0.9, the others cycle through 0.1 to 0.5."""

    def __init__(self, n_arms: int, seed: int = 1) -> None:
        n_best = max(1, n_arms // 100)
        poor = [0.1 + 0.1 * (arm % 5) for arm in range(n_arms - n_best)]
        self.means = [0.9] * n_best + poor
        self.random = random.Random(seed)

    def __len__(self) -> int:
        return len(self.means)

    def pull(self, arm: int) -> int:
        """Draw one reward of an arm."""
        return int(self.random.random() < self.means[arm])

    def pull_each(self) -> list[int]:
        """Draw one reward of every arm, in order."""
        return [self.pull(arm) for arm in range(len(self))]


def arms_from_command_line() -> BernoulliArms:
    """Read the number of arms from the first argument (default: 20000)."""
    return BernoulliArms(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)


def time_steps(step: Callable[[], None]) -> tuple[int, float]:
    """Warm up, then repeat the step within both bounds; return the count and mean microseconds."""
    for _ in range(WARM_UP_STEPS):
        step()
    steps = 0
    seconds = 0.0
    start = perf_counter()
    while steps < MOST_STEPS and seconds < MOST_SECONDS:
        step()
        steps += 1
        seconds = perf_counter() - start
    return steps, 1e6 * seconds / steps


def print_measurement(peer: str, policy: str, n_arms: int, step: Callable[[], None]) -> None:
    """Time the step and print one line of JSON; `peer` is the name of its distribution."""
    steps, microseconds = time_steps(step)
    row = {
        "peer": peer,
        "version": version(peer),
        "policy": policy,
        "n_arms": n_arms,
        "steps": steps,
        "microseconds_per_step": round(microseconds, 1),
    }
    print(json.dumps(row))
