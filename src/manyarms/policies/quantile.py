"""Quantile: QRM2, which widens a random set of arms as time goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory, Records
from manyarms.policies.parts.doubling_rounds import (
    RoundClock,
    RoundPolicy,
    last_round,
    next_round,
    reset_rounds,
)
from manyarms.policies.parts.fresh import FreshArms, arrive_now, ask_arms, present, retire_arm
from manyarms.policies.parts.moss_slots import count_late_pulls, credit
from manyarms.policies.parts.parameters import kl_form
from manyarms.protocol import About, plays
from manyarms.protocol.parameters import Share
from manyarms.theory.schedules import quantile_arms


class QuantileState(NamedTuple):
    """The round, and the arms of the growing set, ranked by their index."""

    exponent: float
    clock: Records[RoundClock]  # [clock]
    arms: FreshArms


def quantile_ask(state: QuantileState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_round(state, quantile_arms(clock.round + 1, state.exponent, present(state.arms)))
    clock.left -= 1
    return ask_arms(state.arms)


plays(
    QuantileState,
    reset=reset_rounds,
    ask=quantile_ask,
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
    arrive=lambda state, count: arrive_now(state.arms, count),
    retire=lambda state, arm: retire_arm(state.arms, arm),
)


@dataclass(frozen=True, kw_only=True)
class Quantile(RoundPolicy):
    r"""QRM2 (Chaudhuri & Kalyanakrishnan, UAI 2018): MOSS on about T^0.347 random arms.

    Round l lasts 2^l pulls, on a set grown to

    .. math:: \lceil 2^{0.347\,l} \rceil

    arms; statistics are kept. The index has K = size of the set and H = min(2^(l+1) - 2, T).

    Parameters
    ----------
    exponent
        How fast the set grows; the source's 0.347 is the default.
    sigma, exploration, count_late, index
        As for `MOSS`; nothing is proven for the KL indices.

    Notes
    -----
    Anytime. Rate min(1, max(2.89 alpha, 0.674)): not Pareto optimal.

    Its page is docs/policies/quantile.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Quantile().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> for _ in range(100):
    ...     live.tell(live.ask(), reward=0.0)
    >>> print(live.progress())
    100 pulls, round 6
    100 rewards told, 0 pending, 0 abandoned; mean reward 0 %
    5 arms tried; 1000000 to choose from
    """

    name = "quantile"
    about = About(
        needs="nothing",
        guarantee="sublinear below hardness 0.35",
        only_if=("hardness below 0.35",),
        nanoseconds=13,
        page="docs/policies/quantile.md",
        scaling="log of arms pulled",
        good_at="many good arms, no horizon",
        source="Chaudhuri & Kalyanakrishnan 2018 (QRM2)",
        kind="paper",
        variants=(kl_form("quantile"),),
    )

    exponent: Share = 0.347

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> QuantileState:
        size = quantile_arms(last_round(pulls), self.exponent, n_arms)
        arms = self._arms(memory, n_arms, arms=min(size, pulls))
        return QuantileState(self.exponent, memory.records(1, RoundClock), arms)
