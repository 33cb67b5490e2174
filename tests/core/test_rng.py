"""Random numbers: published values, equality of CPython and compiled code, and uniformity."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.core.jit import compiled
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import (
    below,
    draw,
    hashed,
    next_word,
    open_unit,
    priority,
    restart,
    stream,
    unit,
)

WORDS = st.integers(0, 2**64 - 1)


def test_published_outputs_of_splitmix64() -> None:
    # The sequence for seed 1234567 in Rosetta Code's and Vigna's reference material.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [draw(1234567, k) for k in range(5)] == published


@given(WORDS, st.integers(1, 2**60))
def test_below_is_the_floor_of_the_exact_product(word: int, n: int) -> None:
    assert below(word, n) == word * n // 2**64
    assert 0 <= below(word, n) < n


@given(WORDS)
def test_unit_stays_below_one(word: int) -> None:
    assert 0.0 <= unit(word) < 1.0
    assert 0.0 < open_unit(word) < 1.0
    assert 0 <= priority(word) < 2**60


def test_a_stream_reads_the_words_of_its_key_in_turn() -> None:
    words = stream(BOUNDED)
    restart(words, 42)
    assert [next_word(words) for _ in range(3)] == [draw(42, k) for k in range(3)]
    restart(words, 42)
    assert next_word(words) == draw(42, 0)


def _interpreted_and_compiled(keys: Any, ints: Any, floats: Any) -> None:
    for k in range(len(keys)):
        word = draw(keys[k], k)
        ints[k, 0] = priority(word)
        ints[k, 1] = below(word, 3 + k * k * k)
        ints[k, 2] = hashed(k * k, 1023)
        ints[k, 3] = below(word, (1 << 50) + k)
        floats[k] = unit(word) + open_unit(word)


@pytest.mark.compiled
def test_cpython_and_compiled_code_agree_bit_for_bit() -> None:
    count = 2000
    keys = np.random.default_rng(1).integers(0, 2**64, count, dtype=np.uint64)
    results = []
    for function, own_keys in (
        (compiled(_interpreted_and_compiled), keys),
        (_interpreted_and_compiled, [int(key) for key in keys]),
    ):
        ints, floats = np.zeros((count, 4), np.int64), np.zeros(count)
        function(own_keys, ints, floats)
        results.append((ints, floats))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def _chi_square_bound(cells: int, false_alarm: float) -> float:
    """Wilson & Hilferty's approximation of the upper quantile."""
    degrees = cells - 1
    z = NormalDist().inv_cdf(1 - false_alarm)
    return degrees * (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3


@pytest.mark.parametrize("key", [0, 1, 2**63, 0xDEADBEEF])
def test_words_are_uniform_within_and_across_keys(key: int) -> None:
    """Four chi-square tests on 64 cells, false alarm 1e-6 each."""
    draws, cells = 40_000, 64
    samples = [
        [draw(key, k) >> 58 for k in range(draws)],  # upper bits of one sequence
        [draw(key, k) & 63 for k in range(draws)],  # lower bits
        [draw(draw(key, k), 0) >> 58 for k in range(draws)],  # first words of derived keys
        [(draw(key, k) ^ draw(key, k + 1)) >> 58 for k in range(draws)],  # neighbours
    ]
    for sample in samples:
        counts = np.bincount(sample, minlength=cells)
        statistic = ((counts - draws / cells) ** 2 / (draws / cells)).sum()
        assert statistic < _chi_square_bound(cells, 1e-6)
