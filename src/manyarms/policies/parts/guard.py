"""The guard: whatever a rule does, tests in stages and an allowance keep the rate of MOSS++.

The guard draws one random order of the arms; *slot* j is its j-th arm. A rule names slots that are
open, or the next fresh one. docs/guard.md has the box, the theorem and its proof.

Rewards may be late. The guard pulls a slot only when none of its rewards is outstanding, and its
bounds are made of the longest complete beginning of a slot's rewards, in the order of its pulls: so
it does no harm that good rewards may come sooner than bad ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, hash_map
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.fresh import is_retired, strike
from manyarms.policies.parts.kl import bernoulli_kl, kl_upper
from manyarms.policies.parts.randomness import draw_fresh, reset_order
from manyarms.theory.schedules import (
    guard_allowance,
    guard_error,
    guard_log,
    guard_lower_level,
    guard_stage_arms,
    guard_stage_pulls,
    guard_stage_start,
    guard_stages_planned,
    guard_upper_level,
)

__all__ = ["Guard", "count_guarded_late", "fresh_left", "guard", "guard_arrive", "guard_learn"]
__all__ += ["guard_reset", "guard_retire", "guard_turn", "is_gone", "launch_pull", "next_note"]
__all__ += ["open_slot", "stage_begins", "stage_words"]

_FIRST_GUESS = 256  # of the horizon, where none is told (docs/guard.md, "Without the horizon")
_AHEAD = 4  # the guess is always above so many times the pulls made
_NEVER = 1 << 62
_GONE = 1 << 62  # in place of a period: the slot's arm is retired
_WAITED_FOR, _TOLD, _LOST = 0, 1, 2  # what became of a pull


class GuardSlot(Record):
    """What the guard knows of a slot."""

    arm: int
    pulls: int  # N, of the complete beginning
    total: float  # of its rewards
    out: int  # the period in which it was ruled out
    late: int  # pulls whose reward was not there when the next pull was asked for
    first: int  # the oldest pull that is not in `pulls`, 0 if there is none
    last: int  # the newest one


class GuardPull(Record):
    """A pull, from its launch until all earlier ones of its slot are settled, too."""

    slot: int
    by_rule: int
    period: int
    floor: float  # l when it was launched; -inf while stage 0 was not over
    reward: float
    settled: int
    next: int  # the next pull of the same slot, 0 if there is none


class GuardClock(Record):
    """Where the guard is."""

    horizon: int  # T, or the present guess
    guessed: int  # 1 if T was not told
    arms: int  # slots there can be
    opened: int
    made: int  # pulls launched
    notes: int  # places of `flight` that were ever used
    free: int  # those that are free again
    log: float  # L
    power: float  # T^beta
    low: float  # x_low
    up: float  # x_up
    allowance: float
    period: int  # changes when slots that are out come back
    floor: float  # l
    keeper: int  # the slot that gave it, or -1
    debt: float  # D
    dropped: int
    rules: int  # the slot of which the rule learned last
    hint: int  # a slot that may raise the floor when a stage begins, or -1
    stage: int  # i
    size: int  # k_i
    need: int  # n_i
    start: int  # tau_i
    level: float  # x_i
    error: float  # epsilon_i
    at: int  # the first slot that the running stage is not done with, -1 if none runs


class Guard(NamedTuple):
    """The order of the arms, what was seen of each, and the stage that runs."""

    beta: float
    kl: bool
    sigma: float
    bottom: float
    top: float
    slot: Records[GuardSlot]
    flight: Records[GuardPull]  # by note
    notes: Ints  # the notes that are free again
    clock: Records[GuardClock]  # [clock]
    sampler: Sampler
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
    bottom: float,
    top: float,
) -> Guard:
    """Make a guard of `n_arms` arms in `pulls` pulls; call `guard_reset` before use."""
    room = min(n_arms, pulls)
    return Guard(
        beta,
        kl,
        sigma,
        bottom,
        top,
        slot=memory.records(room, GuardSlot),
        flight=memory.records(pulls + 1, GuardPull),  # place 0 is nobody's
        notes=memory.ints(pulls),
        clock=memory.records(1, GuardClock),
        sampler=sampler(memory, n_arms, draws=room),
        words=stream(memory),
        retired=hash_map(memory, names=n_arms, entries=0),  # a simulation retires no arm
    )


def stage_words(guard: Guard) -> str:
    """Say what the guard does, if it does something."""
    clock = guard.clock[0]
    if clock.at >= 0:
        arms = "an arm" if clock.size == 1 else f"{clock.size} arms"
        return f"the guard tests {arms}"
    return "the guard has taken over" if clock.dropped == 1 else ""


@kernel
def guard_reset(guard: Guard, key: int, horizon: int) -> None:
    """Begin a new order; `horizon` is 0 where none is told."""
    reset_order(guard.sampler, guard.words, key)
    clock = guard.clock[0]
    clock.arms = guard.sampler.n[0] - guard.retired.filled[0]
    clock.opened = 0
    clock.made = 0
    clock.notes = 0
    clock.free = 0
    clock.period = 0
    clock.rules = 0
    clock.hint = -1
    clock.guessed = 0 if horizon > 0 else 1
    begin(guard, horizon if horizon > 0 else _FIRST_GUESS)


@rare
def begin(guard: Guard, horizon: int) -> None:
    """Take `horizon` for T: levels, stages, floor, debt and who is out begin anew."""
    clock = guard.clock[0]
    clock.horizon = horizon
    clock.log = guard_log(horizon)
    clock.power = math.pow(horizon, guard.beta)
    clock.low = guard_lower_level(horizon)
    clock.up = guard_upper_level(horizon)
    width = max(guard.top - guard.bottom, 2.0 * guard.sigma)  # V
    clock.allowance = width * guard_allowance(horizon, guard.beta)
    clock.debt = 0.0
    clock.dropped = 0
    forget_floor(guard)
    plan(guard, 0)


@rare
def forget_floor(guard: Guard) -> None:
    clock = guard.clock[0]
    clock.period += 1
    clock.floor = -math.inf
    clock.keeper = -1


@rare
def plan(guard: Guard, stage: int) -> None:
    """Set the numbers of a stage."""
    clock = guard.clock[0]
    clock.stage = stage
    clock.at = -1
    clock.start = _NEVER
    if stage < guard_stages_planned(clock.horizon, guard.beta):
        clock.size = min(guard_stage_arms(clock.horizon, guard.beta, stage), clock.arms)
        clock.need = guard_stage_pulls(clock.horizon, guard.beta, stage)
        clock.start = guard_stage_start(clock.horizon, guard.beta, stage)
        clock.level = clock.low if clock.size == clock.arms else clock.up
        clock.error = 2.0 * guard.sigma * guard_error(clock.level, clock.low, clock.need)


@kernel
def stage_begins(guard: Guard) -> bool:
    """Whether a stage begins with the turn that comes, unless the floor makes it needless.

    Where the horizon is guessed, the next guess is made now if it is due.
    """
    clock = guard.clock[0]
    if clock.guessed == 1 and _AHEAD * clock.made >= clock.horizon:
        begin(guard, 2 * clock.horizon)
    return clock.at < 0 and clock.made >= clock.start


@kernel
def guard_turn(guard: Guard) -> int:
    """Return the slot that the guard, or its keeper, pulls now; -1 if the turn is the rule's.

    Ask `stage_begins` first.
    """
    clock, slot = guard.clock[0], -1
    if clock.made >= clock.start:
        slot = next_test(guard)
    if slot < 0 and clock.dropped == 1:
        slot = clock.keeper
    return slot


@rare
def next_test(guard: Guard) -> int:
    """Return the slot that a stage pulls now; -1 if no stage is due, or all its slots wait."""
    clock = guard.clock[0]
    while clock.made >= clock.start:
        if clock.at < 0:
            raise_floor(guard, clock.rules)
            raise_floor(guard, clock.hint)
            if guard.top - clock.floor > clock.error:
                clock.at = 0
        if clock.at >= 0:
            slot = first_to_pull(guard)
            if slot >= 0 or clock.at < clock.size:
                return slot
        plan(guard, clock.stage + 1)
    return -1


@rare
def first_to_pull(guard: Guard) -> int:
    """Return the first slot of the stage that may be pulled; -1 if all are done, or wait."""
    clock = guard.clock[0]
    slot = clock.at
    while slot < clock.size:
        if slot == clock.opened:
            if fresh_left(guard):
                return open_slot(guard)
            clock.size = slot
            break
        if is_done(guard, slot):
            if slot == clock.at:
                clock.at += 1
        elif guard.slot[slot].late == 0:
            return slot
        slot += 1
    return -1


@rare
def is_done(guard: Guard, slot: int) -> bool:
    """Whether the slot is out, now or before, or has all its rewards; then they raise the floor."""
    clock, own = guard.clock[0], guard.slot[slot]
    if own.out in (clock.period, _GONE):
        return True
    if own.pulls > 0 and is_below(guard, slot):
        own.out = clock.period
        return True
    if own.pulls < clock.need:
        return False
    raise_floor(guard, slot)
    return True


@rare
def is_below(guard: Guard, slot: int) -> bool:
    """Whether the upper bound of a slot, of the stage's level, is below the floor."""
    clock, own = guard.clock[0], guard.slot[slot]
    mean = own.total / own.pulls
    if mean >= clock.floor:
        return False
    if guard.kl:
        return own.pulls * bernoulli_kl(max(mean, 0.0), clock.floor) > clock.level
    gap = clock.floor - mean
    return own.pulls * gap * gap > 2.0 * guard.sigma * guard.sigma * clock.level


@rare
def raise_floor(guard: Guard, slot: int) -> None:
    """Raise the floor to the lower bound of an open slot, if that is larger."""
    clock = guard.clock[0]
    if not 0 <= slot < clock.opened or guard.slot[slot].out == _GONE:
        return
    own = guard.slot[slot]
    if own.pulls > 0:
        mean, level = own.total / own.pulls, clock.low / own.pulls
        if guard.kl:
            bound = 1.0 - kl_upper(1.0 - mean, level)
        else:
            bound = mean - guard.sigma * math.sqrt(2.0 * level)
        bound = min(max(bound, guard.bottom), guard.top)
        if bound > clock.floor:
            clock.floor = bound
            clock.keeper = slot


@kernel
def fresh_left(guard: Guard) -> bool:
    """Whether there is an arm without a slot."""
    return guard.clock[0].opened < guard.clock[0].arms


@kernel
def open_slot(guard: Guard) -> int:
    """Give the next arm of the order a slot; there must be one."""
    slot = guard.clock[0].opened
    guard.clock[0].opened += 1
    own = guard.slot[slot]
    own.arm = draw_fresh(guard.sampler, guard.words)
    while is_retired(guard.retired, own.arm):
        own.arm = draw_fresh(guard.sampler, guard.words)
    own.pulls = 0
    own.total = 0.0
    own.out = 0
    own.late = 0
    own.first = 0
    own.last = 0
    return slot


@kernel
def next_note(guard: Guard) -> int:
    """Return the note that the next pull will have."""
    clock = guard.clock[0]
    return guard.notes[clock.free - 1] if clock.free > 0 else clock.notes + 1


@kernel
def launch_pull(guard: Guard, slot: int, by_rule: int) -> int:
    """Write down a pull of an open slot, and return its note."""
    clock, own = guard.clock[0], guard.slot[slot]
    note = next_note(guard)
    if clock.free > 0:
        clock.free -= 1
    else:
        clock.notes += 1
    pull = guard.flight[note]
    pull.slot = slot
    pull.by_rule = by_rule
    pull.period = clock.period
    pull.floor = clock.floor if clock.stage > 0 else -math.inf
    pull.settled = _WAITED_FOR
    pull.next = 0
    if own.last > 0:
        guard.flight[own.last].next = note
    else:
        own.first = note
    own.last = note
    clock.made += 1
    return note


@kernel
def guard_learn(guard: Guard, note: int, reward: float) -> int:
    """Take the reward of a pull, and return its slot."""
    clock, pull = guard.clock[0], guard.flight[note]
    pull.settled = _TOLD
    pull.reward = reward
    if pull.by_rule == 1:
        clock.rules = pull.slot
        if pull.floor > -math.inf and pull.period == clock.period:
            clock.debt += pull.floor - reward
            if clock.debt > clock.allowance:
                clock.dropped = 1
    settle(guard, pull.slot)
    return pull.slot


@kernel
def settle(guard: Guard, slot: int) -> None:
    """Count the rewards of a slot up to the first one that is still waited for."""
    clock, own = guard.clock[0], guard.slot[slot]
    while own.first > 0 and guard.flight[own.first].settled != _WAITED_FOR:
        pull = guard.flight[own.first]
        if pull.settled == _TOLD:
            own.pulls += 1
            own.total += pull.reward
        guard.notes[clock.free] = own.first
        clock.free += 1
        own.first = pull.next
    if own.first == 0:
        own.last = 0


@kernel
def count_guarded_late(guard: Guard, note: int, change: int) -> bool:
    """Count late pulls; return whether this one was abandoned."""
    pull = guard.flight[note]
    guard.slot[pull.slot].late += change
    if change > 0 or pull.settled != _WAITED_FOR:  # else its reward was told just before
        return False
    pull.settled = _LOST
    settle(guard, pull.slot)
    return True


@rare
def guard_arrive(guard: Guard, count: int) -> None:
    """Let new arms join those that have no slot yet."""
    guard.sampler.n[0] += count
    guard.clock[0].arms += count
    if guard.clock[0].at < 0:
        plan(guard, guard.clock[0].stage)


@rare
def guard_retire(guard: Guard, arm: int) -> int:
    """Never open the arm, or let its slot be out for good; return the slot, -1 if it has none.

    If it is the keeper's, the floor is made anew of all other slots.
    """
    clock = guard.clock[0]
    strike(guard.retired, arm)
    slot = clock.opened - 1
    while slot >= 0 and guard.slot[slot].arm != arm:
        slot -= 1
    if slot < 0:
        clock.arms -= 1
    else:
        guard.slot[slot].out = _GONE
    if slot >= 0 and slot == clock.keeper:
        forget_floor(guard)
        for other in range(clock.opened):
            raise_floor(guard, other)
    if clock.at < 0:
        plan(guard, clock.stage)
    return slot


@kernel
def is_gone(guard: Guard, slot: int) -> bool:
    """Whether the slot's arm is retired."""
    return guard.slot[slot].out == _GONE
