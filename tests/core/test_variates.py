"""The distributions of variates, with stated false alarms."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from manyarms.core.jit import compiled
from manyarms.core.memory import ARRAYS, SPARSE, Floats
from manyarms.core.rng import Stream, draw, restart, stream
from manyarms.core.variates import beta_variate, normal, normal_variate


@pytest.mark.parametrize("key", [1, 2, 3])
def test_normal_variates_are_the_quantiles_of_the_standard_library(key: int) -> None:
    normal = NormalDist()
    for k in range(3000):
        word = draw(key, k)
        expected = normal.inv_cdf(((word >> 12) + 0.5) / 2**52)
        assert normal_variate(word) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_the_far_tails_are_finite_and_symmetric() -> None:
    low, high = normal_variate(0), normal_variate(2**64 - 1)
    assert low == pytest.approx(-8.2095, abs=1e-4)  # the quantile of 2^-53
    assert high == -low
    assert normal_variate(2**63) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (0.2, 0.3), (5.0, 2.0), (0.01, 0.02), (30.0, 0.5)]
)
def test_beta_variates_have_their_mean_and_variance(a: float, b: float) -> None:
    """Two z-tests, false alarm 1e-6 each (4.9 standard errors)."""
    count = 20_000
    sample = np.array([beta_variate(a, b, draw(11, k)) for k in range(count)])
    assert ((sample >= 0) & (sample <= 1)).all()
    mean = a / (a + b)
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    assert abs(sample.mean() - mean) < 4.9 * math.sqrt(variance / count)
    squares = (sample - mean) ** 2
    assert abs(squares.mean() - variance) < 4.9 * squares.std() / math.sqrt(count)


def test_beta_variates_of_two_one_follow_their_distribution_function() -> None:
    """Kolmogorov's test against P(X <= x) = x^2, false alarm 1e-6."""
    count = 20_000
    sample = np.sort([beta_variate(2.0, 1.0, draw(12, k)) for k in range(count)])
    steps = np.arange(1, count + 1) / count
    distance = np.abs(steps - sample**2).max() + 1 / count
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * count)) + 1 / count


def _fill(words: Stream, key: int, numbers: Floats, count: int) -> None:
    restart(words, key)
    for k in range(count):
        numbers[k] = normal(words)


def test_normal_numbers_follow_their_distribution_function() -> None:
    """Kolmogorov's test, false alarm 1e-6."""
    count = 20_000
    numbers = SPARSE.floats(count)
    _fill(stream(SPARSE), 13, numbers, count)
    values = np.array([NormalDist().cdf(numbers[k]) for k in range(count)])
    distance = np.abs(np.arange(1, count + 1) / count - np.sort(values)).max() + 1 / count
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * count)) + 1 / count


@pytest.mark.compiled
def test_normal_numbers_are_the_same_in_compiled_code() -> None:
    count = 2_000
    plain, made = SPARSE.floats(count), ARRAYS.floats(count)
    _fill(stream(SPARSE), 14, plain, count)
    compiled(_fill)(stream(ARRAYS), 14, made, count)
    assert [plain[k] for k in range(count)] == list(made)
