"""UCB for sub-Gaussian rewards: asymptotically optimal for Gaussian ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.count_queues import Queues, ask_largest, level, queues
from manyarms.policies.parts.parameters import SigmaPolicy
from manyarms.protocol import About, ask, count_late, reset, tell, uses


@uses(arms=(reset, tell, count_late))
class UcbState(NamedTuple):
    """The arms pulled so far, queued by how often."""

    scale: float  # 2 sigma^2
    arms: Queues


ask.register(UcbState)(ask_largest)


@level.register(UcbState)
def ucb_level(state: UcbState, t: int) -> float:
    return state.scale * math.log1p(t * math.log(t) ** 2)


@dataclass(frozen=True, kw_only=True)
class UCB(SigmaPolicy):
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
    >>> from manyarms.policies.field import UCB
    >>> UCB().with_reward_range((0.0, 10.0)).sigma  # half the width, as a live handle takes it
    5.0
    """

    name = "ucb"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="asymptotically optimal, Gaussian rewards",
        nanoseconds=240,
        scaling="distinct pull counts, at most √(2T)",
        good_at="few arms, no horizon",
        source="Lattimore & Szepesvári 2020",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self.sigma**2, queues(memory, n_arms, pulls))
