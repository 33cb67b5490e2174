"""What several tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from manyarms.live.handle import Live
from tests.policies.battery import ALL_POLICIES, EVERY_POLICY, label

__all__ = ["ALL_POLICIES", "EVERY_POLICY", "Reward", "label", "play_live", "run_python"]

Reward = Callable[[int, int], float]  # (arm, how often it was pulled before) -> reward


def play_live(live: Live, pulls: int, reward: Reward) -> list[int]:
    """Play by hand; return the arms."""
    seen: dict[int, int] = {}
    arms = []
    for _ in range(pulls):
        pull = live.ask()
        count = seen.get(pull.arm, 0)
        seen[pull.arm] = count + 1
        arms.append(pull.arm)
        live.tell(pull, reward(pull.arm, count))
    return arms


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter; fail with its words if it fails."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done
