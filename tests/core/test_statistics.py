"""Student's quantiles against printed tables."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from manyarms.core.statistics import student_quantile


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
