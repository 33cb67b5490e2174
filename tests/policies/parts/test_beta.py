"""The Beta law by hand, against binomial sums, integrals and its own inverse."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.core.rng import draw
from manyarms.policies.field.thompson import most_tail
from manyarms.policies.parts.beta import (
    beta_tail,
    beta_upper,
    beta_variate,
    share_of_tail,
    stirling_error,
)

whole = st.integers(1, 60)


def exact_tail(a: int, b: int, x: Fraction) -> Fraction:
    """Return P(Beta(a, b) > x) = P(Bin(a + b - 1, x) < a)."""
    n = a + b - 1
    terms = (math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a))
    return sum(terms, Fraction(0))


@given(a=whole, b=whole, x=st.fractions(0, 1, max_denominator=4096))
def test_tail_is_the_binomial_sum(a: int, b: int, x: Fraction) -> None:
    exact = exact_tail(a, b, x)
    computed = beta_tail(float(a), float(b), float(x))
    assert computed == pytest.approx(float(exact), rel=1e-11, abs=1e-14)


@pytest.mark.parametrize(("a", "b"), [(900, 100), (30000, 4000), (5, 40000), (2000, 2000)])
def test_tail_of_many_pulls_is_the_integral(a: int, b: int) -> None:
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1 - mean) / (a + b + 1))
    for z in (-3.0, -0.5, 0.0, 1.0, 4.0):
        # Simpson's rule from x to some 14 deviations beyond the mean
        x, steps = max(mean + z * deviation, 1e-6), 4000
        width = (min(mean + 14 * deviation, 1 - 1e-6) - x) / steps
        log_b = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

        def density(at: float, log_b: float = log_b) -> float:
            return math.exp((a - 1) * math.log(at) + (b - 1) * math.log1p(-at) - log_b)

        inner = (2 + 2 * (k % 2) for k in range(1, steps))
        total = math.fsum(w * density(x + k * width) for k, w in enumerate(inner, 1))
        integral = width / 3 * (total + density(x) + density(x + steps * width))
        assert beta_tail(float(a), float(b), x) == pytest.approx(integral, rel=1e-6)


def test_stirling_error() -> None:
    for n in (1, 2, 15, 16, 17, 100):
        exact = math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - math.log(math.tau) / 2
        assert stirling_error(float(n)) == pytest.approx(exact, abs=2e-13 * max(1, n / 10))


@given(a=st.integers(1, 3000), b=st.integers(1, 3000), p=st.floats(1e-12, 1 - 1e-12))
def test_upper_is_the_inverse_of_the_tail(a: int, b: int, p: float) -> None:
    x = beta_upper(float(a), float(b), p)
    assert 0 < x <= 1
    around = [beta_tail(float(a), float(b), x * (1 + e)) for e in (1e-11, -1e-11)]
    assert around[0] - 1e-14 <= p <= around[1] + 1e-14


@given(a=whole, b=whole, x=st.floats(0.001, 0.999))
def test_the_cheap_bound_is_never_below_the_tail(a: int, b: int, x: float) -> None:
    ways = float(math.comb(a + b - 1, b)) if b <= 8 else math.inf
    bound = most_tail(ways, b, a / (a + b), float(a + b), x)
    assert bound * (1 + 1e-12) >= beta_tail(float(a), float(b), x)


def test_the_largest_of_k() -> None:
    for u in (0.001, 0.3, 0.999):
        for k in (1, 2, 1000, 10**9):
            largest = -math.expm1(k * math.log1p(-share_of_tail(u, k)))
            assert largest == pytest.approx(u, rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(2, 2), (2, 30), (70, 3), (400, 100), (1, 5), (5, 1)])
def test_variates_have_the_law(a: int, b: int) -> None:
    # Kolmogorov: P(sqrt(n) D > 2.9) <= 2 exp(-2 * 2.9^2) < 1e-7
    n = 4000
    key = draw(17, a)
    values = sorted(
        beta_tail(float(a), float(b), beta_variate(float(a), float(b), draw(key, k)))
        for k in range(n)
    )
    distance = max(max(abs(v - k / n), abs(v - (k + 1) / n)) for k, v in enumerate(values))
    assert math.sqrt(n) * distance < 2.9
