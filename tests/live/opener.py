"""A policy that opens some arms in order and then pulls the best one, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.core.memory import Record, Records, place_of_arm
from manyarms.kit import Memory, plays


class OpenedArm(Record):
    arm: int
    count: int
    total: float
    squares: float
    gone: int


class OpenerClock(Record):
    opened: int
    drawn: int
    arms: int


class OpenerState(NamedTuple):
    """The arms that were opened, by slot."""

    first: int
    arm: Records[OpenedArm]
    gone: Records[OpenedArm]  # by arm
    clock: Records[OpenerClock]


def opener_reset(state: OpenerState, key: int, horizon: int) -> None:
    pass


def opener_ask(state: OpenerState) -> tuple[int, int]:
    clock, best, most = state.clock[0], -1, -1.0
    if clock.opened < state.first and clock.drawn < clock.arms:
        best = open_arm(state)
    for slot in range(clock.opened if best < 0 else 0):
        row = state.arm[slot]
        mean = row.total / row.count if row.count else 1e9
        if mean > most and state.gone[row.arm].gone == 0:
            best, most = slot, mean
    if best < 0:
        best = open_arm(state)
    return best, state.arm[best].arm


def open_arm(state: OpenerState) -> int:
    clock = state.clock[0]
    while state.gone[clock.drawn].gone == 1:
        clock.drawn += 1
    state.arm[clock.opened].arm = clock.drawn
    clock.drawn += 1
    clock.opened += 1
    return clock.opened - 1


def opener_tell(state: OpenerState, slot: int, reward: float) -> None:
    credit_slot(state, slot, 1, reward, reward * reward)


def credit_slot(state: OpenerState, slot: int, count: int, total: float, squares: float) -> None:
    row = state.arm[slot]
    row.count += count
    row.total += total
    row.squares += squares


def credit(state: OpenerState, arm: int, count: int, total: float, squares: float) -> int:
    slot = place_of_arm(state.arm, arm, state.clock[0].opened, 0) if arm >= 0 else open_arm(state)
    credit_slot(state, slot, count, total, squares)
    return state.arm[slot].arm


def opener_arrive(state: OpenerState, count: int) -> None:
    state.clock[0].arms += count


def opener_retire(state: OpenerState, arm: int) -> None:
    state.gone[arm].gone = 1


plays(
    OpenerState,
    reset=opener_reset,
    ask=opener_ask,
    tell=opener_tell,
    arrive=opener_arrive,
    retire=opener_retire,
    credit_known=credit,
)


@dataclass(frozen=True, kw_only=True)
class Opener(ma.Policy):
    """Open the next arm until `first` are open, then pull the one of largest mean."""

    name = "opener"
    anytime = True

    first: int = 3

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> OpenerState:
        clock = memory.records(1, OpenerClock)
        clock[0].arms = n_arms
        most = min(n_arms, pulls)
        return OpenerState(
            self.first, memory.records(most, OpenedArm), memory.records(n_arms, OpenedArm), clock
        )


def opened(live: ma.Live) -> dict[object, tuple[int, float, float]]:
    """Return what the policy knows of each arm that it has opened, in the order of slots."""
    search = live._experiment.search
    assert search is not None
    rows = (search.state.arm[slot] for slot in range(search.state.clock[0].opened))
    return {
        live._context.arms.name(search.seats.arm(row.arm)): (row.count, row.total, row.squares)
        for row in rows
    }
