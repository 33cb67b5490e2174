"""The state of the guard: slots in random order, and pulls whose rewards are not counted yet.

The bounds of a slot use the longest prefix of its pulls whose rewards have arrived, so that early
good rewards cannot bias them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, contains, hash_map
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, place_of_arm, places, wipe
from manyarms.core.rng import Stream, next_word, stream
from manyarms.core.sampler import Sampler, pick_from, sampler
from manyarms.policies.parts.randomness import draw_fresh

RETIRED = 1 << 62  # the value of `out` for a slot whose arm is retired
PENDING, TOLD, ABANDONED = 0, 1, 2  # values of `settled`


class GuardSlot(Record):
    """The rewards of a slot, and its pending pulls."""

    arm: int
    pulls: int  # N, the pulls of the prefix
    total: float  # the sum of its rewards
    out: int  # the period in which it was ruled out
    late: int  # late pulls
    first: int  # the note of the oldest pull not in `pulls`; 0 if there is none
    last: int  # the note of the newest one


class GuardPull(Record):
    """A pull, until it and all earlier ones of its slot are settled."""

    slot: int
    by_rule: int  # 1 if the rule chose it, 0 if the guard did; policies may use other values
    period: int
    floor: float  # l at the time of the pull; -inf before the end of stage 0
    reward: float
    settled: int
    next: int  # the next pull of the same slot, 0 if there is none


class GuardClock(Record):
    """The state of the stages and of the floor."""

    horizon: int  # T, or the present guess
    guessed: int  # 1 if T is unknown
    arms: int  # the number of arms that have or may get a slot
    opened: int
    made: int  # pulls made
    known: int  # known rewards that were credited without a pull
    notes: int  # places of `pending` used so far
    free: int  # how many of them are free again
    log: float  # L
    power: float  # T^beta
    low: float  # x_low
    up: float  # x_up
    allowance: float
    period: int  # a new period makes ruled-out slots eligible again
    floor: float  # l
    keeper: int  # the slot whose lower bound is the floor, or -1
    debt: float  # D
    dropped: int
    rules: int  # the slot of the last reward of the rule's pulls
    hint: int  # a slot to raise the floor with when a stage is due, or -1
    stage: int  # i
    size: int  # k_i
    need: int  # n_i
    start: int  # tau_i
    level: float  # x_i
    error: float  # epsilon_i
    at: int  # the first unfinished slot of the current stage; -1 between stages
    newest: int  # the place among `newcomers` where the group that came last begins


class Guard(NamedTuple):
    """The order of the arms, their rewards, and the current stage."""

    beta: float
    kl: bool
    sigma: float
    least: float  # rewards are between `least` and `least` + `width`; means, if not `kl`
    width: float
    bottom: float
    top: float
    slot: Records[GuardSlot]
    pending: Records[GuardPull]  # by note
    notes: Ints  # notes that are free again
    clock: Records[GuardClock]  # [clock]
    sampler: Sampler
    newcomers: Sampler  # of the arms that were added later, numbered from 0
    words: Stream
    retired: HashMap


def guard(
    memory: Memory,
    n_arms: int,
    *,
    pulls: int,
    beta: float,
    kl: bool,
    sigma: float,
    least: float,
    width: float,
    bottom: float,
    top: float,
) -> Guard:
    """Allocate a guard for `n_arms` arms and `pulls` pulls; call `reset_guard` before use."""
    room = min(n_arms, pulls)
    return Guard(
        beta,
        kl,
        sigma,
        least,
        width,
        bottom,
        top,
        slot=memory.records(room, GuardSlot),
        pending=memory.records(pulls + 1, GuardPull),  # place 0 is not used
        notes=memory.ints(pulls),
        clock=memory.records(1, GuardClock),
        sampler=sampler(memory, n_arms, draws=room),
        newcomers=sampler(memory, memory.changes, draws=2 * memory.changes),
        words=stream(memory),
        retired=hash_map(memory, names=n_arms, entries=memory.changes),
    )


@kernel
def has_fresh(guard: Guard) -> bool:
    """Whether there is an arm without a slot."""
    return guard.clock[0].opened < guard.clock[0].arms


@kernel
def can_open(guard: Guard) -> bool:
    """Whether there are an arm without a slot and memory for it."""
    return has_fresh(guard) and guard.clock[0].opened < places(guard.slot)


@kernel
def open_next(guard: Guard) -> int:
    """Give the next arm of the order a slot; there must be one."""
    arm = draw_fresh(guard.sampler, guard.words)
    # the loop ends even if a damaged snapshot has wrong retired arms
    while cannot_open(guard, arm) and guard.sampler.drawn[0] < guard.sampler.n[0]:
        arm = draw_fresh(guard.sampler, guard.words)
    return give_slot(guard, arm)


@rare
def open_newcomer(guard: Guard) -> int:
    """Open a random newcomer, of the newest group first; return its slot, -1 if none is left."""
    while guard.newcomers.drawn[0] < guard.newcomers.n[0]:
        arm = first_newcomer(guard) + draw_newcomer(guard)
        if not cannot_open(guard, arm):
            return give_slot(guard, arm)
    return -1


@kernel
def draw_newcomer(guard: Guard) -> int:
    newcomers, clock = guard.newcomers, guard.clock[0]
    if clock.newest >= newcomers.n[0]:  # all of the newest group are drawn
        return draw_fresh(newcomers, guard.words)
    clock.newest += 1
    return pick_from(newcomers, clock.newest - 1, next_word(guard.words))


@kernel
def first_newcomer(guard: Guard) -> int:
    """Return the arm number of the first newcomer."""
    return guard.sampler.n[0] - guard.newcomers.n[0]


@kernel
def cannot_open(guard: Guard, arm: int) -> bool:
    """Whether a drawn arm is retired or already open: both samplers may draw a newcomer."""
    return contains(guard.retired, arm) or (arm >= first_newcomer(guard) and has_slot(guard, arm))


@rare
def has_slot(guard: Guard, arm: int) -> bool:
    return place_of_arm(guard.slot, arm, guard.clock[0].opened, 0) >= 0


@kernel
def give_slot(guard: Guard, arm: int) -> int:
    slot = guard.clock[0].opened
    guard.clock[0].opened += 1
    wipe(guard.slot, slot)
    guard.slot[slot].arm = arm
    return slot


@kernel
def next_note(guard: Guard) -> int:
    """Return the note of the next pull."""
    clock = guard.clock[0]
    return guard.notes[clock.free - 1] if clock.free > 0 else clock.notes + 1


@kernel
def launch_pull(guard: Guard, slot: int, by_rule: int) -> int:
    """Record a pull of an open slot, and return its note."""
    clock, own = guard.clock[0], guard.slot[slot]
    note = next_note(guard)
    if clock.free > 0:
        clock.free -= 1
    else:
        clock.notes += 1
    pull = guard.pending[note]
    pull.slot = slot
    pull.by_rule = by_rule
    pull.period = clock.period
    pull.floor = clock.floor if clock.stage > 0 else -math.inf
    pull.settled = PENDING
    pull.next = 0
    if own.last > 0:
        guard.pending[own.last].next = note
    else:
        own.first = note
    own.last = note
    clock.made += 1
    return note


@kernel
def settle(guard: Guard, slot: int) -> None:
    """Count the rewards of a slot up to its first pending pull."""
    clock, own = guard.clock[0], guard.slot[slot]
    while own.first > 0 and guard.pending[own.first].settled != PENDING:
        pull = guard.pending[own.first]
        if pull.settled == TOLD:
            own.pulls += 1
            own.total += pull.reward
        guard.notes[clock.free] = own.first
        clock.free += 1
        own.first = pull.next
    if own.first == 0:
        own.last = 0


@kernel
def count_guarded_late(guard: Guard, note: int, change: int) -> bool:
    """Count late pulls; return whether the pull is now abandoned."""
    pull = guard.pending[note]
    guard.slot[pull.slot].late += change
    if change > 0 or pull.settled != PENDING:  # a late pull, or its reward was told
        return False
    pull.settled = ABANDONED
    settle(guard, pull.slot)
    return True


@kernel
def is_gone(guard: Guard, slot: int) -> bool:
    """Whether the slot's arm is retired."""
    return guard.slot[slot].out == RETIRED


def stage_words(guard: Guard) -> str:
    """Describe what the guard does now; "" if nothing."""
    clock = guard.clock[0]
    if clock.at >= 0:
        arms = "an arm" if clock.size == 1 else f"{clock.size} arms"
        return f"testing {arms}"
    return "the policy was dropped; the guard chooses all arms" if clock.dropped == 1 else ""
