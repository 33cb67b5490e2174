"""MOSS Oracle: the paper's subroutine SR, which is given the hardness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.checks import check_int, check_one
from manyarms.core.jit import kernel
from manyarms.core.memory import Memory
from manyarms.policies.parts.moss_run import (
    MossRun,
    arrive_now,
    ask_arms,
    begin,
    count_late_pulls,
    credit,
    credit_arm,
    hold,
    present,
    reset_arms,
    retire_arm,
)
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.protocol import plays
from manyarms.protocol.parameters import Count, Probability


@kernel
def subset_size(horizon: int, alpha: float, factor: float, n_arms: int) -> int:
    r"""Return the number of arms that the subroutine SR draws for hardness `alpha`.

    .. math:: \min(\lceil 2 T^\alpha \log\sqrt T \rceil, T)

    for `factor` = 2; at least 1, and at most `n_arms`.

    >>> subset_size(50_000, 0.4, 2.0, 20_000)
    820
    """
    wanted = math.ceil(factor * math.pow(horizon, alpha) * 0.5 * math.log(horizon))
    return max(1, min(wanted, horizon, n_arms))


class MossOracleState(NamedTuple):
    """The size of the set, and its arms pulled so far, ranked by index."""

    alpha: float
    factor: float  # of T^alpha log sqrt(T): 2, or n/m with alpha = 0
    size: int  # of the set; 0 if it follows from alpha and factor
    moss: MossRun


def moss_oracle_reset(state: MossOracleState, key: int, horizon: int) -> None:
    reset_arms(state.moss, key)
    begin(state.moss, oracle_arms(state, horizon), horizon)


@kernel
def oracle_arms(state: MossOracleState, horizon: int) -> int:
    """Return the size of the set, at most the number of arms."""
    if state.size > 0:
        return min(state.size, present(state.moss))
    return subset_size(horizon, state.alpha, state.factor, present(state.moss))


def moss_oracle_arrive(state: MossOracleState, count: int) -> None:
    arrive_now(state.moss, count)
    horizon = state.moss.run[0].horizon
    if horizon > 0:  # else the run has not begun
        hold(state.moss, oracle_arms(state, horizon))


plays(
    MossOracleState,
    reset=moss_oracle_reset,
    ask=lambda state: ask_arms(state.moss),
    tell=lambda state, slot, reward: credit(state.moss, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.moss, slot, change),
    arrive=moss_oracle_arrive,
    retire=lambda state, arm: retire_arm(state.moss, arm),
    credit_known=lambda state, arm, count, total, _: credit_arm(state.moss, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class MOSSOracle(IndexPolicy):
    r"""MOSS on a random set just large enough to contain a best arm; it is given the hardness.

    .. math:: |S| = \min(\lceil 2 T^\alpha \log \sqrt T \rceil, T, n)

    Parameters
    ----------
    alpha
        The hardness of the problem.
    m
        The number of best arms, instead of `alpha`: n/m then replaces 2 T^alpha.
    size
        The size of the set, at most n, instead of both.
    sigma, exploration, count_late, index
        As for `MOSS`. With "kl++" the bound below holds for rewards 0 and 1, with another
        constant; for "kl" nothing is proven.

    Notes
    -----
    Regret at most 19 sqrt(e) log(T) T^((1 + alpha)/2): minimax up to the logarithm.

    Its page is docs/policies/moss_oracle.md; `subroutine` in docs/learn/parallel.py is the
    plain algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.MOSSOracle(m=50).live(n_arms=10_000, horizon=5_000, seed=1).ask().arm < 10_000
    True
    """

    name = "moss-oracle"

    alpha: Probability | None = None
    m: Count | None = None
    size: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        fix = "MOSS Oracle needs the hardness of the problem."
        check_one(fix, alpha=self.alpha, m=self.m, size=self.size)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossOracleState:
        alpha, factor = (0.0 if self.alpha is None else self.alpha), 2.0
        if self.m is not None:
            check_int("m", self.m, at_least=1, at_most=n_arms, fix=f"There are {n_arms} arms.")
            factor = n_arms / self.m
        if self.size is None:
            size, room = 0, subset_size(pulls, alpha, factor, n_arms)
        else:
            size, room = self.size, min(self.size, n_arms, pulls)
        return MossOracleState(alpha, factor, size, self._moss(memory, n_arms, slots=room))
