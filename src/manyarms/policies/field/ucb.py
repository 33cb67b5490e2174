r"""UCB1 and UCB: the mean and a bonus that grows with the logarithm of time.

They differ in one formula, what stands over N under the root of the index:

=====  =======================================  ===============================================
UCB1   :math:`2 \log t`, of the pulls made      Auer, Cesa-Bianchi & Fischer 2002
UCB    :math:`2 \sigma^2 \log(1 + t \log^2 t)`  Lattimore & Szepesvári 2020
=====  =======================================  ===============================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.count_queues import (
    Queues,
    count_late_pulls,
    credit,
    due,
    largest_index,
    next_pull,
    queues,
    reset_queues,
)
from manyarms.policies.parts.parameters import SigmaPolicy
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Positive


class UcbState(NamedTuple):
    """The arms pulled so far, queued by how often."""

    scale: float  # what stands before the logarithm
    classic: bool  # whether the formula is that of UCB1
    arms: Queues


def ucb_ask(state: UcbState) -> tuple[int, int]:
    arms = state.arms
    t = next_pull(arms)  # this is pull number t
    slot = due(arms)
    if slot == 0:
        log = math.log(t - 1) if state.classic else math.log1p(t * math.log(t) ** 2)
        slot = largest_index(arms, state.scale * log)
    return slot, arms.node[slot].arm


plays(
    UcbState,
    reset=lambda state, key, horizon: reset_queues(state.arms, key),
    ask=ucb_ask,
    tell=lambda state, slot, reward: credit(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class UCB1(Policy):
    r"""Pull each arm once, in random order, then one of largest index, t being the pulls made.

    .. math:: \bar x + \sqrt{\frac{2 \log t}{N}}

    Parameters
    ----------
    exploration
        Scales what stands under the root; 1 is the source's index.

    Notes
    -----
    P. Auer, N. Cesa-Bianchi, P. Fischer, "Finite-time analysis of the multiarmed bandit problem",
    Machine Learning 47 (2002). Rewards in [0, 1]; needs neither horizon nor best mean. Made for
    few arms: with n of them the first n pulls only explore, and the regret grows as
    :math:`\sum_a \log T / \Delta_a`.

    Cost per pull: O(distinct numbers of pulls among the arms), at most :math:`\sqrt{2T}`; exact,
    since among arms pulled equally often only the one of largest mean can lead.

    Examples
    --------
    >>> from manyarms.policies.field import UCB1
    >>> live = UCB1().live(n_arms=3, seed=1)  # no horizon needed
    >>> sorted(pull.arm for pull in live.ask(3))  # each arm once
    [0, 1, 2]
    """

    name = "ucb1"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="log T regret for fixed gaps",
        only_if=("more pulls than arms",),
        nanoseconds=360,
        page="docs/policies/few_arms.md",
        scaling="distinct pull counts, at most √(2T)",
        good_at="few arms, the classic to compare with",
        source="Auer et al. 2002",
    )

    exploration: Positive = 1.0

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self.exploration, True, queues(memory, n_arms, pulls))


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
        only_if=("Gaussian rewards", "more pulls than arms"),
        nanoseconds=240,
        page="docs/policies/few_arms.md",
        scaling="distinct pull counts, at most √(2T)",
        good_at="few arms, no horizon",
        source="Lattimore & Szepesvári 2020",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self.sigma**2, False, queues(memory, n_arms, pulls))
