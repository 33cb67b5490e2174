"""The tournament, compared with a scan of all keys."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms.core.tournament as module
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import Stream, restart, stream
from manyarms.core.tournament import (
    Tournament,
    clear,
    disband,
    enter,
    highest,
    leader,
    rekey,
    tournament,
)

KEYS = st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.1, 0.25, 0.25 + 2**-54, 1.0, math.inf])


@contextlib.contextmanager
def ways_of(machine: str) -> Iterator[None]:
    """Make CPython take the branches of a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        if machine == "gpu":
            patch.setattr(module, "_note", module._note.on_gpu)  # type: ignore[attr-defined]
        yield


def words(key: int = 1) -> Stream:
    made = stream(BOUNDED)
    restart(made, key)
    return made


def ranked(*keys: float) -> Tournament:
    rank = tournament(BOUNDED, len(keys))
    clear(rank)
    for key in keys:
        enter(rank, key)
    return rank


@pytest.mark.patient
@given(st.data(), st.sampled_from([1, 9, 40, 70, 600]), st.sampled_from(["cpu", "gpu"]))
def test_a_leader_has_the_largest_key_after_any_changes(
    data: st.DataObject, slots: int, machine: str
) -> None:
    with ways_of(machine):
        _change_keys(data, slots)


def _change_keys(data: st.DataObject, slots: int) -> None:
    keys = [0.25] * data.draw(st.integers(0, slots))
    rank, ties = tournament(BOUNDED, slots), words()
    clear(rank)
    for key in keys:
        enter(rank, key)
    for _ in range(60):
        # mostly a leader changes, as in a bandit, and sometimes any slot or a new one
        choice = data.draw(st.integers(0, 4))
        slot = leader(rank, ties)
        if not keys or (choice == 0 and len(keys) < slots):
            slot = len(keys)
            keys.append(0.0)
        elif choice == 1:
            slot = data.draw(st.integers(0, len(keys) - 1))
        elif choice == 2:
            disband(rank)
        keys[slot] = data.draw(KEYS)
        rekey(rank, slot, keys[slot])
        if data.draw(st.booleans()):
            continue  # several changes before the next look
        read = ties[0].read
        assert keys[leader(rank, ties)] == max(keys)
        assert ties[0].read - read == (keys.count(max(keys)) > 1)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=150), st.data())
def test_all_ties_are_found(keys: list[float], data: st.DataObject) -> None:
    rank, ties = ranked(*keys), words()
    for _ in range(4):
        slot = data.draw(st.integers(0, len(keys) - 1))
        leader(rank, ties)
        keys[slot] = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
        rekey(rank, slot, keys[slot])
    tied = {slot for slot, key in enumerate(keys) if key == max(keys)}
    found = []
    for _ in tied:  # each in turn falls behind all others
        found.append(leader(rank, ties))
        rekey(rank, found[-1], -1.0)
    assert len(found) == len(tied)
    assert set(found) == tied


@pytest.mark.parametrize("apart", [-1, 1, 7, 9, 70])
def test_a_leader_stays_until_it_falls_below_the_second(apart: int) -> None:
    """The second may be in the same block of 8, or blocks away."""
    for slot in range(80, 120):
        keys = [0.0] * 200
        keys[slot], keys[slot + apart] = 2.0, 1.0
        rank, ties = ranked(*keys), words()
        for key, leads in ((2.0, slot), (1.5, slot), (0.5, slot + apart)):
            rekey(rank, slot, key)
            assert leader(rank, ties) == leads


def test_slots_in_between_do_not_lead_before_their_turn() -> None:
    rank, ties = tournament(BOUNDED, 8), words()
    clear(rank)
    rekey(rank, 5, -3.0)
    assert leader(rank, ties) == 5
    rekey(rank, 2, -2.0)
    assert leader(rank, ties) == 2


def test_an_empty_tournament_has_no_leader() -> None:
    rank = ranked()
    assert leader(rank, words()) == -1


def test_every_step_chooses_independently_and_uniformly() -> None:
    """A chi-square test of pairs of choices in a row, false alarm 1e-6."""
    rank, ties = ranked(0.5, 1.0, 1.0, 0.0, 1.0), words()
    steps = [leader(rank, ties) for _ in range(9000)]
    pairs = Counter(zip(steps[::2], steps[1::2], strict=True))
    assert set(pairs) == {(a, b) for a in (1, 2, 4) for b in (1, 2, 4)}
    statistic = sum((count - 500) ** 2 / 500 for count in pairs.values())
    assert statistic < 42.7  # the 1 - 1e-6 quantile of chi-square with 8 degrees of freedom


def test_a_returning_leader_is_chosen_uniformly() -> None:
    """A leader that fell and came back is one of three again (z-test, false alarm 1e-6)."""
    rank, ties = ranked(1.0, 1.0, 1.0), words()
    again = 0
    for _ in range(6000):
        slot = leader(rank, ties)
        rekey(rank, slot, 0.5)
        rekey(rank, slot, 1.0)
        again += leader(rank, ties) == slot
    assert abs(again - 2000) < 4.9 * math.sqrt(6000 * (1 / 3) * (2 / 3))


def test_tournaments_in_shared_memory_do_not_interfere() -> None:
    shared, ties = tournament(BOUNDED, 16, tournaments=2), words()
    first, second = (shared._replace(base=8 * k, room=8, number=k) for k in range(2))
    for rank in (first, second):
        clear(rank)
    for k in range(8):
        enter(first, 0.1 * k)
        enter(second, -0.1 * k)
    assert leader(first, ties) == 7
    assert leader(second, ties) == 8
    rekey(second, 8, -5.0)
    assert leader(second, ties) == 9
    assert leader(first, ties) == 7


@given(st.lists(st.tuples(st.integers(0, 20), KEYS), max_size=60))
def test_the_highest_key_is_found_without_random_words(changes: list[tuple[int, float]]) -> None:
    rank, keys = tournament(BOUNDED, 21), [-math.inf] * 21
    clear(rank)
    assert highest(rank) == -math.inf
    for slot, key in changes:
        keys[slot] = key
        rekey(rank, slot, key)
        assert highest(rank) == max(keys)
