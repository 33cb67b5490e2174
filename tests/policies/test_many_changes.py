"""Retiring and adding many arms costs time in proportion to their number, not to the arms tried."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.policies.parts.moss_run import GONE
from manyarms.protocol import arrive, ask, credit_known, reset, retire, tell
from tests.policies.pairs import label

pytestmark = pytest.mark.interpreted

FAMILY = [
    ma.MOSS(),
    ma.MOSSOracle(size=10_000),
    ma.Quantile(exponent=1.0),
    ma.MOSSPlusPlus(beta=1.0),
    ma.EmpMOSSPlusPlus(beta=1.0),
    ma.Parallel(best_mean=0.9),
    ma.Prospector(),
    ma.Guarded(ma.MOSS()),
]


def lines_of(action: Callable[[], object]) -> int:
    """Return how many lines of Python an action executes."""
    count = 0

    def trace(frame: Any, event: str, value: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def tried(policy: ma.Policy, pulls: int) -> tuple[Any, list[int]]:
    """Return a state after so many pulls of 8000 arms, and the arms in their order."""
    state = policy.with_reward_range((0.0, 1.0)).new_state(SPARSE, n_arms=8000, pulls=1 << 40)
    reset(state, 5, 100_000)
    arms: dict[int, None] = {}
    for time in range(pulls):
        slot, arm = ask(state)
        arms[arm] = None
        tell(state, slot, float(time % 7 == 0))
    return state, list(arms)


@pytest.mark.patient
@pytest.mark.parametrize("policy", FAMILY, ids=label)
def test_a_change_costs_the_same_with_many_arms_tried(policy: ma.Policy) -> None:
    costs = []
    for pulls in (300, 3000):
        state, arms = tried(policy, pulls)
        retire(state, arms.pop())  # makes the index by arm

        def change(state: Any = state, arms: list[int] = arms) -> None:
            for arm in arms[10:60]:
                retire(state, arm)
            arrive(state, 1)
            arrive(state, 1)
            for _ in range(50):
                credit_known(state, -1, 1, 0.0, 0.0)
                credit_known(state, arms[1], 1, 0.0, 0.0)

        costs.append(lines_of(change))
    assert costs[1] < 1.5 * costs[0] + 2000, costs


@pytest.mark.patient
@pytest.mark.parametrize("policy", [*FAMILY, ma.MOSSPlusPlus()], ids=label)
def test_known_rewards_cost_the_same_with_many_arms_retired(policy: ma.Policy) -> None:
    costs = []
    for gone in (20, 1000):
        state, _ = tried(policy, 0)
        arms = [credit_known(state, -1, 9, 1.0, 1.0) for _ in range(1500)]
        ask(state)
        for arm in arms[:gone]:
            retire(state, arm)
        arrive(state, gone)
        credit_known(state, -1, 9, 1.0, 1.0)

        def credit(state: Any = state) -> None:
            for _ in range(50):
                credit_known(state, -1, 9, 1.0, 1.0)

        costs.append(lines_of(credit))
    assert costs[1] < 1.5 * costs[0] + 2000, costs


@pytest.mark.parametrize("n", [1200, 1300])
def test_indices_of_a_smaller_set_are_computed_piece_by_piece(n: int) -> None:
    """After a few pulls they are those of a set that had this size from the beginning."""
    state = ma.MOSS(sigma=0.5).new_state(SPARSE, n_arms=1300, pulls=1 << 40)
    reset(state, 1, 100_000)
    for time in range(1300):
        slot, _ = ask(state)
        tell(state, slot, time / 1300)
    moss, run = state.moss, state.moss.run[0]
    for arm in [moss.slot[slot].arm for slot in range(1300 - n)]:
        retire(state, arm)
    whole = ma.MOSS(sigma=0.5).new_state(SPARSE, n_arms=n, pulls=1 << 40)
    reset(whole, 1, 100_000)
    for _ in range(n):
        ask(whole)
    for _ in range(3):
        assert run.due == 0 or run.fresh == 0
        slot, _ = ask(state)
    assert (run.due, run.members, run.gone) == (0, n, 1300 - n)
    for slot in range(1300):
        own = moss.slot[slot]
        expected = own.total / own.pulls + (max(0.0, whole.moss.run[0].log_scale)) ** 0.5
        if own.arm != GONE:
            assert moss.rank.entrant[slot].key == pytest.approx(expected, rel=1e-12)
