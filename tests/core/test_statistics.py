"""Quantiles and intervals against printed tables, and by hand; test_coverage has the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manyarms.core.statistics import (
    mean_interval,
    mean_limits,
    median_interval,
    median_ratio_interval,
    paired,
    ratio_interval,
    runs_to_decide,
)
from tests.students import student_quantile


@pytest.mark.parametrize(
    ("probability", "degrees", "printed"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.975, 3, 3.18245),
        (0.975, 10, 2.22814),
        (0.975, 99, 1.98422),
        (0.995, 5, 4.03214),
        (0.95, 30, 1.69726),
        (0.9, 4, 1.53321),
    ],
)
def test_the_tests_own_quantiles(probability: float, degrees: int, printed: float) -> None:
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
def test_two_values_have_clopper_and_pearsons_interval(
    seen: int, of: int, low: float, high: float
) -> None:
    found = mean_interval(np.arange(of) < seen, bounds=(0.0, 1.0))
    assert found == pytest.approx((seen / of, low, high), rel=0.01, abs=3e-4)


@pytest.mark.patient
def test_the_upper_limit_is_a_quantile_of_the_weighted_mean() -> None:
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
    lows, highs = mean_limits(columns, bounds=(0.0, [50.0, 100.0]))
    assert lows == pytest.approx([low, 2 * low])
    assert highs == pytest.approx([high, 2 * high])


def test_bounded_intervals_where_nothing_varies() -> None:
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
    # the same pairs, told more tightly what was not seen
    over, under = np.tile([2.0, 2.2], 50), np.tile([1.0, 1.1], 50)
    wide = ratio_interval(over, under, at_most=(40.0, 20.0))
    narrow = ratio_interval(over, under, at_most=(4.0, 2.0))
    assert wide.low < narrow.low < 2.0 < narrow.high < wide.high


def test_medians_have_ordered_values_for_ends() -> None:
    # printed in tables of the sign test: of 20 values the 6th and the 15th
    assert median_interval(np.arange(1.0, 21.0)) == (10.5, 6.0, 15.0)
    assert median_interval(np.arange(5.0)) == (2.0, -math.inf, math.inf)
    assert median_ratio_interval(np.arange(5.0), np.ones(5)).high == math.inf


def test_medians_of_nothing_have_no_ratio() -> None:
    nothing = np.zeros(100)
    found = median_ratio_interval(nothing, nothing)
    assert math.isnan(found.estimate)
    assert (found.low, found.high) == (0.0, math.inf)


@pytest.mark.slow
def test_ratio_intervals_cover() -> None:
    """60 intervals of 95 %: at least 47 cover, but for a false alarm of about 1e-6."""
    rng = np.random.default_rng(3)
    covered = medians = 0
    for _ in range(60):
        under = rng.normal(10.0, 2.0, 40)
        over = 3.0 * under + rng.normal(0.0, 4.0, 40)
        interval = ratio_interval(over, under, at_most=(100.0, 40.0))
        covered += interval.low <= 3.0 <= interval.high
        interval = median_ratio_interval(over, under)
        medians += interval.low <= 3.0 <= interval.high
    assert covered >= 47
    assert medians >= 47


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, 25, 100, 400])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("miss_rate", [0.002, 0.02, 0.3, 1.0])
def test_intervals_of_two_valued_regret_cover(miss_rate: float, paired: bool, runs: int) -> None:
    """At least 93 % of 1000 samples, in 32 situations; test_coverage has laws that were played.

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
    lows, highs = mean_limits(values, bounds=(low, high))
    assert ((lows <= truth) & (truth <= highs)).mean() >= 0.93


LAWS: dict[str, tuple[float, Callable[[np.random.Generator, Any], Any]]] = {
    "skewed": (math.log(2.0), lambda rng, size: rng.exponential(1.0, size)),
    "misses": (5.0, lambda rng, size: np.where(rng.random(size) < 0.1, -9e4, 5.0)),
    "ties": (1.0, lambda rng, size: rng.binomial(3, 0.4, size).astype(float)),
    # half of the differences are 0, the median is, and only then is it easily missed
    "mostly ties": (0.0, lambda rng, size: rng.integers(-1, 2, size) * (rng.random(size) < 0.6)),
    "at the edge": (0.0, lambda rng, size: rng.integers(0, 2, size) * 1.0),
    "two sides": (0.0, lambda rng, size: rng.choice([-1.0, 1.0], size) * rng.random(size)),
}


@pytest.mark.parametrize("runs", [6, 9, 20, 50])
@pytest.mark.parametrize("law", LAWS)
def test_the_median_of_differences_is_covered(law: str, runs: int) -> None:
    """2000 samples each. 95 % intervals hold in less than 93 % with probability 4e-5."""
    middle, draw = LAWS[law]
    samples = draw(np.random.default_rng(runs), (2000, runs))
    found = [paired(sample) for sample in samples]
    assert np.mean([one.low <= middle <= one.high for one in found]) >= 0.93
    # not by being wide: of continuous laws, it is as exact as ranks allow
    if law in ("skewed", "two sides") and runs >= 20:
        assert np.mean([one.low <= middle <= one.high for one in found]) <= 0.98
    narrower = [paired(sample, confidence=0.5) for sample in samples[:1000]]
    if law in ("skewed", "two sides"):  # one that is too narrow would be noticed
        assert np.mean([one.low <= middle <= one.high for one in narrower]) < 0.9


def test_too_few_runs_decide_nothing() -> None:
    assert paired(np.full(5, 7.0))[1:3] == (-math.inf, math.inf)
    six = paired(np.full(6, 7.0))
    assert (six.low, six.above, six.below, six.runs) == (7.0, 6, 0, 6)
    assert paired(np.array([0.0, 0.0, 1.0, -1.0, 2.0]))[3:] == (2, 1, 5)  # 0 is on neither side


def test_usually_and_on_average_are_two_things() -> None:
    """The issue's example: every run differs by about 750, and a miss would cost 40000."""
    gaps = 749.0 + 30.0 * np.random.default_rng(3).standard_normal(50)
    mean, usual = mean_interval(gaps, bounds=(-4e4, 4e4)), paired(gaps)
    assert mean.low < 0.0 < mean.high
    assert 700.0 < usual.low < usual.median < usual.high < 800.0
    assert (usual.above, usual.runs) == (50, 50)
    rare = np.append(gaps, [-39_000.0] * 2)  # on average it is the other way round
    assert mean_interval(rare, bounds=(-4e4, 4e4)).estimate < 0.0 < paired(rare).low


@pytest.mark.parametrize("case", ["constant", "normal", "skewed", "misses", "negative"])
def test_so_many_runs_decide(case: str) -> None:
    """As many copies of the runs as it says exclude 0, and a tenth fewer do not."""
    rng = np.random.default_rng(8)
    gaps = {
        "constant": np.full(40, 3.0),
        "normal": rng.normal(1.0, 10.0, 40),
        "skewed": rng.exponential(1.0, 40) - 0.7,
        "misses": 60.0 - 500.0 * (np.arange(40) < 3),
        "negative": rng.normal(-2.0, 20.0, 40),
    }[case]
    bounds = (-600.0, 600.0)
    needed = runs_to_decide(gaps, bounds=bounds)

    def decides(share: float) -> bool:
        copies = needed * share / len(gaps)
        tiled = np.tile(gaps, max(1, round(copies)))
        # the last few runs that make the number exact are left out: it is an estimate
        found = mean_interval(tiled, bounds=bounds)
        return found.low > 0.0 or found.high < 0.0

    assert needed > 4 * len(gaps)
    assert decides(1.15)
    assert not decides(0.87)


def test_runs_that_decide_already_and_never() -> None:
    assert runs_to_decide(np.full(100, 5.0), bounds=(-6.0, 6.0)) < 100
    assert runs_to_decide(np.array([1.0, -1.0]), bounds=(-6.0, 6.0)) == math.inf
    for least in (0.0, 0.5):  # nothing can be below 0
        assert runs_to_decide(np.array([1.0, 2.0]), bounds=(least, 6.0)) == 1.0
    assert paired(np.array([1.0, -1.0, 2.0])).runs_to_decide > 3
    assert paired(np.array([1.0, -1.0])).runs_to_decide == math.inf
