"""The stages of the guard as a table: how many arms, for how many pulls, when, how exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number
from manyarms.theory.schedules import (
    guard_allowance,
    guard_error,
    guard_lower_level,
    guard_stage_arms,
    guard_stage_pulls,
    guard_stage_start,
    guard_stages_planned,
    guard_upper_level,
)

__all__ = ["GuardStages", "guard_stages"]

_MOST = 1 << 62


class GuardStages(NamedTuple):
    """What `guard_stages` returns: a number for each stage, and two for all of them.

    Attributes
    ----------
    arms
        k_i: the first k_i arms of the guard's order are tested.
    pulls
        n_i: an arm is tested until it has this many pulls in all, or is ruled out.
    starts
        τ_i: the pulls made when the stage is due. At T it never begins.
    levels
        x_i: the level of the upper bounds that rule arms out.
    errors
        ε_i: how far the floor may be below the best mean after the stage.
    floor_level
        The level of the lower bounds that the floor is made of.
    allowance
        What a rule may lose against the floor before it is dropped.

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


def guard_stages(horizon: int, *, beta: float, n: int = _MOST) -> GuardStages:
    r"""Return the timetable of the guard, under which any rule keeps the rate of MOSS++.

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
    t = check_int("horizon", horizon, at_least=2, at_most=_MOST)
    n = check_int("n", n, at_least=1, at_most=_MOST)
    beta = check_number("beta", beta, at_least=0.5, at_most=1.0)
    low, up = guard_lower_level(t), guard_upper_level(t)
    numbers = range(guard_stages_planned(t, beta))
    arms = [min(guard_stage_arms(t, beta, i), n) for i in numbers]
    pulls = [guard_stage_pulls(t, beta, i) for i in numbers]
    starts = [guard_stage_start(t, beta, i) for i in numbers]
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
