"""Proved regret bounds of our own policies; docs/proofs.md and docs/guard.md have the proofs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError
from manyarms.policies.parts.guard import guard_log
from manyarms.theory.arrays import Numbers, check_arms, check_beta, check_horizon, like
from manyarms.theory.hardness import Problem
from manyarms.theory.rates import moss_plus_plus_rate
from manyarms.theory.schedules import guard_stages

_ROOT_5 = math.sqrt(5.0)
_ONE_PULL = "One pull may choose a wrong arm."
_BELOW_1 = "At 1 the bound is infinite."


def patience_bound(n: Numbers, m: Numbers, horizon: Numbers, *, sigma: float = 0.5) -> Any:
    r"""Return the bound on the regret of Patience, which knows the best mean.

    .. math:: 2 \sqrt{\frac{n}{m}\, T\, (4 \log T + 3)} + 1

    Parameters
    ----------
    n, m, horizon
        Arms, best arms among them, and T >= 2; numbers or arrays.
    sigma
        Must be 1/2, for which the bound is proved: rewards in [0, 1].

    Notes
    -----
    It holds for every hardness at once: with :math:`n/m = 2 T^\alpha` it is of order
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


def guarded_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of any rule under a guard that knows the horizon.

    .. math:: 10 \, (\log T)^{5/2} \, T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of the guard, between 1/2 and 1.

    Notes
    -----
    Corollary 2 of docs/guard.md, for rewards in [0, 1]. It has the rate of `moss_plus_plus_bound`
    and a constant 40 times smaller. At `alpha` = 0 and `beta` = 1/2 it is below T from T = 2^29 on.

    Examples
    --------
    >>> round(guarded_bound(0.0, 2**32, beta=0.5))  # 10 * 22.1807^2.5 * 2^16
    1518513052
    """
    t = check_horizon(horizon)
    rate = moss_plus_plus_rate(np.asarray(alpha), beta=beta)
    return like((alpha, horizon), 10.0 * np.log(t) ** 2.5 * t**rate)


def anytime_guarded_bound(alpha: Numbers, horizon: Numbers, *, beta: float) -> Any:
    r"""Return the bound on the regret of any rule under a guard that guesses the horizon.

    .. math:: \Big(3 + \frac{9}{4^\beta (1 - \beta)}\Big) \, (\log 8T)^{5/2} \,
              T^{\min(\max(\beta, 1 + \alpha - \beta), 1)}

    Parameters
    ----------
    alpha, horizon
        Hardness at time T, between 0 and 1, and T >= 2; numbers or arrays.
    beta
        The parameter of the guard, at least 1/2 and below 1.

    Notes
    -----
    Corollary 4 of docs/guard.md, for rewards in [0, 1] and all T at once. The first guess is 256;
    it is doubled whenever four times the number of pulls made reaches it.

    Examples
    --------
    >>> round(anytime_guarded_bound(0.0, 2**32, beta=0.5))  # 12 * 24.2602^2.5 * 2^16
    2279790503
    """
    beta = check_number("beta", beta, at_least=0.5, below=1.0, fix=_BELOW_1)
    t = check_horizon(horizon)
    constant = 3.0 + 9.0 / (4.0**beta * (1.0 - beta))
    rate = moss_plus_plus_rate(np.asarray(alpha), beta=beta)
    return like((alpha, horizon), constant * np.log(8.0 * t) ** 2.5 * t**rate)


def guarded_problem_bound(problem: Problem, *, beta: float, anytime: bool = False) -> float:
    r"""Return the bound on the regret of any rule under the guard on a problem of a given size.

    .. math:: 6 L^{3/2} T^\beta + 2 \sqrt 5 \, L^{3/2} K \, T^{1-\beta}, \quad
              L = \max(1, \log T), \quad K = \min(n, L \, n / m)

    Parameters
    ----------
    problem
        Arms, best arms and T >= 2; infinitely many arms are allowed.
    beta
        The parameter of the guard, between 1/2 and 1; below 1 if `anytime`.
    anytime
        Whether the guard guesses the horizon (default: False). Then
        :math:`6 \cdot 8^\beta / (1 - 2^{-\beta})` replaces 6,
        :math:`2 \sqrt 5 / (4^\beta (1 - \beta))` replaces :math:`2 \sqrt 5`, and L is
        :math:`\log(8T)`.

    Notes
    -----
    Theorem 1 and Corollary 4 of docs/guard.md, for rewards in [0, 1]. If arms up to e below the
    best mean are counted as best, the bound grows by e T.

    Examples
    --------
    >>> round(guarded_problem_bound(Problem(100, 50, 2**30), beta=0.5))
    596555242
    >>> guarded_problem_bound(Problem(100, 50, 2**20), beta=0.5) > 2**20  # vacuous
    True
    """
    t = _horizon_of(problem)
    if anytime:
        beta = check_number("beta", beta, at_least=0.5, below=1.0, fix=_BELOW_1)
        log = math.log(8 * t)
        first = 6.0 * 8.0**beta / (1.0 - 2.0**-beta)
        second = 2.0 * _ROOT_5 / (4.0**beta * (1.0 - beta))
    else:
        beta = check_beta(beta)
        log, first, second = guard_log(t), 6.0, 2.0 * _ROOT_5
    arms = min(problem.n, problem.ratio * log)
    return float(log**1.5 * (first * t**beta + second * arms * t ** (1.0 - beta)))


def guarded_steps_bound(problem: Problem, *, beta: float) -> float:
    r"""Return the sum of the terms in the guard's proof, without the simplifications; at most T.

    With the stages of `guard_stages`, their ends :math:`c_i = \tau_i + \sum_{j \le i} k_j n_j`,
    and i* the last stage with :math:`k_i \ge \min(n, L n/m)`, it is

    .. math:: c_0 + \sum_{i < i^*} (c_{i+1} - c_i) \varepsilon_i + (T - c_{i^*}) \varepsilon_{i^*}
              + 4 T^\beta L + 1 + 2 \sqrt T + k_1
              + \sum_{i \ge 1} (\sqrt{2 x_i} + \tfrac12) k_i \sqrt{n_i}

    Parameters
    ----------
    problem
        Arms, best arms and T >= 2; infinitely many arms are allowed.
    beta
        The parameter of the guard, between 1/2 and 1.

    Notes
    -----
    Ends are cut at T and errors at 1, and stages that never begin cost nothing. With `beta` = 1/2
    it is below T from T = 2^16 on if one of two arms is best, and from 2^25 on if half of many arms
    are best.

    Examples
    --------
    >>> round(guarded_steps_bound(Problem(2, 1, 2**20), beta=0.5))
    314720
    >>> guarded_steps_bound(Problem(100, 1, 2**10), beta=0.5)
    1024.0
    """
    t = _horizon_of(problem)
    finite = {} if math.isinf(problem.n) else {"n": int(problem.n)}
    stages = guard_stages(t, beta=beta, **finite)
    enough = stages.arms >= min(problem.n, problem.ratio * guard_log(t))
    if not enough[0]:
        return float(t)
    last = int(np.flatnonzero(enough)[-1])
    work = stages.arms * np.sqrt(stages.pulls)
    begins = stages.starts < t
    begins[0] = False  # until the end of stage 0 every pull counts in full
    # floats, because the pulls of stages that never begin may exceed 64 bits
    ends = np.minimum(t, stages.starts + np.cumsum(stages.arms * stages.pulls.astype(float)))
    errors = np.minimum(1.0, stages.errors)
    floor = ends[0] + np.diff(ends)[:last] @ errors[:last] + (t - ends[last]) * errors[last]
    tests = ((np.sqrt(2.0 * stages.levels) + 0.5) * work)[begins].sum()
    first_pulls = stages.arms[begins].max(initial=0)
    rest = stages.allowance + 1.0 + 2.0 * math.sqrt(t)
    return float(min(t, floor + rest + tests + first_pulls))


def _horizon_of(problem: Problem) -> int:
    if not isinstance(problem, Problem):
        raise ParameterError(
            f"`problem` must be a Problem, got {problem!r}. Use Problem(n, m, horizon)."
        )
    return check_int("horizon", problem.horizon, at_least=2, fix=_ONE_PULL)
