"""States are converted to columns and back without loss."""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.core.rng import restart, stream
from manyarms.core.tournament import clear, enter, leader, rekey, tournament
from manyarms.live.checks import MOST_HORIZON
from manyarms.protocol.state_dump import Columns, dump_state, restore_state
from tests.helpers import ALL_POLICIES, label, state_of


def _equal(one: Columns, other: Columns) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name])
        for name in one
    )


def _played(policy: ma.Policy, horizon: int | None) -> ma.Live:
    live = policy.live(n_arms=50, horizon=horizon, seed=3)
    pending = []
    for k in range(300):
        pending.append(live.ask())
        if k % 3 > 0:
            live.tell(pending.pop(k * 7 % len(pending)), float(k % 5 == 0))
    return live


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_to_columns_and_back(policy: ma.Policy) -> None:
    for horizon in (400, None) if policy.anytime else (400,):
        live = _played(policy, horizon)
        dumped = dump_state(state_of(live))
        scaled = policy.with_reward_range((0.0, 1.0))
        back = scaled.new_state(SPARSE, n_arms=50, pulls=horizon or MOST_HORIZON)
        restore_state(back, dumped)
        assert _equal(dump_state(back), dumped)


def test_loading_overwrites_the_previous_state() -> None:
    policy = ma.EmpMOSSPlusPlus()
    used, new = _played(policy, 400), policy.live(n_arms=50, horizon=400, seed=3)
    restore_state(state_of(used), dump_state(state_of(new)))
    assert _equal(dump_state(state_of(used)), dump_state(state_of(new)))


def test_columns_of_another_state_are_refused() -> None:
    moss = ma.MOSS().live(n_arms=5, horizon=9)
    quantile = ma.Quantile().live(n_arms=5, horizon=9)
    quantile.ask()
    with pytest.raises(KeyError, match="state.clock"):
        restore_state(state_of(moss), dump_state(state_of(quantile)))
    dumped = dump_state(state_of(quantile))
    dumped["state.clock/nonsense"] = dumped.pop("state.clock/left")
    with pytest.raises(KeyError, match="nonsense"):
        restore_state(state_of(quantile), dumped)


def test_a_number_beyond_64_bits_is_refused() -> None:
    live = ma.Quantile().live(n_arms=5)
    state_of(live).clock[0].left = 1 << 70
    with pytest.raises(ma.ParameterError, match="`left` of a policy's state must fit into 64"):
        dump_state(state_of(live))


def test_a_restored_tournament_has_the_same_leaders() -> None:
    """The tree is not stored, and later choices are the same as with the tree."""
    words = [stream(SPARSE), stream(SPARSE)]
    for one in words:
        restart(one, 7)

    rng = np.random.default_rng(5)
    kept = tournament(SPARSE, 64)
    clear(kept)
    for k in range(40):
        enter(kept, float(rng.integers(0, 3)))
        if k % 4 == 0:
            leader(kept, stream(SPARSE))
    for _ in range(300):
        state = ma.MOSS(sigma=0.5).new_state(SPARSE, n_arms=64, pulls=64)
        other = state.moss.rank
        whole = state._replace(moss=state.moss._replace(rank=kept))
        restore_state(state, dump_state(whole))
        slot, key = int(rng.integers(0, 40)), float(rng.integers(0, 4))
        for rank in (kept, other):
            rekey(rank, slot, key)
        for _ in range(3):
            assert leader(kept, words[0]) == leader(other, words[1])
