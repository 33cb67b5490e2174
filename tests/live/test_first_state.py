"""A handle's cost before its first pull is bounded, whatever numbers it is given."""

from __future__ import annotations

import contextlib
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.checks import MOST_FIRST_DRAWS
from manyarms.policies import field

ARMS, HORIZON = 1 << 50, 1 << 40
MOST_CALLS = 50_000  # of Python functions: some 20 ms
MOST_BYTES = 50_000_000
NEEDED: dict[str, dict[str, Any]] = {
    "anytime-parallel": {"best_mean": 0.9},
    "guarded-ss-greedy": {"size": 1 << 40},
    "moss-oracle": {"alpha": 0.3},
    "parallel": {"best_mean": 0.9},
    "patience": {"best_mean": 0.9},
}
REFUSED = {"sequential-halving"}  # it draws its arms ahead


@contextlib.contextmanager
def bounded_work() -> Iterator[None]:
    """Raise after too many function calls, or at the end if too much memory was allocated."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > MOST_CALLS:
            sys.setprofile(None)
            raise AssertionError(f"more than {MOST_CALLS} calls")

    tracemalloc.start()
    sys.setprofile(count)
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        sys.setprofile(None)
        tracemalloc.stop()


POLICIES = [ma.policy(name, **NEEDED.get(name, {})) for name in ma.policy_names()]
CASES: list[tuple[ma.Policy, int | None]] = [(policy, HORIZON) for policy in POLICIES]
CASES += [(policy, None) for policy in POLICIES if policy.anytime]


@pytest.mark.parametrize(("policy", "horizon"), CASES, ids=str)
def test_the_first_pull_is_cheap_or_the_policy_is_refused(
    policy: ma.Policy, horizon: int | None
) -> None:
    with bounded_work():
        if policy.name in REFUSED:
            with pytest.raises(ma.ParameterError, match=f"must draw at most {MOST_FIRST_DRAWS}"):
                policy.live(n_arms=ARMS, horizon=horizon, seed=1)
        else:
            policy.live(n_arms=ARMS, horizon=horizon, seed=1).ask()


@pytest.mark.parametrize(
    "policy",
    [
        field.SequentialHalving(size=1 << 40),
        field.SubSampled(field.SequentialHalving(), size=1 << 30),
        ma.Guarded(field.SubSampled(field.SequentialHalving(), exponent=0.9)),
    ],
    ids=lambda policy: str(policy),
)
def test_a_refused_inner_policy_is_refused_within_another_policy(policy: ma.Policy) -> None:
    with bounded_work(), pytest.raises(ma.ParameterError, match="would draw .* Choose a shorter"):
        policy.live(n_arms=ARMS, horizon=HORIZON)
