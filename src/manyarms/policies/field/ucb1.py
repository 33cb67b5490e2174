"""UCB1: the mean and a bonus that grows with the logarithm of time (Auer et al. 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.count_queues import Queues, ask_largest, level, queues
from manyarms.protocol import About, Policy, ask, count_late, reset, tell, uses
from manyarms.protocol.parameters import Positive


@uses(arms=(reset, tell, count_late))
class Ucb1State(NamedTuple):
    """The arms pulled so far, queued by how often."""

    scale: float  # what stands before the logarithm, under the root
    arms: Queues


ask.register(Ucb1State)(ask_largest)


@level.register(Ucb1State)
def ucb1_level(state: Ucb1State, t: int) -> float:
    return state.scale * math.log(t - 1)  # pulls made so far


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
        nanoseconds=360,
        scaling="distinct pull counts, at most √(2T)",
        good_at="few arms, the classic to compare with",
        source="Auer et al. 2002",
    )

    exploration: Positive = 1.0

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Ucb1State:
        return Ucb1State(2.0 * self.exploration, queues(memory, n_arms, pulls))
