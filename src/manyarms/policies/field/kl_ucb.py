"""KL-UCB: the confidence bound that fits coins (Garivier & Cappé 2011, Cappé et al. 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Floats, Ints, Memory
from manyarms.policies.parts.count_queues import (
    Queues,
    any_leader,
    count_late_pulls,
    credit,
    due,
    forget_leaders,
    head,
    lead,
    more,
    next_pull,
    queues,
    reset_queues,
)
from manyarms.policies.parts.kl import kl_upper
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import number

_HAIR = 1e-12  # more than the rounding of a divergence


class KlUcbState(NamedTuple):
    """The arms pulled so far, queued by how often, and the entropy of each mean."""

    loglog: float  # c
    negentropy: Floats  # by slot: p log p + (1 - p) log(1 - p), p being the mean
    last: Ints  # [the slot pulled last]
    arms: Queues


def kl_ucb_reset(state: KlUcbState, key: int, horizon: int) -> None:
    reset_queues(state.arms, key)
    state.last[0] = 0


def kl_ucb_ask(state: KlUcbState) -> tuple[int, int]:
    arms = state.arms
    t = next_pull(arms) - 1  # pulls made so far
    slot = due(arms)
    if slot == 0:
        level = math.log(t)
        if t >= 3:  # where log log t is positive
            level += state.loglog * math.log(level)
        slot = largest_kl_index(state, level)
    state.last[0] = slot
    return slot, arms.node[slot].arm


@kernel
def largest_kl_index(state: KlUcbState, level: float) -> int:
    """Compute the index for the heads of the queues that a cheaper bound does not rule out."""
    arms = state.arms
    favourite = arms.node[state.last[0]].pulls  # the slot pulled last, or one as good, often leads
    best = -math.inf
    forget_leaders(arms)
    log_q = log_not_q = 0.0
    number = favourite if favourite > 0 else more(arms, 0)
    while number > 0:
        slot = head(arms, number)
        mean, bound = arms.node[slot].mean, level / number
        p = min(max(mean, 0.0), 1.0)
        divergence = state.negentropy[slot] - p * log_q - (1.0 - p) * log_not_q
        # the divergence of the best index so far from this mean, near enough
        if p >= best or best >= 1.0 or divergence <= bound + _HAIR:
            index = kl_upper(mean, bound)
            if index >= best:
                lead(arms, number, index > best)
                best = index
                if 0.0 < index < 1.0:
                    log_q, log_not_q = math.log(index), math.log1p(-index)
        number = after(arms, number, favourite)
    return any_leader(arms)


@kernel
def after(arms: Queues, number: int, favourite: int) -> int:
    """Return the queue to look at after this one: the favourite, then the others by size."""
    number = more(arms, 0 if number == favourite else number)
    return more(arms, number) if number == favourite > 0 else number


def kl_ucb_tell(state: KlUcbState, slot: int, reward: float) -> None:
    credit(state.arms, slot, reward)
    p = min(max(state.arms.node[slot].mean, 0.0), 1.0)
    inside = 0.0 < p < 1.0
    state.negentropy[slot] = p * math.log(p) + (1.0 - p) * math.log1p(-p) if inside else 0.0


plays(
    KlUcbState,
    reset=kl_ucb_reset,
    ask=kl_ucb_ask,
    tell=kl_ucb_tell,
    count_late=lambda state, slot, change: count_late_pulls(state.arms, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class KLUCB(Policy):
    r"""Pull each arm once, in random order, then one of largest index, t being the pulls made.

    .. math:: \max \{ q \le 1 : N\, \mathrm{kl}(\bar x, q) \le \log t + c \log \log t \}

    kl(p, q) is the Kullback-Leibler divergence between coins of means p and q.

    Parameters
    ----------
    c
        0 as the source advises in practice; its theorem has 3.

    Notes
    -----
    O. Cappé, A. Garivier, O.-A. Maillard, R. Munos, G. Stoltz, "Kullback-Leibler upper confidence
    bounds for optimal sequential allocation", Annals of Statistics 41 (2013). For rewards in
    [0, 1]; a mean outside counts as the nearer end. For coins the regret is
    :math:`\sum_a \Delta_a \log T / \mathrm{kl}(\mu_a, \mu^*)` and lower order, the least possible
    in the limit. Needs neither horizon nor best mean. With n arms the first n pulls only explore.
    Equal indices fall to the larger mean, then to a random arm.

    Cost per pull: O(distinct numbers of pulls among the arms), exact as for `UCB1`; the equation
    is solved to the last digits, for the few arms that two cheaper bounds leave.

    Examples
    --------
    >>> from manyarms.policies.field import KLUCB
    >>> KLUCB(c=3.0).label, KLUCB.anytime
    ('kl-ucb(c=3.0)', True)
    """

    name = "kl-ucb"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="asymptotically optimal, rewards 0 and 1",
        only_if=("rewards 0 and 1", "more pulls than arms"),
        nanoseconds=370,
        page="docs/policies/few_arms.md",
        scaling="distinct pull counts, at most √(2T)",
        good_at="few arms, means near 0 or 1",
        source="Cappé et al. 2013",
        rewards="[0, 1]",
    )

    c: Annotated[float, number(at_least=0.0, at_most=1e100)] = 0.0

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> KlUcbState:
        return KlUcbState(
            self.c,
            memory.floats(min(n_arms, pulls) + 1),
            memory.ints(1),
            queues(memory, n_arms, pulls),
        )
