"""What the paper's theorems promise on the regret, with their constants and conditions.

Upper bounds hold for the expected pseudo-regret, for rewards in [0, 1] (or sub-Gaussian ones with
sigma = 1/2 and gaps of at most 1) unless a function says otherwise. Numbers and arrays are
broadcast; numbers give a number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyarms.theory._arrays import Numbers, check_alpha, check_arms, check_horizon, like
from manyarms.theory.lower_bound_family import LowerBoundFamily
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate
from manyarms.theory.schedules import subroutines

__all__ = [
    "anytime_moss_plus_plus_bound",
    "lower_bound",
    "minimax_order",
    "moss_plus_plus_bound",
    "parallel_bound",
    "subroutine_bound",
]


def subroutine_bound(alpha: Numbers, horizon: Numbers) -> Any:
    r"""Return the bound on the regret of the subroutine SR that knows the hardness (MOSS Oracle).

    .. math:: 19 \sqrt e \, \log T \; T^{(1+\alpha)/2}

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 2; numbers or arrays.

    Notes
    -----
    The set has :math:`\lceil T^\alpha \log T \rceil` arms. It misses all best arms with probability
    at most :math:`1/\sqrt T`, which costs :math:`\sqrt T`; MOSS on the set costs the rest. The
    paper uses 18 as the constant of MOSS. With 20.5, for `exploration` = 1, the sum stays below the
    same bound.

    Examples
    --------
    >>> round(subroutine_bound(0.0, 10_000))
    28852
    """
    t = check_horizon(horizon)
    rate = minimax_rate(check_alpha(alpha))
    return like((alpha, horizon), 19.0 * math.sqrt(math.e) * np.log(t) * t**rate)


def moss_plus_plus_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of MOSS++ (Theorem 1).

    .. math:: 160 \, (\log_2 T)^{5/2} \, T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of MOSS++, between 1/2 and 1.

    Notes
    -----
    Before T = 2^41 the bound is above T for every `alpha` and `beta`, so it says nothing; see
    `share_of_horizon`. `learning_error_bound` can be checked at practical horizons. The paper uses
    18 as the constant of MOSS. With 20.5, for `exploration` = 1, the sum of the learning errors
    stays below the same bound.

    Examples
    --------
    >>> moss_plus_plus_bound(0.25, 2**16, beta=0.5)  # 160 * 16^2.5 * 2^12
    671088640.0
    """
    return _moss_plus_plus(160.0, alpha, horizon, beta)


def anytime_moss_plus_plus_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of MOSS++ under `Doubling`, at every time T.

    .. math:: 924 \, (\log_2 T)^{5/2} \, T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness at time T, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of MOSS++, between 1/2 and 1.

    Notes
    -----
    The constant is as the paper prints it. Its proof takes the hardness at T for that at the
    shorter horizons that doubling plays, where the same arms are harder. The rate is sound.

    Examples
    --------
    >>> anytime_moss_plus_plus_bound(0.25, 2**16, beta=0.5)  # 924 * 16^2.5 * 2^12
    3875536896.0
    """
    return _moss_plus_plus(924.0, alpha, horizon, beta)


def parallel_bound(alpha: Numbers, horizon: Numbers) -> Any:
    r"""Return the bound on the regret of Parallel that knows the best mean, for rewards in [0, 1].

    .. math:: \lceil \log T \rceil \Big(19 \sqrt e \, \log T \; T^{(1+\alpha)/2}
              + 4 \sqrt{T \log(2\, T^{3/2} \lceil \log T \rceil)}\Big) + \sqrt T

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 3; numbers or arrays.

    Notes
    -----
    Theorem 4 says :math:`C (\log T)^2\, T^{(1+\alpha)/2}`; this is the form that its proof gives.

    Examples
    --------
    >>> parallel_bound(0.0, 10_000) > 10_000  # it says nothing at so short a horizon
    True
    """
    t = check_horizon(horizon, at_least=3, fix="The proof needs log T >= 1.")
    q = np.vectorize(subroutines, otypes=[np.float64])(t)
    luck = 4.0 * np.sqrt(t * np.log(2.0 * t**1.5 * q))
    return like((alpha, horizon), q * (subroutine_bound(alpha, horizon) + luck) + np.sqrt(t))


def lower_bound(
    alpha: Numbers, horizon: Numbers, *, budget: Numbers, alpha_prime: Numbers = 0.0
) -> Any:
    r"""Return the regret that being good on easy problems costs on hard ones, for any policy.

    A policy whose regret is at most B on all problems of hardness α' has, on some problem of
    hardness α, at least the regret

    .. math:: 2^{-10}\, T^{1+\alpha} / B

    Parameters
    ----------
    alpha, alpha_prime
        The two hardnesses, 0 <= alpha_prime < alpha <= 1; numbers or arrays.
    horizon
        T, such that :math:`\lfloor T^\alpha \rfloor - 1 \ge \max(T^\alpha/4, 2)`.
    budget
        B, at least T^alpha.

    Notes
    -----
    The paper's lower bound; `LowerBoundFamily` has the problems of its proof, and checks the
    conditions. Pareto optimality follows: with B of order T^θ(0) the rate at α is at least
    1 + α - θ(0).

    Examples
    --------
    >>> lower_bound(0.5, 2**20, budget=2**12)  # 2^-10 * 2^30 / 2^12
    256.0
    >>> lower_bound(0.5, 2**20, budget=np.array([2**10, 2**11]))
    array([1024.,  512.])
    """
    inputs = (alpha, horizon, budget, alpha_prime)
    t = check_horizon(horizon, fix="")
    a, t, b, easier = np.broadcast_arrays(alpha, t, budget, alpha_prime)
    for one in zip(a.flat, t.flat, b.flat, easier.flat, strict=True):  # their conditions are ours
        LowerBoundFamily(alpha=one[0], horizon=int(one[1]), budget=one[2], alpha_prime=one[3])
    return like(inputs, 2.0**-10 * t ** (1.0 + a) / b)


def minimax_order(n: Numbers, m: Numbers, horizon: Numbers) -> Any:
    r"""Return the order of regret that no policy can go below, even if it knows m.

    .. math:: \Omega\big(\sqrt{T (n - m) / m}\big)

    This is an order, not a bound. Its constant is not stated, so a single number means nothing;
    only its growth does.

    Parameters
    ----------
    n, m, horizon
        Arms, best arms among them, and T; numbers or arrays.

    Examples
    --------
    >>> minimax_order(1010, 10, 10_000)
    1000.0
    >>> minimax_order(5, 5, 10_000)  # every arm is best
    0.0
    """
    arms, best = check_arms(n, m)
    t = check_horizon(horizon, at_least=1, fix="")
    return like((n, m, horizon), np.sqrt(t * (arms - best) / best))


def _moss_plus_plus(constant: float, alpha: Numbers, horizon: Numbers, beta: float) -> Any:
    t = check_horizon(horizon)
    rate = moss_plus_plus_rate(check_alpha(alpha), beta=beta)
    return like((alpha, horizon), constant * np.log2(t) ** 2.5 * t**rate)
