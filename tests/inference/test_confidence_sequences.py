"""Confidence sequences: values by hand, and coverage at all times at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.inference.confidence_sequences import (
    evidence_below,
    log_evidence,
    shown_below,
    spent_error,
    uniform_half_width,
    uniform_interval,
)


def test_intervals_by_hand() -> None:
    # one value of 1: B(3/2, 1/2) = pi/2, and 1 / (2 m) is below 1 / 0.05 from m = 0.025 on
    low, high = uniform_interval(1, 1.0)
    assert (float(low), float(high)) == pytest.approx((0.025, 1.0))
    # none of two: B(1/2, 5/2) = 3 pi / 8, and (3 / 8) / (1 - m)^2 is below 20
    low, high = uniform_interval(2, 0.0)
    assert (float(low), float(high)) == pytest.approx((0.0, 1.0 - math.sqrt(3 / 160)))
    # 3 of 7 in the bounds 10 and 20, with another error: both ends solve the equation
    low, high = uniform_interval(7, 100.0, bounds=(10.0, 20.0), error=0.01)
    log_beta = math.lgamma(3.5) + math.lgamma(4.5) - math.lgamma(8.0)
    for mean in ((float(low) - 10) / 10, (float(high) - 10) / 10):
        ratio = math.exp(log_beta) / math.pi / (mean**3 * (1 - mean) ** 4)
        assert ratio == pytest.approx(100.0)


def test_intervals_without_bounds_by_hand() -> None:
    # (1/2) / 4 * sqrt((4 + 12.5) log((4 + 12.5) / (12.5 * 0.05^2)))
    half = 0.125 * math.sqrt(16.5 * math.log(528))
    assert float(uniform_half_width(4, 0.5)) == pytest.approx(half)
    low, high = uniform_interval(4, 12.0, bounds=None, sigma=1.0)
    assert (float(low), float(high)) == pytest.approx((3.0 - 2 * half, 3.0 + 2 * half))


def test_intervals_of_extreme_counts() -> None:
    counts = np.array([1, 10**9, 10**9, 10**9, 5])
    totals = np.array([1e-12, 0.0, 1e9, 3e7, 2.5])
    low, high = uniform_interval(counts, totals, error=1e-12)
    assert (
        (low >= 0.0) & (high <= 1.0) & (low <= totals / counts) & (totals / counts <= high)
    ).all()
    assert (high[1], 1 - low[2]) == pytest.approx((4e-8, 4e-8), rel=0.3)
    assert high[3] - low[3] < 1e-4
    # sums that rounding moved out of the range count as its ends
    assert uniform_interval(10, 10 + 1e-9)[1] == 1.0


RANGES = [(0.0, 1.0), (-1.0, 3.0), None]


@pytest.mark.parametrize("bounds", RANGES)
def test_evidence_against_the_ends_of_an_interval_is_one_over_the_error(
    bounds: tuple[float, float] | None,
) -> None:
    low, high = uniform_interval(40, 20.0, bounds=bounds, sigma=0.7, error=0.02)
    evidence = log_evidence(40, 20.0, [low, high], bounds=bounds, sigma=0.7)
    assert evidence == pytest.approx(math.log(50))
    if bounds is not None:
        outside = log_evidence(40, 20.0, [bounds[0], bounds[1]], bounds=bounds)
        assert outside.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("bounds", RANGES)
def test_shown_below_agrees_with_the_upper_bounds(bounds: tuple[float, float] | None) -> None:
    low, high = bounds or (-2.0, 2.0)
    counts = np.repeat([0.0, 1.0, 7.0, 60.0, 4000.0], 6)
    totals = counts * (low + (high - low) * np.tile([0.0, 0.01, 0.2, 0.5, 0.9, 1.0], 5))
    errors = np.resize([0.05, 1e-6], counts.shape)
    tried = counts > 0
    upper = uniform_interval(
        counts[tried], totals[tried], bounds=bounds, sigma=0.7, error=errors[tried]
    )[1]
    for bar in (low - 0.1, low, *np.linspace(low, high, 9)[1:-1], high, high + 0.1):
        below = shown_below(counts, totals, bar, bounds=bounds, sigma=0.7, error=errors)
        assert below[tried].tolist() == (upper <= bar).tolist()
        assert not below[~tried].any()


@pytest.mark.parametrize("bounds", RANGES)
def test_evidence_is_the_mean_of_five_likelihood_ratios(
    bounds: tuple[float, float] | None,
) -> None:
    parts, bar, sigma = (1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16), 0.4, 0.7
    for count, total in ((0, 0.0), (1, 0.3), (20, 5.0), (20, -3.0), (300, 250.0), (5000, -4990.0)):
        if bounds is None:  # normal values of standard deviation sigma
            logs = [
                ((total - count * bar) ** 2 - (total - count * (bar - (1 - f) * sigma)) ** 2)
                / (2 * count * sigma**2)
                if count
                else 0.0
                for f in parts
            ]
        else:
            width = bounds[1] - bounds[0]
            ones = min(max((total - bounds[0] * count) / width, 0.0), count)
            mean = (bar - bounds[0]) / width
            logs = [
                ones * math.log(f) + (count - ones) * math.log((1 - f * mean) / (1 - mean))
                for f in parts
            ]
        expected = sum(math.exp(min(log, 700.0)) for log in logs) / 5
        evidence = evidence_below(count, total, bar, bounds=bounds, sigma=sigma)
        assert float(evidence) == pytest.approx(expected)
    if bounds is not None:
        ends = [evidence_below([9], [9.0], end, bounds=bounds)[0] for end in bounds]
        assert ends == [1.0, math.inf]


def test_the_spent_errors_add_up_to_the_error() -> None:
    parts = spent_error(0.05, np.arange(1, 100_001))
    assert 0.0499 < parts.sum() < 0.05
    assert parts[0] / parts[9] == pytest.approx(100.0)


@pytest.mark.slow
def test_sequences_hold_at_all_times_at_once() -> None:
    """400 sequences of 1000 values, for each of four distributions; at most 5 % may ever be wrong.

    The upper 1e-9 quantile of a binomial count of 400 with probability 0.05 is 51.
    """
    rng = np.random.default_rng(5)
    counts = np.arange(1, 1001)
    for mean, values in (
        (0.5, rng.random((400, 1000)) < 0.5),
        (0.03, rng.random((400, 1000)) < 0.03),
        (0.9, rng.random((400, 1000)) < 0.9),
        (0.25, rng.beta(0.5, 1.5, (400, 1000))),
    ):
        low, high = uniform_interval(counts, np.cumsum(values, axis=1))
        wrong = int(((mean < low) | (high < mean)).any(axis=1).sum())
        assert wrong <= 51
        # and the interval is not too wide: with a third of the width it fails for more
        middle, third = (low + high) / 2, (high - low) / 6
        assert int((np.abs(mean - middle) > third).any(axis=1).sum()) > 80


def test_near_0_intervals_are_narrower_than_the_mixture_for_any_variance() -> None:
    half = float(uniform_half_width(1000, 0.5))
    low, high = uniform_interval(1000, 30.0)
    assert 0.014 < low < 0.03 < high < 0.055
    assert high - low < half
    # in the middle, where rewards vary most, they are only a little wider
    low, high = uniform_interval(1000, 500.0)
    assert high - low < 1.15 * 2 * half
