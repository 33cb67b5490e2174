"""Rates: the exponents θ(α) of regret that grows as T^θ(α) (up to logarithms) at hardness α.

At rate 1 nothing is learned: regret grows as fast as T.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_number, check_probability
from manyarms.theory.arrays import check_alpha, check_beta, like

# a number gives a number, an array an array
Alpha = TypeVar("Alpha", float, NDArray[np.float64])


def moss_plus_plus_rate(alpha: Alpha, *, beta: float) -> Alpha:
    r"""Return the rate of MOSS++, which is Pareto optimal for every `beta` below 1.

    .. math:: \theta_\beta(\alpha) = \min(\max(\beta, 1 + \alpha - \beta), 1)

    Parameters
    ----------
    alpha
        Hardness, between 0 and 1; a number or an array.
    beta
        The parameter of MOSS++, between 1/2 and 1.

    Notes
    -----
    The upper bound is the paper's theorem on MOSS++ (Algorithm 1). Pareto optimal means that a
    policy with a lower rate at one hardness has a higher rate at another; see `frontier_rate`. At
    `beta` = 1 the rate is 1 everywhere. This equals `frontier_rate`, but any other `beta` is
    better.

    Examples
    --------
    >>> moss_plus_plus_rate(0.25, beta=0.5)
    0.75
    >>> moss_plus_plus_rate(np.array([0.0, 0.25, 0.75]), beta=0.5)
    array([0.5 , 0.75, 1.  ])
    """
    values = check_alpha(alpha)
    beta = check_beta(beta)
    return _like(alpha, _frontier(values, beta))


def minimax_rate(alpha: Alpha) -> Alpha:
    r"""Return the best rate of a policy that knows the hardness.

    .. math:: \theta(\alpha) = (1 + \alpha) / 2

    Parameters
    ----------
    alpha
        Hardness, between 0 and 1; a number or an array.

    Notes
    -----
    MOSS on :math:`2 T^\alpha \log\sqrt T` random arms (MOSS Oracle) attains it, and the lower
    bound :math:`\Omega(\sqrt{T(n-m)/m})` shows that no policy has a lower rate. No policy that
    knows neither α nor μ* attains it at every hardness; see `adaptation_cost`.

    Examples
    --------
    >>> minimax_rate(0.5)
    0.75
    """
    return _like(alpha, (1.0 + check_alpha(alpha)) / 2.0)


def subset_rate(alpha: Alpha, *, exponent: float) -> Alpha:
    r"""Return the rate of MOSS on a random subset of T^b log T arms, b = `exponent`.

    .. math:: \theta(\alpha) = (1 + b)/2 \ \text{for}\ \alpha \le b, \quad 1 \ \text{beyond}

    Parameters
    ----------
    alpha
        Hardness, between 0 and 1; a number or an array.
    exponent
        b, between 0 and 1.

    Notes
    -----
    MOSS on K arms has regret of order :math:`\sqrt{KT}`. Up to hardness b the subset contains a
    best arm with high probability; above, it usually contains none. Not Pareto
    optimal for b < 1: MOSS++ with :math:`\beta = (1 + b)/2` is never worse, and better for
    :math:`b < \alpha < (1 + b)/2`.

    Examples
    --------
    >>> subset_rate(np.array([0.25, 0.5, 0.75]), exponent=0.5)
    array([0.75, 0.75, 1.  ])
    """
    values = check_alpha(alpha)
    exponent = check_probability("exponent", exponent)
    return _like(alpha, np.where(values <= exponent, (1.0 + exponent) / 2.0, 1.0))


def quantile_rate(alpha: Alpha) -> Alpha:
    r"""Return the rate of Quantile (QRM2 of Chaudhuri & Kalyanakrishnan, UAI 2018).

    .. math:: \theta(\alpha) = \min(1, \max(2.89\,\alpha, 0.674))

    Parameters
    ----------
    alpha
        As for `minimax_rate`.

    Notes
    -----
    This is the rate that the paper states. QRM2's sets grow as T^0.347, and the numbers agree with
    (1 + 0.347)/2 and 1/0.347, rounded up. Not Pareto optimal: MOSS++ is never worse for any beta
    in [0.5592, 0.674].

    Examples
    --------
    >>> [round(quantile_rate(alpha), 3) for alpha in (0.1, 0.3, 0.5)]
    [0.674, 0.867, 1.0]
    """
    return _like(alpha, np.minimum(1.0, np.maximum(2.89 * check_alpha(alpha), 0.674)))


def frontier_rate(alpha: Alpha, rate_at_zero: float) -> Alpha:
    r"""Return the lowest possible rate at hardness `alpha`, given the rate at hardness 0.

    .. math:: \theta(\alpha) \ge \min(\max(\theta(0), 1 + \alpha - \theta(0)), 1),
              \quad \theta(0) \in [1/2, 1]

    Parameters
    ----------
    alpha
        Hardness, between 0 and 1; a number or an array.
    rate_at_zero
        θ(0), between 1/2 and 1.

    Notes
    -----
    It follows from `lower_bound` with a budget of order T^θ(0), and holds for policies that know
    neither α nor μ*. The right side is the rate of MOSS++ with :math:`\beta = \theta(0)`, so MOSS++
    is on the frontier.

    Examples
    --------
    >>> frontier_rate(0.25, 0.5)  # a rate of 1/2 at hardness 0 has this cost
    0.75
    """
    values = check_alpha(alpha)
    start = check_number("rate_at_zero", rate_at_zero, at_least=0.5, at_most=1.0)
    return _like(alpha, _frontier(values, start))


def adaptation_cost(alpha: Alpha, *, beta: float) -> Alpha:
    r"""Return how much higher the rate of MOSS++ is than the minimax rate.

    This is the cost of not knowing the hardness, as an exponent of T:

    .. math:: \Big|\frac{2\beta - \alpha - 1}{2}\Big| \ \text{for}\ \beta > \alpha,
              \quad \frac{1 - \alpha}{2} \ \text{for}\ \beta \le \alpha

    Parameters
    ----------
    alpha, beta
        As for `moss_plus_plus_rate`.

    Notes
    -----
    The cost is 0 at :math:`\alpha = 2\beta - 1`, where the minimax rate is `beta`.

    Examples
    --------
    >>> adaptation_cost(np.array([0.0, 0.5, 1.0]), beta=0.75)
    array([0.25, 0.  , 0.  ])
    """
    values = check_alpha(alpha)
    beta = check_beta(beta)
    cost = np.where(beta > values, abs(2.0 * beta - values - 1.0) / 2.0, (1.0 - values) / 2.0)
    return _like(alpha, cost)


def _frontier(alpha: NDArray[np.float64], start: float) -> NDArray[np.float64]:
    return np.minimum(np.maximum(start, 1.0 + alpha - start), 1.0)


def _like(alpha: Alpha, rates: Any) -> Alpha:
    return cast(Alpha, like((alpha,), rates))
