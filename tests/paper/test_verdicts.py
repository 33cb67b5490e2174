"""Verdicts: an interval decides a part, or leaves it undecided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from paper.verdicts import (
    Ask,
    Claim,
    Part,
    Verdict,
    decided,
    either,
    exactly,
    less,
    mean,
    more,
    ratio,
    within,
)

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        (more("x", Interval(2, 1, 3)), HOLDS),
        (more("x", Interval(2, -1, 5)), OPEN),
        (more("x", Interval(-2, -3, -1)), FAILS),
        (less("x", Interval(2, 1, 3), 0.5), FAILS),
        (within("x", Interval(1, 0.8, 1.2), 0.5, 1.5), HOLDS),
        (within("x", Interval(1, 0.4, 1.2), 0.5, 1.5), OPEN),
        (within("x", Interval(0.1, 0.0, 0.2), 0.5, 1.5), FAILS),
        (more("x", Interval(2, math.nan, math.nan)), OPEN),
        (exactly("x", 3, "= 3", True), HOLDS),
        (exactly("x", 4, "= 3", False), FAILS),
    ],
)
def test_parts(part: Part, verdict: Verdict) -> None:
    assert part.verdict == verdict


def _claim(*parts: Part, stand_in: bool = False) -> Claim:
    return Claim(3, "All is well.", "", parts, stand_in=stand_in)


YES, NO, WHO_KNOWS = (
    more("y", Interval(2, 1, 3)),
    more("n", Interval(-2, -3, -1)),
    more("w", Interval(0, -1, 1)),
)


def test_a_claim_has_one_verdict() -> None:
    assert _claim(YES, YES).verdict == HOLDS
    assert _claim(YES, WHO_KNOWS).verdict == OPEN
    assert _claim(YES, WHO_KNOWS, NO).verdict == FAILS
    assert _claim().verdict == OPEN
    claim = _claim(YES, WHO_KNOWS, NO)
    assert (claim.deciding, claim.counts) == ([NO], "1 of 3 parts")
    assert _claim(YES, YES).counts == ""
    assert str(NO) == "n: -2 [-3, -1], required > 0: fails"


def test_a_stand_in_decides_nothing() -> None:
    claim = _claim(YES, stand_in=True)
    assert (claim.verdict, claim.said, claim.counts) == (OPEN, "not checked", "")


def test_parts_that_depend_on_chance_share_the_error() -> None:
    asked: list[float] = []

    def ask(confidence: float) -> Part:
        asked.append(confidence)
        return YES

    assert decided([ask, exactly("x", 3, "= 3", True), *[ask] * 4])[1].what == "x"
    assert asked == [pytest.approx(0.99)] * 5
    decided([ask])
    assert asked[-1] == 0.95


@pytest.mark.slow
def test_a_family_of_true_parts_is_rarely_wrong() -> None:
    """Of 120 claims with 20 true parts each, at most 16 have a failing part.

    With probability 0.05 each, more than 16 do with probability 1e-4; uncorrected, 64 % would.
    """
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(120):
        runs = np.where(rng.random((20, 40)) < 0.02, 1000.0, rng.normal(10.0, 3.0, (20, 40)))
        truth = 0.02 * 1000.0 + 0.98 * 10.0

        def ask(own: NDArray[np.float64], truth: float = truth) -> Ask:
            bounds = (-20.0, 1000.0)
            return lambda sure: within(
                "mean", mean_interval(own, bounds=bounds, confidence=sure), truth, truth
            )

        wrong += any(part.verdict == FAILS for part in decided(map(ask, runs)))
    assert wrong <= 16


def test_either_needs_one_of_two_parts() -> None:
    asked: list[float] = []

    def give(part: Part) -> Ask:
        def ask(sure: float) -> Part:
            asked.append(sure)
            return part

        return ask

    assert either(give(WHO_KNOWS), give(YES))(0.9) is YES
    assert either(give(NO), give(WHO_KNOWS))(0.9) is WHO_KNOWS
    assert either(give(NO), give(NO))(0.9) is NO
    assert asked == [pytest.approx(0.95)] * 6


def test_unseen_runs_count() -> None:
    """Forty runs above a bound do not decide a mean that rare misses could move below it."""
    values = np.full(40, 100.0)
    assert mean("x", values, 4e4, more)(0.95).verdict == OPEN
    assert mean("x", np.tile(values, 100), 4e4, more)(0.95).verdict == HOLDS


def test_a_ratio_is_a_ratio_of_means() -> None:
    over, under = np.array([3.0, 3.2, 3.1, 1.0] * 10), np.array([2.0] * 40)
    part = ratio("x", over, under, (5.0, 5.0), within, 1.0, 2.0)(0.95)
    assert part.interval.estimate == pytest.approx(over.mean() / 2)
    assert part.verdict == HOLDS
    assert ratio("x", over, under, (5.0, 5.0), less, 0.3)(0.95).verdict == FAILS
