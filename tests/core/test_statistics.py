"""Student's quantiles against printed tables."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from manyarms.core.statistics import (
    mean_interval,
    median_ratio_interval,
    ratio_interval,
    student_quantile,
)


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
        (0.975, 1000, 1.96234),
        (0.025, 10, -2.22814),
        (0.5, 7, 0.0),
    ],
)
def test_printed_values(probability: float, degrees: int, printed: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(printed, abs=6e-5)


def test_the_two_formulas_meet() -> None:
    below, above = student_quantile(0.975, 399), student_quantile(0.975, 400)
    assert 0 < below - above < 1e-4
    assert student_quantile(0.975, 10**9) == pytest.approx(NormalDist().inv_cdf(0.975))


def test_fieller_by_hand() -> None:
    # over = 2 under exactly: every r but 2 is refused, so the interval is a point
    under = np.array([4.0, 5.0, 6.0, 5.5])
    assert ratio_interval(2 * under, under) == pytest.approx((2.0, 2.0, 2.0))
    # under may be 0: nothing can be said
    assert ratio_interval(under, np.array([-1.0, 1.0, -1.0, 1.5])).high == math.inf


def test_ratio_intervals_cover() -> None:
    """400 intervals of 95 %: at least 350 cover, but for a false alarm of about 1e-6."""
    rng = np.random.default_rng(3)
    covered = medians = 0
    for _ in range(400):
        under = rng.normal(10.0, 2.0, 40)
        over = 3.0 * under + rng.normal(0.0, 4.0, 40)
        interval = ratio_interval(over, under)
        covered += interval.low <= 3.0 <= interval.high
        interval = median_ratio_interval(over[:30], under[:30])
        medians += interval.low <= 3.0 <= interval.high
    assert covered >= 350
    assert medians >= 340  # the bootstrap of a median is a little too narrow


def test_one_value_has_no_interval() -> None:
    one = np.array([2.0])
    assert math.isnan(mean_interval(one).low)
    assert math.isnan(ratio_interval(one, one).low)
