"""The schedules of MOSS++ and of the guard as tables, computed by the policies' own formulas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.policies.moss_plus_plus import iteration_arms, iteration_pulls, iterations
from manyarms.policies.parts.guard import (
    guard_allowance,
    guard_error,
    guard_lower_level,
    guard_stage,
    guard_stages_planned,
    guard_upper_level,
)
from manyarms.theory.arrays import MOST, check_beta


class Schedule(NamedTuple):
    """The result of `moss_plus_plus_schedule`.

    Attributes
    ----------
    iterations
        p.
    arms
        min(K_i, n) for i = 1, …, p: the real arms of each iteration.
    mixtures
        i - 1: the mixture-arms of each iteration.
    pulls
        ΔT_i. They add up to the horizon or more; the last ones are cut at the horizon.

    Examples
    --------
    >>> from manyarms.theory import moss_plus_plus_schedule
    >>> moss_plus_plus_schedule(1000, beta=0.5, n=40).arms
    array([40, 32, 16,  8,  4])
    """

    iterations: int
    arms: NDArray[np.int64]
    mixtures: NDArray[np.int64]
    pulls: NDArray[np.int64]


def moss_plus_plus_schedule(horizon: int, *, beta: float, n: int = MOST) -> Schedule:
    r"""Return the schedule of MOSS++ (Algorithm 1): p, and :math:`K_i` and :math:`\Delta T_i`.

    The formulas are those that `MOSSPlusPlus` runs.

    Parameters
    ----------
    horizon
        T.
    beta
        The parameter of MOSS++, between 1/2 and 1.
    n
        The number of arms (default: more than any set can hold).

    Notes
    -----
    While :math:`\Delta T_i` is not cut at the horizon, :math:`K_i \Delta T_i = 2^{2p+2}`, so every
    iteration has about the same learning error, of order :math:`\sqrt{K_i \Delta T_i}`. Uncut
    lengths add up to :math:`2 (2^{2p} - 2^p) \ge T`.

    Examples
    --------
    >>> schedule = moss_plus_plus_schedule(256, beta=0.5)
    >>> schedule.iterations, schedule.arms.tolist(), schedule.pulls.tolist()
    (4, [32, 16, 8, 4], [32, 64, 128, 256])
    """
    t = check_int("horizon", horizon, at_least=1, at_most=MOST)
    n = check_int("n", n, at_least=1, at_most=MOST)
    p = iterations(t, check_beta(beta))
    numbers = range(1, p + 1)
    arms = [iteration_arms(p, i, n) for i in numbers]
    pulls = [iteration_pulls(p, i, t) for i in numbers]
    return Schedule(p, *(np.array(each, dtype=np.int64) for each in (arms, range(p), pulls)))


class GuardStages(NamedTuple):
    """The result of `guard_stages`: columns by stage, and two numbers for all stages.

    Attributes
    ----------
    arms
        k_i: the first k_i arms of the guard's order are tested.
    pulls
        n_i: an arm is tested until it has this many pulls in all, or is ruled out.
    starts
        τ_i: the number of pulls made when the stage is due. A stage due at T never begins.
    levels
        x_i: the level of the upper bounds that rule arms out.
    errors
        ε_i: how far the floor may be below the best mean after the stage.
    floor_level
        The level of the lower bounds that the floor is made of.
    allowance
        The loss against the floor above which a rule is dropped.

    Examples
    --------
    >>> from manyarms.theory import guard_stages
    >>> guard_stages(50_000, beta=0.5, n=7).arms
    array([7, 7, 6, 3, 2, 1])
    """

    arms: NDArray[np.int64]
    pulls: NDArray[np.int64]
    starts: NDArray[np.int64]
    levels: NDArray[np.float64]
    errors: NDArray[np.float64]
    floor_level: float
    allowance: float


def guard_stages(horizon: int, *, beta: float, n: int = MOST) -> GuardStages:
    r"""Return the schedule of the guard, under which any rule has the rate of MOSS++.

    .. math:: a_i = \lceil 2^{-i} S \rceil, \quad k_i = \min(a_i, n), \quad
              n_i = \lceil (S/a_i)^2 \rceil, \quad \tau_i = \lceil T^\beta S / a_i \rceil, \quad
              S = T^\beta / \max(1, \log T)

    Parameters
    ----------
    horizon
        T >= 2.
    beta
        Between 1/2 and 1.
    n
        The number of arms (default: more than any stage tests).

    Notes
    -----
    :math:`k_i \sqrt{n_i}` is about S in every stage, so all stages cost the same. Pulls and starts
    are cut at T; a stage that this affects never begins. docs/guard.md has the guard and the proof.

    Examples
    --------
    >>> stages = guard_stages(50_000, beta=0.5)
    >>> stages.arms.tolist(), stages.pulls.tolist()
    ([21, 11, 6, 3, 2, 1], [1, 4, 12, 48, 107, 428])
    >>> stages.starts.tolist()
    [221, 421, 771, 1541, 2311, 4622]
    """
    t = check_int("horizon", horizon, at_least=2, at_most=MOST)
    n = check_int("n", n, at_least=1, at_most=MOST)
    beta = check_beta(beta)
    low, up = guard_lower_level(t), guard_upper_level(t)
    stages = (guard_stage(t, beta, i) for i in range(guard_stages_planned(t, beta)))
    wanted, pulls, starts = zip(*stages, strict=True)
    arms = [min(k, n) for k in wanted]
    levels = [low if k == n else up for k in arms]
    errors = [guard_error(x, low, need) for x, need in zip(levels, pulls, strict=True)]
    return GuardStages(
        arms=np.array(arms, dtype=np.int64),
        pulls=np.array(pulls, dtype=np.int64),
        starts=np.array(starts, dtype=np.int64),
        levels=np.array(levels),
        errors=np.array(errors),
        floor_level=low,
        allowance=guard_allowance(t, beta),
    )
