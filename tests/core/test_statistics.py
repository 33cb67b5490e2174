"""Quantiles and intervals against printed tables and by hand (coverage: test_coverage)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from manyarms.core.statistics import (
    mean_interval,
    mean_intervals,
    ratio_interval,
    standard_error,
)
from tests.student_t import student_quantile


@pytest.mark.parametrize(
    ("probability", "degrees", "printed"),
    [
        (0.975, 1, 12.7062),
        (0.975, 3, 3.18245),
        (0.975, 99, 1.98422),
        (0.95, 30, 1.69726),
    ],
)
def test_students_quantiles(probability: float, degrees: int, printed: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(printed, abs=6e-5)


@pytest.mark.parametrize(
    ("seen", "of", "low", "high"),
    [  # Clopper and Pearson's 95 % intervals, from printed tables
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (0, 100, 0.0, 0.0362),
        (10, 100, 0.0490, 0.1762),
        (50, 100, 0.3983, 0.6017),
    ],
)
def test_two_values_have_the_interval_of_clopper_and_pearson(
    seen: int, of: int, low: float, high: float
) -> None:
    found = mean_interval(np.arange(of) < seen, bounds=(0.0, 1.0))
    assert found == pytest.approx((seen / of, low, high), rel=0.01, abs=3e-4)


@pytest.mark.patient
def test_the_upper_end_is_a_quantile_of_the_weighted_mean() -> None:
    """2.5 % of 400000 weighted means lie above it: three standard deviations of that are 0.0007.

    The approximation adds 3 % of 2.5 %, which is as much again.
    """
    rng = np.random.default_rng(4)
    for values, bound in ((rng.normal(5.0, 1.0, 25), 40.0), (rng.exponential(1.0, 60), 9.0)):
        high = mean_interval(values, bounds=(-5.0, bound)).high
        weights = rng.standard_exponential((400_000, len(values) + 1))
        means = weights @ np.append(values, bound) / weights.sum(axis=1)
        assert (means > high).mean() == pytest.approx(0.025, abs=0.0015)


def test_bounded_intervals_are_mirrored_scaled_and_nested() -> None:
    values = np.random.default_rng(2).gamma(0.3, 2.0, 30)
    estimate, low, high = mean_interval(values, bounds=(0.0, 50.0))
    mirrored = mean_interval(-values, bounds=(-50.0, 0.0))
    assert mirrored == pytest.approx((-estimate, -high, -low))
    scaled = mean_interval(7.0 * values + 3.0, bounds=(3.0, 353.0))
    assert scaled == pytest.approx((7 * estimate + 3, 7 * low + 3, 7 * high + 3))
    surer = mean_interval(values, bounds=(0.0, 50.0), confidence=0.999)
    assert 0.0 < surer.low < low < estimate < high < surer.high < 50.0
    columns = np.stack([values, 2.0 * values], axis=1)
    lows, highs = mean_intervals(columns, bounds=(0.0, [50.0, 100.0]))
    assert lows == pytest.approx([low, 2 * low])
    assert highs == pytest.approx([high, 2 * high])


def test_bounded_intervals_of_constant_values() -> None:
    assert mean_interval(np.zeros(5), bounds=(0.0, 0.0)) == (0.0, 0.0, 0.0)
    # (1 - m)^n = 0.025 with one value, as with many
    for count in (1, 1000):
        high = mean_interval(np.zeros(count), bounds=(0.0, 1.0)).high
        assert (1.0 - high) ** count == pytest.approx(0.025, rel=0.06)
    # a value beyond its bound moves the bound
    assert mean_interval(np.array([0.0, 2.0]), bounds=(0.0, 1.0)).high > 1.0


def test_bounded_ratios_by_hand() -> None:
    over, under = np.zeros(20), np.ones(20)
    # r is possible while the mean of 0 - r may be 0: the added pair (b, 0) has weight w with
    # (1 - w)^20 = 0.025, and b w = r (1 - w)
    weight = 1.0 - 0.025 ** (1 / 20)
    found = ratio_interval(over, under, at_most=(5.0, 5.0))
    assert found == pytest.approx((0.0, 0.0, 5.0 * weight / (1.0 - weight)), rel=0.01)
    inverse = ratio_interval(under, over, at_most=(5.0, 5.0))
    assert inverse.low == pytest.approx(1.0 / found.high)
    assert inverse.high == math.inf
    # the same pairs, with tighter bounds on what was not seen
    over, under = np.tile([2.0, 2.2], 50), np.tile([1.0, 1.1], 50)
    wide = ratio_interval(over, under, at_most=(40.0, 20.0))
    narrow = ratio_interval(over, under, at_most=(4.0, 2.0))
    assert wide.low < narrow.low < 2.0 < narrow.high < wide.high


@pytest.mark.slow
def test_ratio_intervals_cover() -> None:
    """60 intervals of 95 %: at least 47 cover, but for a false alarm of about 1e-6."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        under = rng.normal(10.0, 2.0, 40)
        over = 3.0 * under + rng.normal(0.0, 4.0, 40)
        interval = ratio_interval(over, under, at_most=(100.0, 40.0))
        covered += interval.low <= 3.0 <= interval.high
    assert covered >= 47


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, 25, 100, 400])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("miss_rate", [0.002, 0.02, 0.3, 1.0])
def test_intervals_of_two_valued_regret_cover(miss_rate: float, paired: bool, runs: int) -> None:
    """At least 93 % of 1000 samples, in 32 situations; test_coverage has simulated distributions.

    A miss costs 20000 of at most 40000, other runs some 1000. Pairs share half of their misses.
    An interval of 95 % falls below 93 % with probability 0.003 here; seeds are fixed.
    """
    rng, shape = np.random.default_rng(6), (runs, 1000)

    def regret(missed: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(missed, 20_000.0, rng.gamma(4.0, 250.0, shape))

    shared, first, second = (rng.random(shape) for _ in range(3))
    half = 1.0 - math.sqrt(1.0 - miss_rate)  # so that both together give the miss rate
    values = regret((shared < half) | (first < half))
    truth = miss_rate * 20_000 + (1 - miss_rate) * 1_000
    low, high = 0.0, 40_000.0
    if paired:
        values = values - regret((shared < half) | (second < half))
        truth, low = 0.0, -high
    lows, highs = mean_intervals(values, bounds=(low, high))
    assert ((lows <= truth) & (truth <= highs)).mean() >= 0.93


def test_the_standard_error_of_a_mean() -> None:
    values = np.array([1.0, 2.0, 6.0])  # their variance is 7
    assert standard_error(values) == pytest.approx(math.sqrt(7.0 / 3.0))
    assert math.isnan(standard_error(values[:1]))
