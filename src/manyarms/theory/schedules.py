"""The sizes and lengths that the policies follow, as kernels: one source for all machines."""

from __future__ import annotations

import math

from manyarms.core.jit import kernel

__all__ = [
    "epoch_length",
    "iteration_arms",
    "iteration_pulls",
    "iterations",
    "quantile_arms",
    "subroutines",
    "subset_size",
]


@kernel
def iterations(horizon: int, beta: float) -> int:
    r"""Return p, the number of iterations of MOSS++ (Algorithm 1).

    .. math:: p = \lceil \log_2 T^\beta \rceil

    >>> iterations(50_000, 0.5), iterations(2**20, 0.55), iterations(1, 0.5)
    (8, 11, 0)
    """
    # 0.55 * 20 is 11.000000000000002 in floating point: the guard is wider than such errors,
    # and narrower than the step from T = 2^k to 2^k + 1 for every T below 2^38
    return math.ceil(beta * math.log2(horizon) - 1e-12)


@kernel
def iteration_arms(p: int, i: int, n_arms: int) -> int:
    r"""Return the number of real arms in iteration i of MOSS++.

    .. math:: \min(K_i, n), \quad K_i = 2^{p+2-i}

    >>> [iteration_arms(8, i, 20_000) for i in (1, 2, 8)]
    [512, 256, 4]
    """
    return min(1 << (p + 2 - i), n_arms)


@kernel
def iteration_pulls(p: int, i: int, horizon: int) -> int:
    r"""Return the length of iteration i of MOSS++.

    .. math:: \Delta T_i = \min(2^{p+i}, T)

    >>> [iteration_pulls(8, i, 50_000) for i in (1, 2, 8)]
    [512, 1024, 50000]
    """
    return horizon if p + i >= 62 else min(1 << (p + i), horizon)


@kernel
def subset_size(horizon: int, alpha: float, factor: float, n_arms: int) -> int:
    r"""Return the number of arms that the subroutine SR draws for hardness `alpha`.

    .. math:: \min(\lceil 2 T^\alpha \log\sqrt T \rceil, T)

    with 2 = `factor`; never more than there are arms, never none.

    >>> subset_size(50_000, 0.4, 2.0, 20_000)
    820
    """
    wanted = math.ceil(factor * math.pow(horizon, alpha) * 0.5 * math.log(horizon))
    return max(1, min(wanted, horizon, n_arms))


@kernel
def subroutines(horizon: int) -> int:
    r"""Return the number of subroutines of Parallel (Algorithm 3).

    .. math:: q = \max(1, \lceil \log T \rceil)

    >>> subroutines(50_000), subroutines(1)
    (11, 1)
    """
    return max(1, math.ceil(math.log(horizon)))


@kernel
def epoch_length(horizon: int) -> int:
    r"""Return the number of pulls in an epoch of Parallel.

    .. math:: \Delta = \lceil \sqrt T \rceil

    >>> epoch_length(50_000), epoch_length(49)
    (224, 7)
    """
    return math.ceil(math.sqrt(horizon))


@kernel
def quantile_arms(round_number: int, exponent: float, n_arms: int) -> int:
    r"""Return the size of QRM2's set in round l.

    .. math:: \min(\lceil 2^{0.347\,l} \rceil, n)

    >>> [quantile_arms(l, 0.347, 20_000) for l in (1, 2, 10, 16)]
    [2, 2, 12, 47]
    """
    return min(math.ceil(math.pow(2.0, exponent * round_number)), n_arms)
