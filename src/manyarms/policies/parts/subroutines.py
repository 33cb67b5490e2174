"""The subroutines of Parallel: MOSS on a random set for each of many hardnesses.

There are q = ⌈log T⌉ subroutines, for the hardnesses i/q, that share slots and sampler. A slot's
number says whose it is, so a reward finds its subroutine when another one runs by now. A state has
`factor`, `clock`, `subroutine` and `arms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyarms.core.jit import kernel
from manyarms.core.memory import NO_ROOM, Memory, Record, power_of_two
from manyarms.core.tournament import Tournament
from manyarms.policies.parts.fresh import (
    FreshArms,
    arrive_now,
    choose,
    hold,
    present,
    replace_arm,
    reset_arms,
    strike,
)
from manyarms.policies.parts.moss_slots import Slots, begin, count_late_pulls, credit, unopened
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.theory.schedules import subroutines, subset_size

_MOST_SUBROUTINES = 64  # log T is smaller for every T


class SubroutineClock(Record):
    subroutines: int  # q
    running: int  # the subroutine that was asked last


class Subroutine(Record):
    base: int  # its first slot
    room: int  # slots for it, a power of two
    pulls: int  # T_i
    rewards: float  # their sum


def room_for(memory: Memory, n_arms: int, pulls: int, factor: float) -> dict[str, int]:
    """Return how many subroutines there are, and how many slots they need: together, and one.

    One subroutine alone hardly ever meets half of all arms that are met.
    """
    q = subroutines(pulls)
    most = pulls if memory.arms_may_come else min(n_arms, pulls, (memory.arms_met + 1) // 2)
    sizes = [subset_size(pulls, (i + 1) / q, factor, most) for i in range(q)]
    arms = sum(map(power_of_two, sizes))
    return {"runs": q, "arms": arms, "draws": min(arms, pulls), "room": power_of_two(most)}


@kernel
def slots_of(state: Any, i: int) -> Slots:
    """Return subroutine i's part of the shared slots."""
    own, slots = state.subroutine[i], state.arms.slots
    shared = slots.rank
    rank = Tournament(
        shared.entrant,
        shared.leaders,
        shared.node,
        shared.changed,
        shared.board,
        own.base,
        own.room,
        i,
    )
    return Slots(
        slots.slot,
        slots.run,
        slots.late,
        slots.log,
        slots.spread,
        slots.mixture_spread,
        slots.kl,
        slots.switch,
        slots.plus,
        slots.late_counts,
        slots.ties,
        rank,
    )


@kernel
def _arms_of(state: Any, i: int) -> FreshArms:
    """Return subroutine i's slots, with the sampler that all share."""
    arms = state.arms
    return FreshArms(slots_of(state, i), arms.sampler, arms.words, arms.pool, arms.retired)


@kernel
def _wanted_arms(state: Any, i: int, q: int, horizon: int) -> int:
    """Return the size of subroutine i's set if there are enough arms."""
    return subset_size(horizon, (i + 1) / q, state.factor, horizon)


@kernel
def reset_subroutines(state: Any, key: int, horizon: int) -> None:
    """Forget everything, and let all subroutines begin."""
    reset_arms(state.arms, key)
    q = subroutines(horizon)
    state.clock[0].subroutines = q
    most = state.arms.slots.rank.room
    base = 0
    for i in range(q):
        wanted = _wanted_arms(state, i, q, horizon)
        own = state.subroutine[i]
        own.base = base
        own.room = 1
        while own.room < min(wanted, most):  # for the arms that may still come, too
            own.room *= 2
        own.pulls = 0
        own.rewards = 0.0
        base += own.room
        begin(slots_of(state, i), min(wanted, present(state.arms)), horizon)


@kernel
def _lacks_room(state: Any, i: int) -> bool:
    """Whether subroutine i must open a slot, and has no memory for it."""
    run = state.arms.slots.run[i]
    full = run.gone == 0 and run.opened >= state.subroutine[i].room
    return full and unopened(slots_of(state, i)) > 0


@kernel
def ask_subroutine(state: Any, i: int) -> tuple[int, int]:
    """Let subroutine i choose; return the number of its slot, which contains i, and the arm."""
    state.clock[0].running = i
    if _lacks_room(state, i):
        return 0, NO_ROOM
    slot = choose(_arms_of(state, i))
    return slot * _MOST_SUBROUTINES + i, state.arms.slots.slot[slot].member


@kernel
def subroutine_of(slot: int) -> int:
    """Return the subroutine that a slot of `ask_subroutine` belongs to."""
    return slot % _MOST_SUBROUTINES


@kernel
def tell_subroutine(state: Any, slot: int, reward: float) -> None:
    """Credit the reward to the subroutine that asked, and to its slot."""
    i = subroutine_of(slot)
    own = state.subroutine[i]
    own.pulls += 1
    own.rewards += reward
    credit(slots_of(state, i), slot // _MOST_SUBROUTINES, reward)


def count_late_in_subroutine(state: Any, slot: int, change: int) -> None:
    """Count late pulls of a slot."""
    count_late_pulls(slots_of(state, subroutine_of(slot)), slot // _MOST_SUBROUTINES, change)


def widen(state: Any, count: int) -> None:
    """Add new arms; sets that had all arms grow."""
    arrive_now(state.arms, count)
    q = state.clock[0].subroutines
    for i in range(q):
        horizon = state.arms.slots.run[i].horizon
        size = subset_size(horizon, (i + 1) / q, state.factor, present(state.arms))
        hold(_arms_of(state, i), size)


def lose_arm(state: Any, arm: int) -> None:
    """Take a retired arm out of all sets."""
    strike(state.arms.retired, arm)
    for i in range(state.clock[0].subroutines):
        replace_arm(_arms_of(state, i), arm)


@dataclass(frozen=True, kw_only=True)
class SubroutinePolicy(IndexPolicy):
    def stage(self, state: Any) -> str:
        return f"subroutine {state.clock[0].running + 1} of {state.clock[0].subroutines}"
