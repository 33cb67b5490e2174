"""What is proved of our own two policies; the proofs are in docs/proofs.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyarms.core.checks import check_number
from manyarms.errors import ParameterError
from manyarms.theory._arrays import Numbers, check_arms, check_horizon, like
from manyarms.theory.bounds import moss_plus_plus_bound

__all__ = ["hybrid_moss_plus_plus_bound", "patience_bound"]


def hybrid_moss_plus_plus_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of Hybrid MOSS++: that of MOSS++, times the root of 2.

    .. math:: \sqrt 2 \cdot 160 \, (\log_2 T)^{5/2} \, T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of Hybrid MOSS++, between 1/2 and 1.

    Notes
    -----
    Its sets are at most twice those of MOSS++, so an iteration's learning error grows by the root
    of 2 at most; the rest of the proof is that of MOSS++. As there, it is above T at every horizon
    that can be played: see `learning_error_bound`.

    Examples
    --------
    >>> round(hybrid_moss_plus_plus_bound(0.25, 2**16, beta=0.5))  # 1.41421 * 160 * 16^2.5 * 2^12
    949062656
    """
    return math.sqrt(2.0) * moss_plus_plus_bound(alpha, horizon, beta=beta)


def patience_bound(n: Numbers, m: Numbers, horizon: Numbers, *, sigma: float = 0.5) -> Any:
    r"""Return the bound on the regret of Patience told the best mean.

    .. math:: 2 \sqrt{\frac{n}{m}\, T\, (4 \log T + 3)} + 1

    Parameters
    ----------
    n, m, horizon
        Arms, best arms among them, and T >= 2; numbers or arrays.
    sigma
        1/2, for which it is proved: rewards in [0, 1], gaps of at most 1.

    Notes
    -----
    For every hardness at once: with :math:`n/m = 2 T^\alpha` it is of order
    :math:`T^{(1+\alpha)/2} \sqrt{\log T}`.

    Examples
    --------
    >>> round(patience_bound(100, 10, 10_000), 1)  # 2 sqrt(10 * 10000 * 39.84136) + 1
    3993.1
    """
    sigma = check_number("sigma", sigma, above=0.0)
    if sigma != 0.5:
        raise ParameterError(f"`sigma` must be 0.5 for this bound, got {sigma!r}.")
    arms, best = check_arms(n, m)
    t = check_horizon(horizon)
    return like((n, m, horizon), 2.0 * np.sqrt(arms / best * t * (4.0 * np.log(t) + 3.0)) + 1.0)
