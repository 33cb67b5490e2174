"""The Bernoulli divergence and its inverse, by hand and with 60 digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.policies.parts.kl import bernoulli_kl, kl_above, kl_upper

MEANS = (0.0, 1e-12, 1e-6, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1 - 1e-9, 1.0)
BOUNDS = (1e-9, 1e-6, 0.001, 0.02, 0.1, 0.5, 1.0, 3.0, 10.0, 20.0)
probabilities = st.floats(0, 1)
bounds = st.floats(0, 50)


def exact_kl(p: float, q: Decimal) -> Decimal:
    x = Decimal(p)
    return x * (x / q).ln() + (1 - x) * ((1 - x) / (1 - q)).ln()


def exact_upper(p: float, bound: float) -> float:
    low, high = Decimal(p), Decimal(1)
    for _ in range(110):
        middle = (low + high) / 2
        if exact_kl(p, middle) <= Decimal(bound):
            low = middle
        else:
            high = middle
    return float(low)


@pytest.mark.parametrize(
    ("p", "q", "value"),
    [
        (0.5, 0.25, math.log(4 / 3) / 2),
        (0.25, 0.5, 0.25 * math.log(0.5) + 0.75 * math.log(1.5)),
        (0.0, 0.5, math.log(2)),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
        (0.5, 1.0, math.inf),
        (1.0, 0.0, math.inf),
    ],
)
def test_divergence_by_hand(p: float, q: float, value: float) -> None:
    assert bernoulli_kl(p, q) == pytest.approx(value, rel=1e-15)


def test_nearby_means_lose_no_digits() -> None:
    with localcontext() as context:
        context.prec = 60
        for p in (0.001, 0.3, 0.5, 0.9):
            for gap in (1e-3, 1e-6, 1e-9):
                value = float(exact_kl(p, Decimal(p + gap)))
                assert bernoulli_kl(p, p + gap) == pytest.approx(value, rel=1e-15 / gap)


@pytest.mark.parametrize(
    ("mean", "bound", "value"),
    [
        (0.0, math.log(2), 0.5),
        (0.5, math.log(4 / 3) / 2, 0.75),
        (0.25, 0.25 * math.log(0.5) + 0.75 * math.log(1.5), 0.5),
        (0.25, -1.0, 0.25),
        (0.25, math.inf, 1.0),
        (1.0, 0.1, 1.0),
        (-3.0, math.log(2), 0.5),
    ],
)
def test_upper_by_hand(mean: float, bound: float, value: float) -> None:
    assert kl_upper(mean, bound) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("mean", MEANS[1:-1])
def test_upper_to_the_last_digits(mean: float) -> None:
    with localcontext() as context:
        context.prec = 60
        for bound in BOUNDS:
            exact = exact_upper(mean, bound)
            assert abs(kl_upper(mean, bound) - exact) <= 6 * math.ulp(exact), bound


@given(mean=probabilities, bound=bounds)
def test_upper_is_a_bound(mean: float, bound: float) -> None:
    q = kl_upper(mean, bound)
    assert mean <= q <= kl_above(mean, bound) <= 1
    inside = q - 32 * math.ulp(q)  # q is accurate to some units in the last place; 12 were observed
    assert inside <= mean or bernoulli_kl(mean, inside) <= bound


@given(one=probabilities, two=probabilities, bound=bounds)
def test_upper_grows_with_the_mean(one: float, two: float, bound: float) -> None:
    low, high = min(one, two), max(one, two)
    assert kl_upper(low, bound) <= kl_upper(high, bound) * (1 + 2e-15)


@given(mean=probabilities, one=bounds, two=bounds)
def test_upper_grows_with_the_bound(mean: float, one: float, two: float) -> None:
    assert kl_upper(mean, min(one, two)) <= kl_upper(mean, max(one, two)) * (1 + 2e-15)
