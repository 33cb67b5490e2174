"""Proved bounds on the regret of the paper's policies, with constants and conditions.

Upper bounds hold for the expected pseudo-regret with rewards in [0, 1]. `moss_bound` and
`subroutine_bound` also hold for sub-Gaussian rewards with sigma = 1/2 and gaps of at most 1.
Numbers and arrays are broadcast; if all inputs are numbers, so is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError
from manyarms.policies.moss_plus_plus import iteration_arms, iteration_pulls, iterations
from manyarms.policies.parallel import subroutines
from manyarms.theory.arrays import (
    MOST,
    Numbers,
    check_alpha,
    check_arms,
    check_beta,
    check_horizon,
    check_numbers,
    like,
)
from manyarms.theory.lower_bound_family import LowerBoundFamily
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate


def moss_bound(
    arms: Numbers,
    horizon: Numbers,
    *,
    exploration: float = 1.0,
    sigma: float = 0.5,
    sum_of_gaps: float | None = None,
) -> Any:
    r"""Return the bound on the regret of MOSS on K = `arms` arms with horizon H >= K.

    .. math:: 39\,\sigma\sqrt{KH} + \sum_a \Delta_a \;\le\; (39\,\sigma + 1)\sqrt{KH}

    which is :math:`20.5 \sqrt{KH}` for sigma = 1/2. With `exploration` = 1/2 and sigma = 1/2 the
    bound is :math:`18\sqrt{KH}`.

    Parameters
    ----------
    arms, horizon
        K and H, numbers or arrays.
    exploration
        The parameter of `MOSS`: 1 or 1/2. For other values no constant is known.
    sigma
        Rewards are sigma-sub-Gaussian; 1/2 if `exploration` is 1/2.
    sum_of_gaps
        :math:`\sum_a \Delta_a`, if `exploration` is 1 (default: its upper bound
        :math:`\sqrt{KH} \ge K`, for gaps of at most 1).

    Notes
    -----
    The constant 39 is from the theorem on MOSS in Lattimore & Szepesvári, *Bandit Algorithms*. The
    constant 18 is from Garivier et al., *KL-UCB-switch*; the paper uses 18 throughout.

    Examples
    --------
    >>> moss_bound(4, 10_000)
    4100.0
    >>> moss_bound(4, 10_000, exploration=0.5)
    3600.0
    >>> moss_bound(4, np.array([100, 10_000]), sum_of_gaps=1.5)
    array([ 391.5, 3901.5])
    """
    k = check_numbers("arms", arms, at_least=1, whole=True)
    h = check_numbers("horizon", horizon, at_least=1, whole=True)
    sigma = check_number("sigma", sigma, above=0.0)
    for few, pulls in np.stack(np.broadcast_arrays(k, h), axis=-1)[k > h][:1]:
        raise ParameterError(
            f"`horizon` must be >= arms = {few:g} for this bound, got {pulls:g}, {few - pulls:g} "
            f"too few. With more arms than pulls MOSS only explores."
        )
    root = np.sqrt(k * h)
    if exploration == 0.5 and sigma == 0.5 and sum_of_gaps is None:
        return like((arms, horizon), 18.0 * root)
    if exploration != 1.0:
        raise ParameterError(
            f"`exploration` must be 1, or 1/2 with sigma = 1/2 and no sum_of_gaps, got "
            f"{exploration!r}, sigma={sigma!r} and sum_of_gaps={sum_of_gaps!r}. No constant "
            f"is known for another index."
        )
    gaps = root if sum_of_gaps is None else check_number("sum_of_gaps", sum_of_gaps, at_least=0.0)
    return like((arms, horizon), 39.0 * sigma * root + gaps)


def learning_error_bound(
    horizon: int, iteration: int, *, beta: float, n: int, exploration: float = 1.0
) -> float:
    r"""Return the bound on the regret of one iteration of MOSS++ against the best arm of its set.

    .. math:: \Delta T_i \max_{a \in S_i} \mu_a - E \sum \mu_{A_t}
              \;\le\; 20.5 \sqrt{|S_i| \Delta T_i}

    (18 replaces 20.5 with `exploration` = 1/2.) The set includes the mixture-arms, each with the
    mean of its mixture.

    Parameters
    ----------
    horizon
        T.
    iteration
        i, from 1 to p; the bound is for a complete iteration.
    beta
        The parameter of MOSS++.
    n
        The number of arms.
    exploration
        The parameter of MOSS++: 1 or 1/2.

    Notes
    -----
    Each iteration is a new MOSS with :math:`|S_i| = \min(K_i, n) + i - 1` arms and
    :math:`\Delta T_i` pulls, so this is `moss_bound`, given the set. If the set has more arms than
    the iteration has pulls, the bound holds trivially. From about i = 6 on it is informative, that
    is, below :math:`\Delta T_i`.

    Examples
    --------
    >>> learning_error_bound(2**16, 7, beta=0.5, n=1000)  # 8 arms and 6 mixture-arms, 2^15 pulls
    13884.9...
    """
    t = check_int("horizon", horizon, at_least=2, at_most=MOST)
    n = check_int("n", n, at_least=1, at_most=MOST)
    p = iterations(t, check_beta(beta))
    i = check_int("iteration", iteration, at_least=1, at_most=p, fix=f"MOSS++ has p = {p} of them.")
    members = iteration_arms(p, i, n) + i - 1
    constant = moss_bound(1, 1, exploration=exploration)  # 20.5, or 18
    return float(constant * math.sqrt(members * iteration_pulls(p, i, t)))


def subroutine_bound(alpha: Numbers, horizon: Numbers) -> Any:
    r"""Return the bound on the regret of MOSS Oracle, the subroutine SR that knows the hardness.

    .. math:: 19 \sqrt e \, \log T \; T^{(1+\alpha)/2}

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 2; numbers or arrays.

    Notes
    -----
    The set has :math:`\lceil T^\alpha \log T \rceil` arms. It misses all best arms with probability
    at most :math:`1/\sqrt T`, which costs :math:`\sqrt T`; MOSS on the set costs the rest. The
    paper uses 18 as the constant of MOSS. The same bound holds with 20.5, for `exploration` = 1.

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
    Below T = 2^41 the bound exceeds T for every `alpha` and `beta`, so it is vacuous; see
    `share_of_horizon`. `learning_error_bound` can be checked at practical horizons. The paper uses
    18 as the constant of MOSS. The same bound holds with 20.5, for `exploration` = 1.

    Examples
    --------
    >>> moss_plus_plus_bound(0.25, 2**16, beta=0.5)  # 160 * 16^2.5 * 2^12
    671088640.0
    """
    return _moss_plus_plus(160.0, alpha, horizon, beta)


def anytime_moss_plus_plus_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of MOSS++ under `Doubling` at any time T.

    .. math:: 924 \, (\log_2 T)^{5/2} \, T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness at time T, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of MOSS++, between 1/2 and 1.

    Notes
    -----
    The constant is the paper's, but only the rate is proved: the paper uses the hardness at T also
    for the shorter phases of `Doubling`, where the same problem is harder.

    Examples
    --------
    >>> anytime_moss_plus_plus_bound(0.25, 2**16, beta=0.5)  # 924 * 16^2.5 * 2^12
    3875536896.0
    """
    return _moss_plus_plus(924.0, alpha, horizon, beta)


def parallel_bound(alpha: Numbers, horizon: Numbers) -> Any:
    r"""Return the bound on the regret of Parallel, for rewards in [0, 1].

    .. math:: \lceil \log T \rceil \Big(19 \sqrt e \, \log T \; T^{(1+\alpha)/2}
              + 4 \sqrt{T \log(2\, T^{3/2} \lceil \log T \rceil)}\Big) + \sqrt T

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 3; numbers or arrays.

    Notes
    -----
    Theorem 4 states :math:`C (\log T)^2\, T^{(1+\alpha)/2}`; its proof gives this form.

    Examples
    --------
    >>> parallel_bound(0.0, 10_000) > 10_000  # vacuous at this horizon
    True
    """
    t = check_horizon(horizon, at_least=3, fix="The proof needs log T >= 1.")
    q = np.vectorize(subroutines, otypes=[np.float64])(t)
    luck = 4.0 * np.sqrt(t * np.log(2.0 * t**1.5 * q))
    return like((alpha, horizon), q * (subroutine_bound(alpha, horizon) + luck) + np.sqrt(t))


def lower_bound(
    alpha: Numbers, horizon: Numbers, *, budget: Numbers, alpha_prime: Numbers = 0.0
) -> Any:
    r"""Return the least regret on hard problems of a policy with low regret on easy ones.

    If the regret of a policy is at most B on all problems of hardness at most α', then on some
    problem of hardness at most α it is at least

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
    The paper's lower bound. `LowerBoundFamily` has the problems of its proof, and checks the
    conditions. Pareto optimality follows: with B of order T^θ(0), the rate at α is at least
    min(1 + α - θ(0), 1).

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
    for one in zip(a.flat, t.flat, b.flat, easier.flat, strict=True):  # it has the same conditions
        LowerBoundFamily(alpha=one[0], horizon=int(one[1]), budget=one[2], alpha_prime=one[3])
    return like(inputs, 2.0**-10 * t ** (1.0 + a) / b)


def minimax_order(n: Numbers, m: Numbers, horizon: Numbers) -> Any:
    r"""Return the order of the least possible regret of a policy, even of one that knows m.

    .. math:: \Omega\big(\sqrt{T (n - m) / m}\big)

    This is an order, not a bound. Its constant is not stated, so only its growth has a meaning.

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


def share_of_horizon(bound: Numbers, horizon: Numbers) -> Any:
    """Return the bound divided by the horizon; a bound is vacuous if this is at least 1.

    If gaps are at most 1, the regret of T pulls is at most T anyway.

    Parameters
    ----------
    bound, horizon
        Numbers or arrays.

    Examples
    --------
    >>> from manyarms.theory import moss_bound, moss_plus_plus_bound
    >>> share_of_horizon(moss_plus_plus_bound(0.25, 2**16, beta=0.5), 2**16)
    10240.0
    >>> share_of_horizon(moss_bound(4, 10_000), 10_000)
    0.41
    """
    t = check_numbers("horizon", horizon, at_least=1, whole=True)
    return like((bound, horizon), check_numbers("bound", bound, at_least=0.0) / t)


def informative_from(bound: Callable[[int], float], *, at_most: int = 1 << 500) -> int | None:
    """Return the least horizon T from which a bound stays below T, or None if there is none.

    Parameters
    ----------
    bound
        A function of the horizon T; bound(T) / T must decrease from some T on.
    at_most
        The largest horizon tried.

    Examples
    --------
    >>> from manyarms.theory import moss_bound, moss_plus_plus_bound
    >>> informative_from(lambda horizon: moss_bound(10, max(horizon, 10)))  # 20.5^2 * 10 = 4202.5
    4203
    >>> informative_from(lambda horizon: moss_plus_plus_bound(1.0, horizon, beta=0.5)) is None
    True
    """
    check_int("at_most", at_most, at_least=2, at_most=1 << 900)  # floats end at 2^1024
    high = 1 << (at_most.bit_length() - 1)
    if bound(high) >= high:
        return None
    while high > 2 and bound(high // 2) < high // 2:
        high //= 2
    low = high // 2  # here it is vacuous, or it is the shortest horizon
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def _moss_plus_plus(constant: float, alpha: Numbers, horizon: Numbers, beta: float) -> Any:
    t = check_horizon(horizon)
    rate = moss_plus_plus_rate(check_alpha(alpha), beta=beta)
    return like((alpha, horizon), constant * np.log2(t) ** 2.5 * t**rate)
