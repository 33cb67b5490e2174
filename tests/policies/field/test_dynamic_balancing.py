"""Dynamic balancing: who is found wanting, and who is next."""

from __future__ import annotations

import math

import pytest

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.policies.field import DynamicBalancing
from manyarms.policies.field.dynamic_balancing import BalancedState
from manyarms.policies.parts.subroutines import subroutine_of
from manyarms.protocol import ask, reset, tell

HORIZON = 2900  # eight subroutines, the smallest with 22 arms


def begun(policy: DynamicBalancing, n_arms: int = 10**6) -> BalancedState:
    state = policy.new_state(SPARSE, n_arms=n_arms, pulls=HORIZON)
    reset(state, 1, HORIZON)
    return state


def play(state: BalancedState, rewards: list[float], pulls: int) -> list[int]:
    """Give each subroutine its own reward all the time; return how often each was asked."""
    asked = [0] * state.clock[0].subroutines
    for _ in range(pulls):
        slot, _ = ask(state)
        asked[subroutine_of(slot)] += 1
        tell(state, slot, rewards[subroutine_of(slot)])
    return asked


def test_pulls_are_balanced_while_nobody_is_found_wanting() -> None:
    state = begun(DynamicBalancing())
    asked = play(state, [0.5] * 8, HORIZON)
    sizes = [state.arms.slots.run[i].members for i in range(8)]
    assert (sizes[0], sizes[-1]) == (22, HORIZON)
    for i in range(8):  # K_i n_i is the same for all, but for one pull
        assert abs(asked[i] - asked[0] * sizes[0] / sizes[i]) <= 1


def test_who_earns_less_than_it_may_have_lost_is_left_and_comes_back() -> None:
    state = begun(DynamicBalancing(c=0.25, regret_factor=0.25))
    rewards = [0.0, *[1.0] * 7]
    first = play(state, rewards, 400)
    own = state.subroutine[0]
    others = max(state.subroutine[i].below for i in range(1, 8))
    assert own.above < others
    level = math.log(8 * math.log(own.pulls) * math.sqrt(HORIZON))
    width = 0.25 * math.sqrt(level / own.pulls)
    assert own.below == pytest.approx(-width)
    assert own.above == pytest.approx(width + 0.25 * math.sqrt(22 / own.pulls))
    assert play(state, rewards, 400)[0] == 0 < first[0] < 100
    state.subroutine[0].above = 2.0  # as if the rewards of others had been luck
    assert play(state, rewards, 1)[0] == 1


def test_a_larger_candidate_bound_finds_nobody_wanting() -> None:
    state = begun(DynamicBalancing(regret_factor=20.5))
    play(state, [0.0, *[1.0] * 7], HORIZON)
    assert state.subroutine[0].above >= max(state.subroutine[i].below for i in range(1, 8))


def test_equal_sets_share_the_pulls() -> None:
    asked = play(begun(DynamicBalancing(), n_arms=3), [0.5] * 8, 800)
    assert asked == [100] * 8


def test_a_handle_says_where_it_is() -> None:
    live = DynamicBalancing().live(n_arms=1000, horizon=HORIZON, seed=1)
    live.ask()
    assert live.policy.stage(live._experiment.state) in [
        f"subroutine {i} of 8" for i in range(1, 9)
    ]
    assert ma.policy("dynamic-balancing", c=2.0) == DynamicBalancing(c=2.0)
