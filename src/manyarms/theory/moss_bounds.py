"""The bound on MOSS, and on one iteration of MOSS++, which is a MOSS of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError
from manyarms.theory._arrays import Numbers, check_numbers, like
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations

__all__ = ["learning_error_bound", "moss_bound"]

_MOST = 1 << 62


def moss_bound(
    arms: Numbers,
    horizon: Numbers,
    *,
    exploration: float = 1.0,
    sigma: float = 0.5,
    sum_of_gaps: float | None = None,
) -> Any:
    r"""Return the bound on the regret of MOSS on K = `arms` arms, for a horizon of H >= K.

    .. math:: 39\,\sigma\sqrt{KH} + \sum_a \Delta_a \;\le\; (39\,\sigma + 1)\sqrt{KH}

    which is :math:`20.5 \sqrt{KH}` for sigma = 1/2; with `exploration` = 1/2 it is
    :math:`18\sqrt{KH}`.

    Parameters
    ----------
    arms, horizon
        K and H, numbers or arrays.
    exploration
        As `MOSS` was given it: 1 or 1/2. For other values no constant is known to us.
    sigma
        Rewards are sigma-sub-Gaussian. The second form is for sigma = 1/2 alone.
    sum_of_gaps
        The sum over arms of what a pull of each loses, which sharpens the first form (default: at
        most :math:`K \le \sqrt{KH}`, since gaps are at most 1).

    Notes
    -----
    First form: Lattimore & Szepesvári, *Bandit Algorithms*, the theorem on MOSS. Second form:
    Garivier et al., *KL-UCB-switch*; the paper uses its constant throughout.

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
            f"{exploration!r}, sigma={sigma!r} and sum_of_gaps={sum_of_gaps!r}. For no other index "
            f"is a constant known."
        )
    gaps = root if sum_of_gaps is None else check_number("sum_of_gaps", sum_of_gaps, at_least=0.0)
    return like((arms, horizon), 39.0 * sigma * root + gaps)


def learning_error_bound(
    horizon: int, iteration: int, *, beta: float, n: int, exploration: float = 1.0
) -> float:
    r"""Return the bound on what one whole iteration of MOSS++ loses against the best of its set.

    .. math:: \Delta T_i \max_{a \in S_i} \mu_a - E \sum \mu_{A_t}
              \;\le\; 20.5 \sqrt{|S_i| \Delta T_i}

    (18 instead of 20.5 with `exploration` = 1/2.) Mixture-arms are among the arms of the set, each
    with the mean of its mixture.

    Parameters
    ----------
    horizon
        T.
    iteration
        i, from 1 to p.
    beta
        The parameter of MOSS++.
    n
        The number of arms.
    exploration
        As MOSS++ was given it: 1 or 1/2.

    Notes
    -----
    Each iteration is a new MOSS, with :math:`|S_i| = \min(K_i, n) + i - 1` arms for
    :math:`\Delta T_i` pulls: this is `moss_bound`, given the set. Where the set has more arms than
    there are pulls the right side exceeds the pulls, which is all that can be lost: it holds there
    too. Unlike the theorem it says something at horizons that can be played.

    Examples
    --------
    >>> learning_error_bound(2**16, 7, beta=0.5, n=1000)  # 8 arms and 6 mixture-arms, 2^15 pulls
    13884.9...
    """
    t = check_int("horizon", horizon, at_least=2, at_most=_MOST)
    n = check_int("n", n, at_least=1, at_most=_MOST)
    p = iterations(t, check_number("beta", beta, at_least=0.5, at_most=1.0))
    i = check_int("iteration", iteration, at_least=1, at_most=p, fix=f"MOSS++ has p = {p} of them.")
    members = iteration_arms(p, i, n) + i - 1
    constant = moss_bound(1, 1, exploration=exploration)  # 20.5, or 18
    return float(constant * math.sqrt(members * iteration_pulls(p, i, t)))
