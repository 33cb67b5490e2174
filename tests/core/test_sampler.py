"""Sampling without replacement, compared with an explicit shuffle, and its uniformity."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from statistics import NormalDist

from hypothesis import given
from hypothesis import strategies as st

from manyarms.core.memory import BOUNDED, SPARSE
from manyarms.core.rng import below, draw
from manyarms.core.sampler import clear_sampler, pick, pick_from, sampler


@given(st.integers(1, 200), st.integers(0, 2**64 - 1), st.data())
def test_draws_are_those_of_an_explicit_shuffle(n: int, key: int, data: st.DataObject) -> None:
    draws = data.draw(st.integers(1, n))
    lazy = sampler(BOUNDED, n, draws=draws)
    for _ in range(2):  # the second time after clearing
        array = list(range(n))
        for k in range(draws):
            word = draw(key, k)
            j = k + below(word, n - k)
            array[j], array[k] = array[k], array[j]
            assert pick(lazy, 0, word) == array[k]
        clear_sampler(lazy)


@given(st.sampled_from([20, 10**12]), st.integers(0, 2**64 - 1))
def test_shuffles_in_shared_memory_do_not_interfere(n: int, key: int) -> None:
    shared = sampler(BOUNDED, n, draws=60, shuffles=3)
    alone = [sampler(BOUNDED, n, draws=20) for _ in range(3)]
    for k in range(60):
        word = draw(key, k) if k % 2 else k << 50  # which is near 0
        assert pick(shared, k % 3, word) == pick(alone[k % 3], 0, word)


def test_all_orders_are_equally_likely() -> None:
    """Chi-square on the 120 orders of five numbers, false alarm 1e-6."""
    runs, lazy = 24_000, sampler(BOUNDED, 5, draws=5)
    counts: Counter[tuple[int, ...]] = Counter()
    for run in range(runs):
        clear_sampler(lazy)
        counts[tuple(pick(lazy, 0, draw(7, 5 * run + k)) for k in range(5))] += 1
    expected = runs / 120
    orders = itertools.permutations(range(5))
    statistic = sum((counts[order] - expected) ** 2 / expected for order in orders)
    degrees, z = 119, NormalDist().inv_cdf(1 - 1e-6)
    bound = degrees * (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3
    assert statistic < bound


def test_a_billion_arms_need_memory_only_for_the_draws() -> None:
    lazy = sampler(BOUNDED, 10**9, draws=1000)
    numbers = [pick(lazy, 0, draw(3, k)) for k in range(1000)]
    assert len(set(numbers)) == 1000
    assert len(lazy.moved.cells) < 5000


def test_drawing_more_than_the_memory_allows_ends() -> None:
    # an error in a policy, which must not hang; the result does not matter
    careless = sampler(BOUNDED, 50, draws=4)
    numbers = [pick(careless, 0, draw(1, k)) for k in range(200)]
    assert all(0 <= number < 50 for number in numbers)


@given(st.integers(1, 60), st.integers(0, 2**64 - 1), st.data())
def test_the_last_numbers_can_be_drawn_first(n: int, key: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, n))
    for direct in (BOUNDED, SPARSE):
        lazy = sampler(direct, n, draws=2 * n)
        front = [pick(lazy, 0, draw(key, k)) for k in range(data.draw(st.integers(0, before)))]
        first, last = len(front), [k for k in range(before, n) if k not in front]
        count = data.draw(st.integers(0, n - before))
        drawn = [pick_from(lazy, before + k, draw(key, first + k)) for k in range(count)]
        others = [pick(lazy, 0, draw(key, n + k)) for k in range(n - first - len(drawn))]
        assert sorted([*front, *drawn, *others]) == list(range(n))
        if not front:
            assert set(drawn) <= set(last)
