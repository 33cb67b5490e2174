"""The Beta(a, b) law with integers a, b >= 1, the posterior of a coin, for compiled code.

Kernels cannot call SciPy. Results have about 13 correct digits.
"""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare
from manyarms.core.rng import draw, open_unit
from manyarms.policies.parts.kl import bernoulli_kl

_FEW = 16  # below, Stirling's error comes from the factorial itself
_STEPS = 50  # of Newton's method; it needs 3 to 5
_CLOSE = 1e-13  # relative change at which it stops: the next one would be of the order 1e-26
_SMALL = 1e-15
_TINY = 1e-300
_LOG_4 = math.log(4.0)
_LOG_5 = math.log(5.0)


def _stirling_error_of(n: int) -> float:
    if n == 0:
        return 0.0
    return math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - math.log(math.tau) / 2


_ERRORS = tuple(map(_stirling_error_of, range(_FEW)))


@kernel
def stirling_error(n: float) -> float:
    """Return log n! minus Stirling's formula, for an integer n >= 1."""
    if n < _FEW:
        return _ERRORS[int(n)]
    s = 1.0 / (n * n)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / n


@kernel
def _weight(a: float, b: float, x: float) -> float:
    r"""Return :math:`x^a (1 - x)^b / B(a, b)`, without cancellation for large a and b.

    It is a binomial probability but for a factor, in the form of Loader (2000).
    """
    n = a + b
    log = stirling_error(n) - stirling_error(a) - stirling_error(b) - n * bernoulli_kl(a / n, x)
    return math.exp(log) * math.sqrt(a * b / (math.tau * n))


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
    return number if abs(number) > _TINY else _TINY


@rare
def beta_tail(a: float, b: float, x: float) -> float:
    """Return the probability that a Beta(a, b) number is above x.

    >>> beta_tail(1.0, 1.0, 0.25), round(beta_tail(2.0, 3.0, 0.5), 12)
    (0.75, 0.3125)
    """
    if x <= 0.0:
        return 1.0
    if x >= 1.0:
        return 0.0
    if a == 1.0:
        return math.exp(b * math.log1p(-x))
    if b == 1.0:
        return -math.expm1(a * math.log(x))
    weight = _weight(a, b, x)
    if x > (a + 1.0) / (a + b + 2.0):
        return weight * incomplete_beta(b, a, 1.0 - x) / b
    return 1.0 - weight * incomplete_beta(a, b, x) / a


@rare
def beta_upper(a: float, b: float, p: float) -> float:
    """Return the number that a Beta(a, b) number exceeds with probability p, 0 < p < 1.

    Newton's method for the logarithm of the smaller tail, which is concave: after its first step
    it closes in from one side.

    >>> beta_upper(1.0, 1.0, 0.25), round(beta_upper(2.0, 3.0, 0.3125), 12)
    (0.75, 0.5)
    """
    if a == 1.0:
        return -math.expm1(math.log(p) / b)
    if b == 1.0:
        return math.exp(math.log1p(-p) / a)
    x = _first_guess(a, b, p)
    for _ in range(_STEPS):
        weight = _weight(a, b, x)  # the density is this divided by x (1 - x)
        if x > (a + 1.0) / (a + b + 2.0):
            above = weight * incomplete_beta(b, a, 1.0 - x) / b
            below = 1.0 - above
        else:
            below = weight * incomplete_beta(a, b, x) / a
            above = 1.0 - below
        if p <= 0.5:
            ratio = above * math.log(max(above, _TINY) / p) / max(weight, _TINY)
        else:
            ratio = -below * math.log(max(below, _TINY) / (1.0 - p)) / max(weight, _TINY)
        step = ratio * x * (1.0 - x)
        step = min(max(step, -0.5 * x), 0.5 * (1.0 - x))  # stay inside
        x += step
        if abs(step) <= _CLOSE * min(x, 1.0 - x):
            break
    return x


@kernel
def _first_guess(a: float, b: float, p: float) -> float:
    """Return an approximation of `beta_upper`: Abramowitz & Stegun 26.5.22 and 26.2.22."""
    r = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
    z = r - (2.30753 + 0.27061 * r) / (1.0 + r * (0.99229 + 0.04481 * r))
    if p > 0.5:
        z = -z
    one, two = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h = 2.0 / (one + two)
    s = (z * z - 3.0) / 6.0
    w = z * math.sqrt(h + s) / h - (one - two) * (s + 5.0 / 6.0 - 2.0 / (3.0 * h))
    x = a / (a + b * math.exp(-2.0 * w))
    return min(max(x, 1e-12), 1.0 - 1e-12)


@kernel
def share_of_tail(u: float, k: int) -> float:
    """Return the tail probability of one number, if that of the largest of k is u.

    The largest of k is above x with probability 1 - (1 - tail)^k.

    >>> share_of_tail(0.75, 2)
    0.5
    """
    return u if k == 1 else -math.expm1(math.log1p(-u) / k)


@rare
def beta_variate(a: float, b: float, key: int) -> float:
    """Return a Beta(a, b) number from the random words that belong to `key`.

    Algorithm BB of Cheng (1978) for a, b > 1; two words a try, and hardly ever more than two tries.
    """
    if a <= 1.0 or b <= 1.0:
        return beta_upper(a, b, open_unit(draw(key, 0)))
    small, large, n = min(a, b), max(a, b), a + b
    scale = math.sqrt((n - 2.0) / (2.0 * a * b - n))
    slope = small + 1.0 / scale
    words = 0
    while True:
        u = open_unit(draw(key, words))
        z = u * u * open_unit(draw(key, words + 1))
        words += 2
        v = scale * math.log(u / (1.0 - u))
        w = small * math.exp(v)
        r = slope * v - _LOG_4
        if small + r - w + 1.0 + _LOG_5 >= 5.0 * z:
            break
        if r + n * math.log(n / (large + w)) >= math.log(z):
            break
    return w / (large + w) if a == small else large / (large + w)
