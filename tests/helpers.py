"""Helpers that several tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from manyarms.instances import Instance
from manyarms.live.handle import Live
from manyarms.protocol import Policy
from manyarms.simulation.runner import CpuRunner
from manyarms.simulation.sweep import cell
from tests.policies.pairs import ALL_POLICIES, EVERY_POLICY, label, unit_only

__all__ = ["ALL_POLICIES", "EVERY_POLICY", "Reward", "flipped", "label", "play_live", "run_python"]
__all__ += ["unit_only"]

Reward = Callable[[int, int], float]  # (arm, its earlier pulls) -> reward


def play_live(live: Live, pulls: int, reward: Reward) -> list[int]:
    """Ask and tell; return the arms."""
    seen: dict[int, int] = {}
    arms = []
    for _ in range(pulls):
        pull = live.ask()
        count = seen.get(pull.arm, 0)
        seen[pull.arm] = count + 1
        arms.append(pull.arm)
        live.tell(pull, reward(pull.arm, count))
    return arms


class Stepper:
    """Simulate a policy in steps, so that a test can inspect its state in between."""

    def __init__(self, policy: Policy, instance: Instance, *, horizon: int, seed: int) -> None:
        one = cell(policy, instance, horizon=horizon, replications=1, checkpoints=1)
        self._runner = CpuRunner(one, one.players[0], seed=seed)
        self._space = self._runner._idle[0]
        self._measured = self._runner._new_measured(1)

    @property
    def state(self) -> Any:
        return self._space.state

    def play(self, run: int, start: int, stop: int) -> float:
        """Play pulls of a replication, continuing after the last call; return the regret."""
        self._runner._call(self._space, self._measured, run, start, stop)
        return float(self._measured.regret[0, -1])


def flipped(data: bytes, bit: int) -> bytes:
    """Return data with one bit flipped."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter; if it fails, fail with its output."""
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


# a user's policy that always pulls one arm
OWN_POLICY = """
from dataclasses import dataclass
from typing import NamedTuple
import manyarms as ma
from manyarms.kit import plays

class FixedState(NamedTuple):
    n_arms: int

def fixed_reset(state, key, horizon): pass

def fixed_ask(state): return 0, {arm}

def fixed_tell(state, slot, reward): pass

plays(FixedState, reset=fixed_reset, ask=fixed_ask, tell=fixed_tell)

@dataclass(frozen=True, kw_only=True)
class Fixed(ma.Policy):
    name = "fixed"
    def new_state(self, memory, *, n_arms, pulls): return FixedState(n_arms)
"""


def state_of(live: Live) -> Any:
    """Return the state of a handle's policy."""
    search = live._experiment.search
    assert search is not None
    return search.state
