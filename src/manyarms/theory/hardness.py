"""The hardness of a problem, as the paper defines it, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from manyarms.core.checks import check_int, check_number, check_probability
from manyarms.errors import ParameterError
from manyarms.theory.arrays import MOST, Numbers, each

_ROUNDING = 1e-12  # relative: far above the rounding errors of a mean that was computed


def good_mean(best_mean: float, epsilon: float = 0.0) -> float:
    """Return the smallest mean that counts as best: within `epsilon` of the best one.

    Means that differ by rounding errors only are equal, so that the last bit does not decide.

    >>> 0.3 >= good_mean(0.1 + 0.2), 0.6 - 0.1 >= good_mean(0.6, epsilon=0.1)
    (True, True)
    """
    return best_mean - epsilon - _ROUNDING * max(abs(best_mean), epsilon)


@overload
def hardness(n: int, m: int, horizon: int) -> float: ...
@overload
def hardness(n: Numbers, m: Numbers, horizon: Numbers) -> Any: ...
def hardness(n: Any, m: Any, horizon: Any) -> Any:
    r"""Return the hardness of a problem with `m` best arms among `n`.

    .. math:: \psi(T, n, m) = \inf\{\alpha \ge 0 : n/m \le 2 T^\alpha\}

    Above 1 the problem is out of reach: no policy can expect to meet a best arm. Numbers and
    arrays are broadcast, also in the functions below.

    Examples
    --------
    >>> round(hardness(n=20_000, m=132, horizon=50_000), 3)
    0.4
    >>> hardness(n=10, m=5, horizon=1000)
    0.0
    >>> hardness(n=200, m=np.array([1, 100]), horizon=10_000)
    array([0.5, 0. ])
    """
    if any(np.ndim(value) > 0 for value in (n, m, horizon)):
        return each(hardness, n, m, horizon)
    n = check_int("n", n, at_least=1, at_most=MOST)
    m = _check_best(m, n)
    return _hardness_of_ratio(n / m, check_int("horizon", horizon, at_least=1, at_most=MOST))


@overload
def best_arms(n: int, horizon: int, alpha: float) -> int: ...
@overload
def best_arms(n: Numbers, horizon: Numbers, alpha: Numbers) -> Any: ...
def best_arms(n: Any, horizon: Any, alpha: Any) -> Any:
    r"""Return the number of best arms at hardness `alpha` in the paper's experiments.

    .. math:: m = \lceil n / (2 T^\alpha) \rceil

    Examples
    --------
    >>> best_arms(20_000, 50_000, 0.4)
    132
    """
    if any(np.ndim(value) > 0 for value in (n, horizon, alpha)):
        return each(best_arms, n, horizon, alpha)
    n = check_int("n", n, at_least=1, at_most=MOST)
    horizon = check_int("horizon", horizon, at_least=1, at_most=MOST)
    alpha = check_probability("alpha", alpha)
    quotient = n / (2.0 * math.pow(horizon, alpha))
    # A quotient that is an integer up to rounding errors must not be rounded up.
    whole = round(quotient)
    # The power multiplies the rounding error of alpha by alpha log(T).
    slack = 2 * math.ulp(quotient) * (1.0 + alpha * math.log(horizon))
    near = abs(quotient - whole) <= slack
    return max(1, whole if near else math.ceil(quotient))


@overload
def miss_probability(n: int, m: int, k: int, *, exact: bool = True) -> float: ...
@overload
def miss_probability(n: Numbers, m: Numbers, k: Numbers, *, exact: bool = True) -> Any: ...
def miss_probability(n: Any, m: Any, k: Any, *, exact: bool = True) -> Any:
    r"""Return the probability that `k` arms drawn without replacement contain no best arm.

    .. math:: \binom{n-m}{k} \Big/ \binom{n}{k} \;\le\; e^{-mk/n}

    Parameters
    ----------
    n, m, k
        Arms, best arms, arms drawn.
    exact
        Whether to return the left side (default: True); if not, the paper's bound on the right.

    Examples
    --------
    >>> round(miss_probability(10, 2, 3), 6)
    0.466667
    >>> round(miss_probability(10, 2, 3, exact=False), 6)
    0.548812
    """
    if any(np.ndim(value) > 0 for value in (n, m, k)):
        return each(partial(miss_probability, exact=exact), n, m, k)
    n = check_int("n", n, at_least=1, at_most=MOST)
    m = _check_best(m, n)
    k = check_int("k", k, at_most=n)
    if not exact:
        return math.exp(-m * k / n)
    if k > n - m:
        return 0.0
    fewer, more = sorted((k, m))  # the ratio is symmetric in k and m: take the shorter product
    logs = (math.log1p(-more / (n - j)) for j in range(fewer))
    return math.exp(math.fsum(logs))


@dataclass(frozen=True)
class Problem:
    """The size of a problem: the numbers of arms, of best arms and of pulls.

    Parameters
    ----------
    n, m
        Numbers of arms and of best arms; both `math.inf` with infinitely many arms.
    horizon
        The number of pulls.
    probability
        With infinitely many arms: the probability that an arm drawn at random is best.

    Examples
    --------
    >>> Problem(n=20_000, m=132, horizon=50_000).within_reach
    True
    >>> round(Problem.infinite(probability=0.01, horizon=10_000).alpha, 3)
    0.425
    """

    n: float
    m: float
    horizon: int
    probability: float | None = None

    def __post_init__(self) -> None:
        check_int("horizon", self.horizon, at_least=1, at_most=MOST)
        infinite = self.n == math.inf and self.m == math.inf
        if self.probability is not None and infinite:
            check_number("probability", self.probability, above=0.0, at_most=1.0)
        elif self.probability is not None or infinite:
            raise ParameterError(
                f"`probability` must be given with infinitely many arms, and only then, got "
                f"n={self.n!r} and probability={self.probability!r}. Use Problem(n, m, horizon), "
                f"or Problem.infinite(probability=..., horizon=...)."
            )
        else:
            _check_best(self.m, check_int("n", self.n, at_least=1, at_most=MOST))

    @classmethod
    def near_optimal(
        cls, means: Sequence[float], *, horizon: int, epsilon: float | None = None
    ) -> Problem:
        """Count every arm within `epsilon` of the largest mean as best.

        With the default of `epsilon`, 1/sqrt(horizon), the ignored regret is at most
        sqrt(horizon).

        >>> Problem.near_optimal([0.9, 0.895, 0.2], horizon=10_000).m
        2
        """
        horizon = check_int("horizon", horizon, at_least=1, at_most=MOST)
        if len(means) == 0:
            raise ParameterError("`means` must contain at least one mean, got none.")
        means = [check_number("means", mean) for mean in means]
        slack = 1.0 / math.sqrt(horizon) if epsilon is None else epsilon
        threshold = good_mean(max(means), check_number("epsilon", slack, at_least=0.0))
        return cls(len(means), sum(1 for mean in means if mean >= threshold), horizon)

    @classmethod
    def infinite(cls, *, probability: float, horizon: int) -> Problem:
        """Return a problem with infinitely many arms, each best with probability p: n/m = 1/p."""
        return cls(math.inf, math.inf, horizon, probability)

    @property
    def ratio(self) -> float:
        """n/m, the number of arms per best arm."""
        return self.n / self.m if self.probability is None else 1.0 / self.probability

    @property
    def alpha(self) -> float:
        """The hardness."""
        return _hardness_of_ratio(self.ratio, self.horizon)

    @property
    def within_reach(self) -> bool:
        """Whether any policy can expect to meet a best arm: hardness at most 1."""
        return self.alpha <= 1.0


def _check_best(m: Any, n: int) -> int:
    fix = f"There are n = {n} arms, and at least one of them is best."
    return check_int("m", m, at_least=1, at_most=n, fix=fix)


def _hardness_of_ratio(ratio: float, horizon: int) -> float:
    if ratio <= 2.0:
        return 0.0
    return math.inf if horizon == 1 else math.log(ratio / 2.0) / math.log(horizon)
