"""QRM2, restarted: MOSS afresh in each round (Chaudhuri & Kalyanakrishnan 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import rare
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.core.tournament import leader
from manyarms.policies.parts.doubling_rounds import RoundPolicy, last_round
from manyarms.policies.parts.fresh import FreshArms, draw_arm, present, reset_arms
from manyarms.policies.parts.moss_slots import begin, count_late_pulls, credit, open_slot
from manyarms.policies.parts.randomness import ORDER
from manyarms.protocol import About, plays
from manyarms.protocol.parameters import Share
from manyarms.theory.schedules import quantile_arms


class Qrm2Clock(Record):
    round: int  # l
    left: int  # pulls left in the round
    size: int  # of the set
    waiting: int  # members without a pull in this round


class Qrm2RestartedState(NamedTuple):
    """The set, and the statistics of this round."""

    exponent: float
    clock: Records[Qrm2Clock]  # [clock]
    member: Ints  # the set; those without a pull in this round first
    arms: FreshArms
    order: Stream


def qrm2_restarted_reset(state: Qrm2RestartedState, key: int, horizon: int) -> None:
    reset_arms(state.arms, key)
    restart(state.order, draw(key, ORDER))
    wipe(state.clock, 0)


@rare
def next_qrm2_round(state: Qrm2RestartedState) -> None:
    """Start a round of twice the length on a larger set, without the old statistics."""
    clock = state.clock[0]
    clock.round += 1
    clock.left = 1 << clock.round
    while clock.size < quantile_arms(clock.round, state.exponent, present(state.arms)):
        state.member[clock.size] = draw_arm(state.arms)
        clock.size += 1
    clock.waiting = clock.size
    begin(state.arms.slots, clock.size, clock.left)


def qrm2_restarted_ask(state: Qrm2RestartedState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_qrm2_round(state)
    clock.left -= 1
    if clock.waiting == 0:
        slot = leader(state.arms.slots.rank, state.arms.slots.ties)
        return slot, state.arms.slots.slot[slot].member
    at = below(next_word(state.order), clock.waiting)
    clock.waiting -= 1
    arm = state.member[at]
    state.member[at] = state.member[clock.waiting]
    state.member[clock.waiting] = arm
    return open_slot(state.arms.slots, arm), arm


def qrm2_restarted_generation(state: Qrm2RestartedState) -> int:
    return state.clock[0].round


plays(
    Qrm2RestartedState,
    reset=qrm2_restarted_reset,
    ask=qrm2_restarted_ask,
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
    generation=qrm2_restarted_generation,
)


@dataclass(frozen=True, kw_only=True)
class QRM2Restarted(RoundPolicy):
    r"""`Quantile` as it is stated: every round runs a new MOSS, with H = 2^l.

    Round l lasts 2^l pulls, on a set grown to

    .. math:: \lceil 2^{0.347\,l} \rceil

    arms. The arms of earlier rounds stay in the set; what they did is forgotten.

    Parameters
    ----------
    exponent
        How fast the set grows; the source's 0.347 is the default.
    sigma, exploration, count_late, index
        As for `MOSS`.

    Notes
    -----
    A. R. Chaudhuri, S. Kalyanakrishnan, "Quantile-regret minimisation in infinitely many-armed
    bandits", UAI 2018. `Quantile` keeps the statistics, as experiments do. Anytime. Cost per pull:
    O(log of the arms in the set).

    Examples
    --------
    >>> from manyarms.policies.field import QRM2Restarted
    >>> live = QRM2Restarted().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> for _ in range(100):
    ...     live.tell(live.ask(), reward=0.0)
    >>> live.progress().stage, live.progress().arms_touched  # ⌈2^(6 · 0.347)⌉ arms
    ('round 6', 5)
    """

    name = "qrm2-restarted"
    about = About(
        needs="nothing",
        guarantee="as Quantile, whose proof is for this form",
        only_if=("hardness below 0.35",),
        nanoseconds=14,
        page="docs/policies/subsets.md",
        scaling="log of arms in the set",
        good_at="Quantile as it was stated",
        source="Chaudhuri & Kalyanakrishnan 2018",
    )

    exponent: Share = 0.347

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Qrm2RestartedState:
        size = quantile_arms(last_round(pulls), self.exponent, n_arms)  # at most 2^l: all are drawn
        return Qrm2RestartedState(
            self.exponent,
            memory.records(1, Qrm2Clock),
            memory.ints(size),
            self._arms(memory, n_arms, arms=size),
            stream(memory),
        )
