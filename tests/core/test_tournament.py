"""The tournament against the obvious: sort all (key, tie)."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from manyarms.core.memory import SPARSE
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament

KEYS = st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.1, 0.25, 0.25 + 2**-54, 1.0, 1e300])
WORDS = st.integers(0, 2**64 - 1)


def _best(keys: dict[int, tuple[float, int]]) -> int:
    # ties are compared by their upper 60 bits
    return max(keys, key=lambda slot: (keys[slot][0], keys[slot][1] >> 4))


@given(st.data(), st.integers(1, 40))
def test_leader_is_the_largest_after_any_changes(data: st.DataObject, slots: int) -> None:
    rank = tournament(SPARSE, slots)
    clear(rank)
    keys: dict[int, tuple[float, int]] = {}
    for step in range(60):
        # mostly the leader changes, as in a bandit; sometimes any slot, or a new one
        choice = data.draw(st.integers(0, 3))
        if not keys or (choice == 0 and len(keys) < slots):
            slot = len(keys)
        elif choice == 1:
            slot = data.draw(st.integers(0, len(keys) - 1))
        else:
            slot = leader(rank)
        key, word = data.draw(KEYS), data.draw(WORDS) & ~15 | step % 16
        keys[slot] = (key, word)
        rekey(rank, slot, key, word)
        tied = [s for s in keys if (keys[s][0], keys[s][1] >> 4) == _priority(keys)]
        assert leader(rank) in tied


def _priority(keys: dict[int, tuple[float, int]]) -> tuple[float, int]:
    key, word = keys[_best(keys)]
    return key, word >> 4


def test_slots_between_stay_behind_until_their_turn() -> None:
    rank = tournament(SPARSE, 8)
    clear(rank)
    rekey(rank, 5, -3.0, 1)
    assert leader(rank) == 5
    rekey(rank, 2, -2.0, 1)
    assert leader(rank) == 2


def test_equal_keys_fall_to_the_larger_tie() -> None:
    rank = tournament(SPARSE, 3)
    clear(rank)
    for word in (1 << 10, 1 << 30, 1 << 20):
        enter(rank, 0.5, word)
    assert leader(rank) == 1
    rekey(rank, 1, 0.5, 1 << 5)
    assert leader(rank) == 2


def test_tournaments_that_share_memory_do_not_meet() -> None:
    shared = tournament(SPARSE, 16, tournaments=2)
    first = Tournament(shared.seat, shared.winner, shared.board, 0, 8, 0)
    second = Tournament(shared.seat, shared.winner, shared.board, 8, 8, 1)
    for rank in (first, second):
        clear(rank)
    for k in range(8):
        enter(first, 0.1 * k, 0)
        enter(second, -0.1 * k, 0)
    assert leader(first) == 7
    assert leader(second) == 8
    rekey(second, 8, -5.0, 0)
    assert leader(second) == 9
    assert leader(first) == 7
