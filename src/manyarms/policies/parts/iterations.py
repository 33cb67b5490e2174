"""What MOSS++ and its kin share: iterations, each of which becomes a mixture-arm.

Arms that come may be drawn when the next iteration begins. An arm that goes loses its slots and
its shares of mixture-arms, and the set shrinks, K with it; a set left without any member gets a
fresh arm.
"""

from __future__ import annotations

from typing import Any

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Record, wipe
from manyarms.core.rng import draw, restart
from manyarms.policies.parts.fresh import reset_arms, strike
from manyarms.policies.parts.mixtures import (
    Mixtures,
    add_share,
    close_mixture,
    leave_mixtures,
    mixture_pulls,
    real_arm,
    reset_mixtures,
)
from manyarms.policies.parts.moss_slots import GONE, Slots, close_slot
from manyarms.policies.parts.randomness import MIXTURES, ORDER


class IterationClock(Record):
    horizon: int  # T
    iteration: int  # i
    left: int  # pulls left in the iteration


class WaitingClock(IterationClock):
    waiting: int  # members without a pull in this iteration


@kernel
def reset_iterations(state: Any, key: int, horizon: int) -> None:
    """Forget everything; the first iteration begins with the first pull."""
    reset_arms(state.arms, key)
    restart(state.order, draw(key, ORDER))
    reset_mixtures(state.mixtures, draw(key, MIXTURES))
    wipe(state.clock, 0)
    state.clock[0].horizon = horizon


@kernel
def ask_member(mixtures: Mixtures, slots: Slots, number: int) -> tuple[int, int]:
    """Count a pull of the slot; return it with its arm, or one drawn from its mixture-arm."""
    slot = slots.slot[number]
    slot.asked += 1
    return number, real_arm(mixtures, slot.member)


@rare
def become_mixture(state: Any) -> None:
    """Turn the iteration that ended into a mixture-arm."""
    slots = state.arms.slots
    for k in range(slots.run[0].opened):
        add_share(state.mixtures, slots.slot[k].member, slots.slot[k].asked)
    close_mixture(state.mixtures)


def iteration_of(state: Any) -> int:
    """Return the iteration; it is the generation where each iteration has new slots."""
    iteration: int = state.clock[0].iteration
    return iteration


def arrive_later(state: Any, count: int) -> None:
    """Add new arms, which are drawn from the next iteration on."""
    state.arms.pool[0] += count


@rare
def lose_arm(state: Any, arm: int) -> int:
    """Take a retired arm out of mixture-arms and slots; return how many slots it had."""
    slots, mixtures, found = state.arms.slots, state.mixtures, 0
    strike(state.arms.retired, arm)
    leave_mixtures(mixtures, arm)
    for slot in range(slots.run[0].opened):
        member = slots.slot[slot].member
        if is_gone(mixtures, member, arm):
            found += int(member == arm)
            close_slot(slots, slot)
    return found


@rare
def is_gone(mixtures: Mixtures, member: int, arm: int) -> bool:
    """Whether the member is the retired arm, or a mixture-arm left without arms."""
    return member == arm or (GONE < member < 0 and mixture_pulls(mixtures, -member) == 0)
