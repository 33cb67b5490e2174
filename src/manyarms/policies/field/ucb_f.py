"""UCB-F: UCB-V on a fixed number of random arms (Wang, Audibert & Munos 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Memory
from manyarms.policies.parts.ucb_v import (
    UcbV,
    count_late_pulls,
    credit,
    largest_index,
    next_time,
    open_arm,
    reset_ucb_v,
    ucb_v,
)
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Flag, number


class UcbFState(NamedTuple):
    """The K arms, and the tournament between their indices."""

    exponent: float
    size: Ints  # [K, the number of arms]
    arms: UcbV


@kernel
def arms_for(horizon: int, exponent: float, n_arms: int) -> int:
    """Return K = ⌈T^exponent⌉, at most n; the margin covers the error of `pow`."""
    wanted = math.ceil(math.pow(horizon, exponent) * (1.0 - 1e-12))
    return max(1, min(wanted, n_arms))


def ucb_f_reset(state: UcbFState, key: int, horizon: int) -> None:
    reset_ucb_v(state.arms, key)
    state.size[0] = arms_for(horizon, state.exponent, state.arms.sampler.n[0])


def ucb_f_ask(state: UcbFState) -> tuple[int, int]:
    clock = state.arms.clock[0]
    next_time(state.arms)
    if clock.opened < state.size[0]:
        slot = open_arm(state.arms)
    else:
        slot = largest_index(state.arms)
    return slot, state.arms.slot[slot].arm


plays(
    UcbFState,
    reset=ucb_f_reset,
    ask=ucb_f_ask,
    tell=lambda state, slot, reward: credit(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class ManyArmedUCBV(Policy):
    """What UCB-F and UCB-AIR know about the arms."""

    b: Annotated[float, number(at_least=0.01, at_most=100.0)] = 1.0
    perfect_best: Flag = False

    @property
    def exponent(self) -> float:
        """How the number of arms grows with time."""
        if self.b < 1.0 and not self.perfect_best:
            return self.b / 2.0
        return self.b / (self.b + 1.0)


@dataclass(frozen=True, kw_only=True)
class UCBF(ManyArmedUCBV):
    r"""Draw K random arms, try each once, then pull the one of largest UCB-V index.

    .. math:: B = \bar x + \sqrt{\frac{2 V E_t}{N}} + \frac{3 E_t}{N}, \qquad
        E_t = 2 \log(10 \log t)

    with V the empirical variance (dividing by N), and :math:`K = \lceil T^{b/2} \rceil` if b < 1
    and :math:`\mu^* < 1`, else :math:`K = \lceil T^{b/(b+1)} \rceil`; at most n.

    Parameters
    ----------
    b
        The source's beta: an arm has a mean above :math:`\mu^* - e` with a probability of order
        :math:`e^b`.
    perfect_best
        Whether :math:`\mu^* = 1`; matters for b < 1 only.

    Notes
    -----
    Source: Wang, Audibert & Munos, *Algorithms for infinitely many-armed bandits*, NIPS 2008; for
    rewards in [0, 1], known b and known horizon. Regret of order :math:`\sqrt T` for b < 1 and
    :math:`\mu^* < 1`, else :math:`T^{b/(b+1)}`, up to logarithms. From memory: the source allows
    every sequence with :math:`2 \log(10 \log t) \le E_t \le \log t`, and we take the smallest;
    which one its experiments used, and whether t is the pull to come (as here) or the last one,
    could not be checked. At the start (t up to some 10^4) the two ends are the wrong way round.

    Cost per pull: O(log K) in practice and exact, by a tournament whose matches know until when
    they stand; O(K) in the worst case, when all of them expire at once.

    Examples
    --------
    >>> from manyarms.policies.field import UCBF
    >>> live = UCBF(b=1.0).live(n_arms=1_000_000, horizon=10_000, seed=1)
    >>> for _ in range(200):
    ...     live.tell(live.ask(), reward=1.0)
    >>> live.progress().arms_touched  # K = 10000^(1/2)
    100
    """

    name = "ucb-f"
    about = About(
        needs="horizon, shape b of the means",
        guarantee="√T or T^(b/(b+1)), up to logarithms",
        only_if=("a known shape",),
        nanoseconds=160,
        page="docs/policies/new_arms.md",
        scaling="log of arms opened, in practice",
        good_at="infinitely many arms of known shape",
        source="Wang, Audibert & Munos 2008",
        knowledge="m",
        rewards="[0, 1]",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbFState:
        room = min(arms_for(pulls, self.exponent, n_arms), pulls)
        return UcbFState(self.exponent, memory.ints(1), ucb_v(memory, n_arms, arms=room))
