"""What several tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import manyarms as ma
from manyarms.live.handle import Live

Reward = Callable[[int, int], float]  # (arm, how often it was pulled before) -> reward

ALL_POLICIES: list[ma.Policy] = [
    ma.MOSS(),
    ma.MOSSOracle(alpha=0.3),
    ma.MOSSOracle(m=1),
    ma.MOSSOracle(size=11),
    ma.Quantile(),
    ma.MOSSPlusPlus(beta=0.5),
    ma.MOSSPlusPlus(beta=1.0),
    ma.EmpMOSSPlusPlus(beta=0.5),
    ma.EmpMOSSPlusPlus(beta=0.75, rank="pulled"),
    ma.Parallel(best_mean=0.9),
    ma.Parallel(best_mean=0.9, subset_factor=1),
    ma.Doubling(ma.MOSSPlusPlus(beta=0.5)),
    ma.Doubling(ma.Parallel(best_mean=0.9)),
    ma.HybridMOSSPlusPlus(beta=0.5),
    ma.Patience(best_mean=0.9),
]

_TOLD: dict[str, dict[str, Any]] = {  # what these cannot do without
    "best": {"arm": 0},
    "moss-oracle": {"m": 1},
    "parallel": {"best_mean": 0.9},
    "anytime-parallel": {"best_mean": 0.9},
    "patience": {"best_mean": 0.9},
    "qrm1": {"rho": 0.1},
    "satisficing-ts": {"target": 0.8},
    "ss-greedy-oracle": {"m": 1},
}
EVERY_POLICY: list[ma.Policy] = [
    ma.policy(name, **_TOLD.get(name, {})) for name in ma.policy_names()
]


def label(policy: ma.Policy) -> str:
    return policy.label


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


# a policy of a user's: always one arm
OWN_POLICY = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
import manyarms as ma
from manyarms.kit import ask, reset, tell

class FixedState(NamedTuple):
    n_arms: int

@reset.register(FixedState)
def fixed_reset(state, key, horizon): pass

@ask.register(FixedState)
def fixed_ask(state): return 0, {arm}

@tell.register(FixedState)
def fixed_tell(state, slot, reward): pass

@dataclass(frozen=True, kw_only=True)
class Fixed(ma.Policy):
    name: ClassVar[str] = "fixed"
    def new_state(self, memory, *, n_arms, pulls): return FixedState(n_arms)
"""
