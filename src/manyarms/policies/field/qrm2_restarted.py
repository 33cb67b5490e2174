"""QRM2, restarted: MOSS afresh in each round (Chaudhuri & Kalyanakrishnan 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.checks import check_number
from manyarms.core.jit import rare
from manyarms.core.memory import Ints, Memory, Record, Records
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.core.tournament import leader
from manyarms.policies.parts.fresh import FreshArms, draw_arm, present, reset_fresh_arms, start_on
from manyarms.policies.parts.index import IndexPolicy
from manyarms.policies.parts.randomness import ORDER
from manyarms.policies.parts.slots import count_late, credit, open_slot
from manyarms.protocol.policy import ask, defer, era, reset, tell
from manyarms.theory.schedules import quantile_arms

__all__ = ["QRM2Restarted"]


class Qrm2Clock(Record):
    round: int  # l
    left: int  # pulls left in the round
    size: int  # of the set
    waiting: int  # members without a pull in this round


class Qrm2RestartedState(NamedTuple):
    exponent: float
    clock: Records[Qrm2Clock]  # [clock]
    member: Ints  # the set; those without a pull in this round first
    arms: FreshArms
    order: Stream


@reset.register(Qrm2RestartedState)
def qrm2_restarted_reset(state: Qrm2RestartedState, key: int, horizon: int) -> None:
    reset_fresh_arms(state.arms, key)
    restart(state.order, draw(key, ORDER))
    state.clock[0].round = 0
    state.clock[0].left = 0
    state.clock[0].size = 0
    state.clock[0].waiting = 0


@rare
def next_qrm2_round(state: Qrm2RestartedState) -> None:
    """Double the length, widen the set, and forget what its arms did."""
    clock = state.clock[0]
    clock.round += 1
    clock.left = 1 << clock.round
    while clock.size < quantile_arms(clock.round, state.exponent, present(state.arms)):
        state.member[clock.size] = draw_arm(state.arms)
        clock.size += 1
    clock.waiting = clock.size
    start_on(state.arms, clock.size, clock.left)


@ask.register(Qrm2RestartedState)
def qrm2_restarted_ask(state: Qrm2RestartedState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_qrm2_round(state)
    clock.left -= 1
    if clock.waiting == 0:
        slot = leader(state.arms.slots.rank)
        return slot, state.arms.slots.slot[slot].member
    at = below(next_word(state.order), clock.waiting)
    clock.waiting -= 1
    arm = state.member[at]
    state.member[at] = state.member[clock.waiting]
    state.member[clock.waiting] = arm
    return open_slot(state.arms.slots, arm), arm


@tell.register(Qrm2RestartedState)
def qrm2_restarted_tell(state: Qrm2RestartedState, slot: int, reward: float) -> None:
    credit(state.arms.slots, slot, reward)


@defer.register(Qrm2RestartedState)
def qrm2_restarted_defer(state: Qrm2RestartedState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@era.register(Qrm2RestartedState)
def qrm2_restarted_era(state: Qrm2RestartedState) -> int:
    return state.clock[0].round


@dataclass(frozen=True, kw_only=True)
class QRM2Restarted(IndexPolicy):
    r"""`Quantile` as it is stated: every round runs a new MOSS, with H = 2^l.

    Round l lasts 2^l pulls, on a set grown to

    .. math:: \lceil 2^{0.347\,l} \rceil

    arms. The arms of earlier rounds stay in the set; what they did is forgotten.

    Parameters
    ----------
    exponent
        How fast the set grows; the source's 0.347 is the default.
    sigma, exploration, count_late
        As for `MOSS`.

    Notes
    -----
    A. R. Chaudhuri, S. Kalyanakrishnan, "Quantile-regret minimisation in infinitely many-armed
    bandits", UAI 2018. `Quantile` keeps the statistics, as experiments do. Anytime. Cost per pull:
    O(log of the arms in the set).

    Examples
    --------
    >>> from manyarms.policies.field.qrm2_restarted import QRM2Restarted
    >>> live = QRM2Restarted().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> live.tell(live.ask(), reward=0.0)
    """

    name: ClassVar[str] = "qrm2-restarted"
    anytime: ClassVar[bool] = True

    exponent: float = 0.347

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store(exponent=check_number("exponent", self.exponent, above=0.0, at_most=1.0))

    def stage(self, state: Qrm2RestartedState) -> str:
        return f"round {state.clock[0].round}"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Qrm2RestartedState:
        last_round = (pulls + 1).bit_length() - 1  # round l ends with pull 2^(l+1) - 2
        size = quantile_arms(last_round, self.exponent, n_arms)  # at most 2^l: all are drawn
        return Qrm2RestartedState(
            self.exponent,
            memory.records(1, Qrm2Clock),
            memory.ints(size),
            self._arms(memory, n_arms, arms=size),
            stream(memory),
        )
