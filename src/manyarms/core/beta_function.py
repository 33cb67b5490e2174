"""The beta function and the tail of a Beta distribution, bit-equal in CPython and compiled code."""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare

_SHIFT = 8.0  # from here on Stirling's series has 11 correct digits
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_SMALL = 1e-15  # relative precision
_AWAY = 1e-300  # denominators are kept at least this far from 0


@kernel
def log_gamma(x: float) -> float:
    """Return log Γ(x) for x > 0, with bit-equal results in CPython and in compiled code."""
    shift = 1.0
    while x < _SHIFT:
        shift *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_2_PI + series - math.log(shift)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return log B(a, b)."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@kernel
def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method.

    It converges fast for x < (a + 1) / (a + b + 2): in at most O(sqrt(a + b)) steps.
    """
    c = 1.0
    d = 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    change = 0.0
    m = 1.0
    while abs(change - 1.0) > _SMALL and m < 1e6:
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / _away(1.0 + even * d)
        c = _away(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / _away(1.0 + odd * d)
        c = _away(1.0 + odd / c)
        change = d * c
        value *= change
        m += 1.0
    return value


@kernel
def _away(number: float) -> float:
    return number if abs(number) > _AWAY else _AWAY


@rare
def beta_tail(a: float, b: float, x: float) -> float:
    """Return the probability that a Beta(a, b) number exceeds x, for x above its mean."""
    weight = math.exp(b * math.log(1.0 - x) + a * math.log(x) - log_beta(a, b))
    return weight / b * incomplete_beta(b, a, 1.0 - x)
