"""MOSS on a set of arms drawn at random, each drawn only when its first pull is due.

Arms that come join those that fresh arms are drawn from. An arm that goes loses its slot, and a
fresh one takes its place while there are any. K in the index is the size of the set at all times.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.hash_map import HashMap, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.core.tournament import leader
from manyarms.policies.parts.moss_slots import (
    Slots,
    close_slot,
    open_slot,
    refresh,
    set_scale,
    unopened,
)
from manyarms.policies.parts.randomness import FRESH, TIES


class FreshArms(NamedTuple):
    """Slots of arms that were drawn, and the sampler that draws the next one."""

    slots: Slots
    sampler: Sampler
    words: Stream
    pool: Ints  # [the number of arms that ever were]
    retired: HashMap  # arms that must not be pulled any more


def fresh_arms(
    memory: Memory, n_arms: int, *, draws: int, shuffles: int = 1, slots: Slots
) -> FreshArms:
    """Make room for drawing `draws` of `n_arms` arms."""
    pool = memory.ints(1)
    pool[0] = n_arms
    return FreshArms(
        slots,
        sampler(memory, n_arms, draws=draws, shuffles=shuffles),
        stream(memory),
        pool,
        hash_map(memory, names=n_arms, entries=0),  # a simulation retires no arm
    )


@kernel
def reset_arms(arms: FreshArms, key: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    restart(arms.words, draw(key, FRESH))
    restart(arms.slots.ties, draw(key, TIES))
    put_back(arms)


@kernel
def put_back(arms: FreshArms) -> None:
    """Put all arms back into the sampler."""
    clear_sampler(arms.sampler)
    arms.sampler.n[0] = arms.pool[0]


@kernel
def ask_arms(arms: FreshArms) -> tuple[int, int]:
    """Return the slot of largest index and its arm."""
    slot = choose(arms)
    return slot, arms.slots.slot[slot].member


@kernel
def choose(arms: FreshArms) -> int:
    """Return the slot of largest index; arms never pulled come first, in random order."""
    if unopened(arms.slots) > 0:
        return open_slot(arms.slots, draw_arm(arms))
    return leader(arms.slots.rank, arms.slots.ties)


@kernel
def draw_arm(arms: FreshArms) -> int:
    """Draw an arm that was not drawn before, and is not retired; there must be one."""
    which = arms.slots.rank.number
    arm = pick(arms.sampler, which, next_word(arms.words))
    while is_retired(arms.retired, arm):
        arm = pick(arms.sampler, which, next_word(arms.words))
    return arm


@kernel
def is_retired(retired: HashMap, arm: int) -> bool:
    return retired.filled[0] > 0 and retired.cells[find(retired, arm)] != 0


@kernel
def present(arms: FreshArms) -> int:
    """Return the number of arms that may be pulled."""
    return arms.pool[0] - arms.retired.filled[0]


@rare
def drawable(arms: FreshArms) -> int:
    """Return how many arms may be pulled, among those that the set is drawn from."""
    if arms.sampler.n[0] == arms.pool[0]:
        return present(arms)
    count = arms.sampler.n[0]
    for k in range(arms.retired.filled[0]):
        count -= int(arms.retired.cells[arms.retired.used[k]] <= arms.sampler.n[0])  # arm + 1
    return count


@rare
def resize(arms: FreshArms, members: int, horizon: int) -> None:
    """Set the size of the set to `members`, and compute all its indices again."""
    slots = arms.slots
    run = slots.run[slots.rank.number]
    set_scale(slots, members, horizon)
    for slot in range(slots.rank.base, slots.rank.base + run.opened):
        refresh(slots, slot)


@rare
def hold(arms: FreshArms, members: int) -> None:
    """Resize the set to `members` arms, if the game has begun and K changes."""
    run = arms.slots.run[arms.slots.rank.number]
    if members != run.members and run.horizon > 0:
        resize(arms, members, run.horizon)


@kernel
def arrive_now(arms: FreshArms, count: int) -> None:
    """Add new arms to those that are drawn from."""
    arms.pool[0] += count
    arms.sampler.n[0] = arms.pool[0]


@kernel
def retire_arm(arms: FreshArms, arm: int) -> None:
    """Retire an arm; a fresh one takes its place."""
    strike(arms.retired, arm)
    replace_arm(arms, arm)


@rare
def strike(retired: HashMap, arm: int) -> None:
    """Mark the arm as retired."""
    insert(retired, find(retired, arm), arm, 0)


@rare
def replace_arm(arms: FreshArms, arm: int) -> None:
    """Take a retired arm out of the set; a fresh one replaces it while there are any."""
    slots = arms.slots
    run = slots.run[slots.rank.number]
    if run.horizon > 0:  # else the game has not begun
        for slot in range(slots.rank.base, slots.rank.base + run.opened):
            if slots.slot[slot].member == arm:
                close_slot(slots, slot)
        hold(arms, min(run.members, present(arms)))
