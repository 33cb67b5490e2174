"""The Kullback–Leibler divergence of Bernoulli laws, and the upper confidence bound it gives."""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare

__all__ = ["bernoulli_kl", "kl_upper"]

_STEPS = 64  # halvings that take an interval below any difference of floats in it


@kernel
def bernoulli_kl(p: float, q: float) -> float:
    r"""Return the divergence of Bernoulli(q) from Bernoulli(p), for p in [0, 1] and q in (0, 1).

    .. math:: \mathrm{kl}(p, q) = p \log\frac{p}{q} + (1 - p) \log\frac{1 - p}{1 - q}

    >>> round(bernoulli_kl(0.5, 0.9), 6), bernoulli_kl(0.3, 0.3)
    (0.510826, 0.0)
    """
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(0.0, value)


@rare
def kl_upper(mean: float, bound: float) -> float:
    r"""Return the largest q in [mean, 1] with kl(mean, q) <= bound, by bisection.

    The mean is taken into [0, 1] first: rounding may have pushed it out.

    >>> round(kl_upper(0.5, bernoulli_kl(0.5, 0.9)), 9)
    0.9
    >>> kl_upper(1.0, 0.1), kl_upper(0.25, 0.0)
    (1.0, 0.25)
    """
    mean = min(max(mean, 0.0), 1.0)
    if bound <= 0.0 or mean == 1.0:
        return mean
    low = mean
    high = min(1.0, mean + math.sqrt(0.5 * bound))  # Pinsker: kl(p, q) >= 2 (p - q)^2
    if high == 1.0 and mean == 0.0:
        return -math.expm1(-bound)  # kl(0, q) = -log(1 - q)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return low
        if bernoulli_kl(mean, middle) <= bound:
            low = middle
        else:
            high = middle
    return low
