"""UCB for sub-Gaussian rewards: asymptotically optimal for Gaussian ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.checks import check_number
from manyarms.core.memory import Memory
from manyarms.policies.parts.count_queues import (
    ByCount,
    by_count,
    count_late,
    credit,
    due,
    largest_index,
    next_pull,
    reset_by_count,
)
from manyarms.protocol.policy import Policy, ask, defer, reset, tell

__all__ = ["UCB"]


class UcbState(NamedTuple):
    scale: float  # 2 sigma^2
    arms: ByCount


@reset.register(UcbState)
def ucb_reset(state: UcbState, key: int, horizon: int) -> None:
    reset_by_count(state.arms, key)


@ask.register(UcbState)
def ucb_ask(state: UcbState) -> tuple[int, int]:
    arms = state.arms
    t = next_pull(arms)  # this is pull number t
    slot = due(arms)
    if slot == 0:
        slot = largest_index(arms, state.scale * math.log1p(t * math.log(t) ** 2))
    return slot, arms.node[slot].arm


@tell.register(UcbState)
def ucb_tell(state: UcbState, slot: int, reward: float) -> None:
    credit(state.arms, slot, reward)


@defer.register(UcbState)
def ucb_defer(state: UcbState, slot: int, change: int) -> None:
    count_late(state.arms, slot, change)


@dataclass(frozen=True, kw_only=True)
class UCB(Policy):
    r"""Pull each arm once, in random order, then at pull t one of largest index.

    .. math:: \bar x + \sigma \sqrt{\frac{2 \log(1 + t \log^2 t)}{N}}

    Parameters
    ----------
    sigma
        Rewards are sigma-sub-Gaussian around their mean; 1/2 holds for rewards in [0, 1].

    Notes
    -----
    T. Lattimore, C. Szepesvári, "Bandit Algorithms" (2020), the asymptotically optimal UCB, there
    with sigma = 1. For Gaussian rewards its regret is :math:`\sum_a 2 \sigma^2 \log T / \Delta_a`
    and lower order: no policy that works everywhere does better in the limit. Needs neither
    horizon nor best mean. With n arms the first n pulls only explore.

    Cost per pull: O(distinct numbers of pulls among the arms), as for `UCB1`.

    Examples
    --------
    >>> from manyarms.policies.field.ucb import UCB
    >>> live = UCB(sigma=0.5).live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> live.tell(live.ask(), reward=1.0)
    """

    name: ClassVar[str] = "ucb"
    anytime: ClassVar[bool] = True

    sigma: float = 0.5

    def __post_init__(self) -> None:
        self._store(sigma=check_number("sigma", self.sigma, above=0.0, at_most=1e100))

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self.sigma**2, by_count(memory, n_arms, pulls))
