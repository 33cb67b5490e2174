"""IMOSS: an anytime MOSS that opens arms little by little (Abraham et al. 2026)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory
from manyarms.policies.parts.count_queues import (
    Queues,
    any_leader,
    count_late_pulls,
    credit,
    forget_leaders,
    fresh_left,
    head,
    lead,
    more,
    next_pull,
    open_fresh,
    queues,
    reset_queues,
    unobserved,
    waits,
)
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Share, number


class ImossState(NamedTuple):
    """The arms opened so far, queued by how often they were pulled."""

    spread: float  # (1 + a) / 2
    growth: float  # b
    arms: Queues


def imoss_ask(state: ImossState) -> tuple[int, int]:
    arms = state.arms
    t = next_pull(arms)  # this is pull number t
    opened = arms.clock[0].opened
    if opened < t**state.growth and fresh_left(arms) > 0:
        slot = open_fresh(arms)
    elif waits(arms):
        slot = unobserved(arms)
    else:
        slot = largest_imoss_index(state, t, opened)
    return slot, arms.node[slot].arm


@kernel
def largest_imoss_index(state: ImossState, t: int, opened: int) -> int:
    """Compute the index for the heads of the queues."""
    arms = state.arms
    most = state.spread * math.log(t / opened)  # what stands under the root is not more for any N
    best = -math.inf
    forget_leaders(arms)
    number = more(arms, 0)
    while number > 0:
        mean = arms.node[head(arms, number)].mean
        if mean + math.sqrt(most / number) >= best:
            index = mean
            if opened * number < t:
                index += math.sqrt(state.spread * math.log(t / (opened * number)) / number)
            if index >= best:
                lead(arms, number, index > best)
                best = index
        number = more(arms, number)
    return any_leader(arms)


plays(
    ImossState,
    reset=lambda state, key, horizon: reset_queues(state.arms, key),
    ask=imoss_ask,
    tell=lambda state, slot, reward: credit(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class IMOSS(Policy):
    r"""At pull t open a fresh arm while fewer than t^b are open, else pull one of largest index.

    .. math:: \bar x + \sqrt{\frac{1 + a}{2} \cdot \frac{\max(0, \log(t / (K_t N)))}{N}}

    :math:`K_t` is the number of open arms; the index is that of anytime MOSS (Degenne & Perchet
    2016) on them.

    Parameters
    ----------
    a
        Widens the bonus; the source has 0.1.
    b
        In (0, 1]: how fast arms are opened; the source has 0.5.

    Notes
    -----
    Abraham et al. (2026). Rewards in [0, 1]; needs neither horizon nor best mean. About T^b arms
    are ever tried, so b should be above the hardness. The source begins with a warm-up: ten arms,
    each pulled once. Here the rule holds from the first pull on, which opens the tenth arm at pull
    82 (b = 1/2). Where the source rounds t^b, and whether its t counts the present pull, could not
    be checked: here it does, and t^b is not rounded.

    Cost per pull: O(distinct numbers of pulls among the open arms), exact as for `UCB1`.

    Examples
    --------
    >>> from manyarms.policies.field import IMOSS
    >>> live = IMOSS(b=0.5).live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> for _ in range(100):
    ...     live.tell(live.ask(), reward=0.0)
    >>> len(live.arms())  # t^b
    10
    """

    name = "imoss"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="none checked",
        nanoseconds=200,
        page="docs/policies/new_arms.md",
        scaling="distinct pull counts of open arms",
        good_at="no horizon, best arms not rarer than 1 in √T",
        source="Abraham et al. 2026",
    )

    a: Annotated[float, number(above=-1.0, at_most=1e100)] = 0.1
    b: Share = 0.5

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ImossState:
        return ImossState((1.0 + self.a) / 2.0, self.b, queues(memory, n_arms, pulls))
