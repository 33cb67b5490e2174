"""The iterations of MOSS++ as a table: how many arms, for how many pulls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations

__all__ = ["Schedule", "moss_plus_plus_schedule"]

_MOST = 1 << 62


class Schedule(NamedTuple):
    """What `moss_plus_plus_schedule` returns.

    Attributes
    ----------
    iterations
        p.
    arms
        min(K_i, n) for i = 1, …, p: the real arms of each iteration.
    mixtures
        i - 1: the mixture-arms beside them.
    pulls
        ΔT_i. They reach the horizon together, and the game ends there: the last ones may be cut.

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


def moss_plus_plus_schedule(horizon: int, *, beta: float, n: int = _MOST) -> Schedule:
    r"""Return the schedule of MOSS++ (Algorithm 1).

    .. math:: p = \lceil \log_2 T^\beta \rceil, \quad K_i = 2^{p+2-i}, \quad
              \Delta T_i = \min(2^{p+i}, T)

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
    :math:`K_i \Delta T_i = 2^{2p+2}` until the horizon cuts: every iteration has the same
    :math:`\sqrt{K_i \Delta T_i}`, and so the same learning error. Uncut lengths add up to
    :math:`2 (2^{2p} - 2^p) \ge T`.

    Examples
    --------
    >>> schedule = moss_plus_plus_schedule(256, beta=0.5)
    >>> schedule.iterations, schedule.arms.tolist(), schedule.pulls.tolist()
    (4, [32, 16, 8, 4], [32, 64, 128, 256])
    """
    t = check_int("horizon", horizon, at_least=1, at_most=_MOST)
    n = check_int("n", n, at_least=1, at_most=_MOST)
    p = iterations(t, check_number("beta", beta, at_least=0.5, at_most=1.0))
    numbers = range(1, p + 1)
    arms = [iteration_arms(p, i, n) for i in numbers]
    pulls = [iteration_pulls(p, i, t) for i in numbers]
    return Schedule(p, *(np.array(each, dtype=np.int64) for each in (arms, range(p), pulls)))
