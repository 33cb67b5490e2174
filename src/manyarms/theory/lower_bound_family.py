"""The instances of the paper's lower bound, and the two inequalities of its proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manyarms.core.checks import check_int, check_number, check_probability
from manyarms.errors import ParameterError
from manyarms.theory.arrays import MOST

_ROUNDING = 1e-12  # relative: 2^20 to the power 0.3 is 64 up to rounding errors


@dataclass(frozen=True, kw_only=True)
class LowerBoundFamily:
    r"""The K + 1 problems in the proof of the lower bound; no policy has low regret on all.

    Arms come in groups: S_0 with m_0 arms, and S_1, …, S_K with `m` arms each, where

    .. math:: K = \lfloor T^\alpha \rfloor - 1, \quad m_0 = m \lceil T^{\alpha - \alpha'} \rceil,
              \quad n = m_0 + K m, \quad \Delta = 2^{-5} K / B.

    On instance 0 the arms of S_0 have mean Δ/2 and all others 0; on instance i ≥ 1 the arms of
    S_i have mean Δ instead. Rewards are normal with variance 1/4. Instance 0 has hardness at most
    α', the others at most α. To find the hidden group, a policy must pull all of S_1, …, S_K, and
    on instance 0 each such pull costs Δ/2.

    Parameters
    ----------
    horizon
        T, the number of pulls.
    alpha
        The hardness of instances 1, …, K.
    budget
        B, the regret that a policy may have on instance 0; at least T^alpha.
    alpha_prime
        The hardness of instance 0, below `alpha`.
    m
        The number of arms of each hidden group.

    Notes
    -----
    With N_i the pulls of group i and R_i the regret on instance i,
    :math:`R_0 = (\Delta/2) \sum_{i \ge 1} E_0 N_i` and
    :math:`R_i \ge (\Delta/2)(T - E_i N_i)`. The relative entropy of two normal distributions with
    variance 1/4 whose means differ by Δ is 2Δ², so by Pinsker's inequality
    :math:`E_i N_i \le E_0 N_i + T \Delta \sqrt{E_0 N_i}`. Averaged over i, with
    :math:`\sum_i E_0 N_i \le T` in the first term and Jensen's inequality in the second, this is
    `tradeoff`. If :math:`R_0 \le B`, the root is at most 1/4 and 1/K at most 1/2, which gives
    `floor`. With :math:`K \ge T^\alpha/4` this is at least :math:`2^{-10} T^{1+\alpha}/B`, the
    theorem.

    Examples
    --------
    >>> family = LowerBoundFamily(horizon=2**20, alpha=0.5, budget=2048)
    >>> family.hidden_groups, family.n_arms, family.gap
    (1023, 2047, 0.015609...)
    >>> round(family.floor)
    2046
    """

    horizon: int
    alpha: float
    budget: float
    alpha_prime: float = 0.0
    m: int = 1

    def __post_init__(self) -> None:
        horizon = check_int("horizon", self.horizon, at_least=2, at_most=MOST)
        alpha, lower = (
            check_probability(name, getattr(self, name)) for name in ("alpha", "alpha_prime")
        )
        checked: dict[str, Any] = {
            "horizon": horizon,
            "alpha": alpha,
            "alpha_prime": lower,
            "budget": check_number("budget", self.budget, above=0.0),
            "m": check_int("m", self.m, at_least=1),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if lower >= alpha:
            raise ParameterError(
                f"`alpha_prime` must be < alpha = {alpha:g}, got {lower:g}, which is "
                f"{lower - alpha:.3g} above. Instance 0 is the easier one: lower alpha_prime or "
                f"raise alpha."
            )
        self._check_groups()
        if self.budget < self.power * (1 - _ROUNDING):
            raise ParameterError(
                f"`budget` must be >= T^alpha = {self.power:.6g}, got {self.budget:.6g}, "
                f"{self.power - self.budget:.3g} too little. Raise the budget or lower alpha."
            )

    def _check_groups(self) -> None:
        groups, least = self.hidden_groups, max(self.power / 4, 2.0)
        if groups < least:
            # floor(T^alpha) - 1 >= 2 means T^alpha >= 3, and then it is also at least T^alpha/4
            fix = f"alpha >= {math.log(3) / math.log(self.horizon):.3f}"
            if math.log(3) <= self.alpha * math.log(MOST):
                longer = math.ceil(3 ** (1 / self.alpha) * (1 - _ROUNDING))
                fix = f"a horizon >= {longer}" + (f" or {fix}" if self.horizon > 2 else "")
            raise ParameterError(
                f"`horizon` and `alpha` must give ⌊T^alpha⌋ - 1 >= max(T^alpha/4, 2) = {least:.4g} "
                f"hidden groups, got {groups}, {least - groups:.3g} too few. T^alpha must be >= 3: "
                f"take {fix}."
            )

    @property
    def power(self) -> float:
        """T^alpha."""
        return math.pow(self.horizon, self.alpha)

    @property
    def hidden_groups(self) -> int:
        """K, the number of groups S_1, …, S_K; S_i is best on instance i."""
        return _whole(self.power, math.floor) - 1

    @property
    def open_arms(self) -> int:
        """m_0, the number of arms of S_0, which are best on instance 0."""
        share = math.pow(self.horizon, self.alpha - self.alpha_prime)
        return self.m * _whole(share, math.ceil)

    @property
    def n_arms(self) -> int:
        """n, the number of arms."""
        return self.open_arms + self.hidden_groups * self.m

    @property
    def gap(self) -> float:
        """Δ, the best mean of the instances 1, …, K; at most 2^-5, since K <= B."""
        return 2.0**-5 * self.hidden_groups / self.budget

    @property
    def settled(self) -> float:
        """TΔ/2, the regret on an instance i >= 1 of always pulling S_0."""
        return self.horizon * self.gap / 2

    def tradeoff(self, regret: float) -> float:
        r"""Return the lower bound on R̄ if R_0 is `regret`.

        .. math:: \bar R \ge \frac{T\Delta}{2}
                  \Big(1 - \frac1K - \sqrt{\frac{2\Delta R_0}{K}}\Big)

        R̄ is the average of R_1, …, R_K. The bound may be negative.

        >>> family = LowerBoundFamily(horizon=2**20, alpha=0.5, budget=2048)
        >>> round(family.tradeoff(0.0)), round(family.tradeoff(2048.0))
        (8176, 6130)
        """
        regret = check_number("regret", regret, at_least=0.0)
        explored = 2 * self.gap * regret / self.hidden_groups
        return self.settled * (1 - 1 / self.hidden_groups - math.sqrt(explored))

    @property
    def floor(self) -> float:
        r"""The lower bound on R̄ if R_0 is at most B: :math:`2^{-8}\,T K / B`."""
        return 2.0**-8 * self.horizon * self.hidden_groups / self.budget


def _whole(power: float, rounded: Callable[[float], int]) -> int:
    """Round a power, unless it is an integer up to rounding errors."""
    nearest = round(power)
    return nearest if abs(power - nearest) <= _ROUNDING * power else rounded(power)
