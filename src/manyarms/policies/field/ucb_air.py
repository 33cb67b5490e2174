"""UCB-AIR: UCB-V on ever more random arms (Wang, Audibert & Munos 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from manyarms.core.jit import rare
from manyarms.core.memory import Ints, Memory
from manyarms.policies.field.ucb_f import UCBF, ManyArmedUCBV
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
from manyarms.protocol import plays

_NEVER = 1 << 60


class UcbAirState(NamedTuple):
    """The arms opened so far, and when the next one is opened."""

    exponent: float
    next: Ints  # [the time at which the next arm is opened]
    arms: UcbV


def ucb_air_reset(state: UcbAirState, key: int, horizon: int) -> None:
    reset_ucb_v(state.arms, key)
    state.next[0] = 1


@rare
def opening_time(opened: int, exponent: float) -> int:
    """Return the first t with `opened` < t^exponent; the margin covers the error of `pow`."""
    if math.log(opened) > 41.0 * exponent:  # after e^41 = 6e17 pulls
        return _NEVER
    return math.floor(math.pow(opened, 1.0 / exponent) * (1.0 + 1e-12)) + 1


def ucb_air_ask(state: UcbAirState) -> tuple[int, int]:
    clock = state.arms.clock[0]
    next_time(state.arms)
    if clock.time >= state.next[0]:
        slot = open_arm(state.arms)
        left = state.arms.sampler.n[0] - clock.opened
        state.next[0] = opening_time(clock.opened, state.exponent) if left > 0 else _NEVER
    else:
        slot = largest_index(state.arms)
    return slot, state.arms.slot[slot].arm


plays(
    UcbAirState,
    reset=ucb_air_reset,
    ask=ucb_air_ask,
    tell=lambda state, slot, reward: credit(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class UCBAIR(ManyArmedUCBV):
    r"""Open a random arm while there are too few for the time, else the largest UCB-V index.

    At pull t, with K arms opened so far: a new arm if :math:`K < t^{b/2}` (b < 1 and
    :math:`\mu^* < 1`) or :math:`K < t^{b/(b+1)}` (otherwise), else the opened arm of largest

    .. math:: B = \bar x + \sqrt{\frac{2 V E_t}{N}} + \frac{3 E_t}{N}, \qquad
        E_t = 2 \log(10 \log t)

    Parameters
    ----------
    b, perfect_best
        As for `UCBF`.

    Notes
    -----
    Source, what is known of the arms (b, and whether :math:`\mu^* = 1`), the regret, and what could
    not be checked: as for `UCBF`. Anytime. When all n arms are opened it goes on with these. An
    arm whose first reward is late waits for it while there are others.

    Cost per pull: O(log(arms opened)) in practice and exact, as for `UCBF`.

    Examples
    --------
    >>> from manyarms.policies.field import UCBAIR
    >>> UCBAIR(b=0.5).exponent, UCBAIR(b=0.5, perfect_best=True).exponent
    (0.25, 0.3333333333333333)
    """

    name = "ucb-air"
    anytime = True
    about = replace(
        UCBF.about,
        needs="shape b of the means",
        nanoseconds=110,
        page="docs/policies/new_arms.md",
        good_at="infinitely many arms of known shape, no horizon",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbAirState:
        # K arms are opened only if K - 1 < pulls^exponent
        most = math.ceil(math.pow(pulls, self.exponent)) + 1
        room = min(most, n_arms, pulls)
        return UcbAirState(self.exponent, memory.ints(1), ucb_v(memory, n_arms, arms=room))
