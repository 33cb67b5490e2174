"""The divergence of two Bernoulli distributions, and the upper confidence bound from it."""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare

_STEPS = 60  # an upper bound; Newton's method needs 3 to 8 steps
_SMALL = 1e-15  # relative precision
_TINY = 1e-290  # below it p log p is negligible; above it 1 / p is finite


@kernel
def bernoulli_kl(p: float, q: float) -> float:
    r"""Return the Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q).

    .. math:: \mathrm{kl}(p, q) = p \log \frac pq + (1 - p) \log \frac{1 - p}{1 - q}

    with 0 log 0 = 0; infinite if q is 0 or 1 and p is not q. Computed with the logarithm of
    1 + (q - p) / p, which is accurate if p and q are close.

    >>> math.isclose(bernoulli_kl(0.5, 0.25), math.log(4 / 3) / 2)
    True
    >>> bernoulli_kl(0.0, 0.0), bernoulli_kl(0.5, 1.0)
    (0.0, inf)
    """
    if p == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return math.inf
    if p <= _TINY:
        return -math.log1p(-q)
    if p >= 1.0:
        return -math.log(q)
    gap = q - p
    return max(0.0, -p * math.log1p(gap / p) - (1.0 - p) * math.log1p(-gap / (1.0 - p)))


@kernel
def kl_above(mean: float, bound: float) -> float:
    r"""Return an upper bound of `kl_upper(mean, bound)` that is cheap to compute.

    It is the smaller of the bounds from :math:`2 (q - p)^2 \le \mathrm{kl}(p, q)` (Pinsker) and
    :math:`(q - p)^2 \le 2 q\, \mathrm{kl}(p, q)`, plus a margin for rounding errors.

    >>> kl_above(0.5, 0.02) > 0.6 >= kl_upper(0.5, 0.02)
    True
    """
    p = min(max(mean, 0.0), 1.0)
    b = max(bound, 0.0)
    near = min(math.sqrt(0.5 * b), b + math.sqrt(b * (b + 2.0 * p)))
    return min(1.0, (p + near) * (1.0 + 4.0 * _SMALL))


@rare
def kl_upper(mean: float, bound: float) -> float:
    r"""Return the largest q in [mean, 1] with :math:`\mathrm{kl}(\text{mean}, q) \le` `bound`.

    A mean outside [0, 1] is replaced by the nearer end. The divergence is convex and increasing in
    q above the mean, so Newton's method from above converges monotonically.

    >>> kl_upper(0.0, math.log(2)), kl_upper(1.0, 0.3), kl_upper(0.25, 0.0)
    (0.5, 1.0, 0.25)
    >>> kl_upper(0.5, math.log(4 / 3) / 2)
    0.75
    """
    p = min(max(mean, 0.0), 1.0)
    if p >= 1.0 or bound >= math.inf:
        return 1.0
    if bound <= 0.0:
        return p
    if p <= _TINY:
        return max(p, -math.expm1(-bound))
    # kl(p, q) >= -(1 - p) log(1 - q) - entropy of p: a tight start if q is close to 1
    entropy = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
    q = min(kl_above(p, bound), -math.expm1(-(bound + entropy) / (1.0 - p)))
    for _ in range(_STEPS):
        if q <= p or q >= 1.0:
            break
        step = (bernoulli_kl(p, q) - bound) * q * (1.0 - q) / (q - p)
        q -= step
        if abs(step) <= _SMALL * q:
            break
    return min(max(q, p), 1.0)


@rare
def switch_at(members: int, horizon: int) -> int:
    r"""Return the largest N for which kl-UCB-switch uses the KL index.

    .. math:: \lfloor (H / K)^{1/5} \rfloor

    >>> switch_at(10, 320), switch_at(10, 319), switch_at(10, 9)
    (2, 1, 0)
    """
    pulls = 0
    while members * (pulls + 1) ** 5 <= horizon:
        pulls += 1
    return pulls
