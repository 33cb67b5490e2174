"""Arms with the same successes and failures, grouped: their posteriors are the same.

A group's members lie side by side in one long array, so that one of them is drawn in O(1). A group
that outgrows its place moves to the end, into twice the room. Groups left without members, and
places left behind, are cleared away as soon as they are several times as many as the arms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, release, wipe
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.randomness import ROUNDING, draw_fresh, is_success, reset_draws

FEW = 8
_SPARE = 64  # groups, and places, beyond those for the arms: few arms, or none, need no clearing


class Member(Record):
    """A slot: an arm that was opened."""

    arm: int
    group: int
    place: int  # among the group's members


class Group(Record):
    """Arms with the same successes and failures: 64 bytes."""

    successes: int
    failures: int
    size: int
    start: int  # of its members
    room: int
    listed: int  # its place in the list of groups that have members
    mean: float  # of its posterior
    ways: float  # C(pulls + 1, failures + 1); infinite beyond FEW failures


class GroupClock(Record):
    opened: int
    groups: int  # with and without members; number 0 is that of the arms never observed
    listed: int  # groups that have members; number 0 is never listed
    places: int  # taken in the array of members


class Groups(NamedTuple):
    """All groups, and the sampler that draws fresh arms."""

    slot: Records[Member]
    group: Records[Group]
    member: Ints  # slots
    listed: Ints  # groups
    number: HashMap  # name -> group
    clock: Records[GroupClock]  # [clock]
    sampler: Sampler
    words: Stream
    ties: Stream
    rounding: Stream


def groups(memory: Memory, n_arms: int, pulls: int) -> Groups:
    """Make room for a game of `pulls` pulls; call `reset` before use."""
    arms = min(n_arms, pulls)
    return Groups(
        memory.records(arms, Member),
        memory.records(pulls + 1, Group),
        memory.ints(16 * arms + _SPARE),  # twelve times the slots, and room to clear up
        memory.ints(pulls + 1),
        hash_map(memory, names=name_of(pulls, 0) + 1, entries=pulls + 1),
        memory.records(1, GroupClock),
        sampler(memory, n_arms, draws=arms),
        stream(memory),
        stream(memory),
        stream(memory),
    )


@kernel
def reset_groups(arms: Groups, key: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    reset_draws(arms, key)
    restart(arms.rounding, draw(key, ROUNDING))
    clear_map(arms.number)
    wipe(arms.clock, 0)
    _group(arms, 0, 0)


@kernel
def name_of(successes: int, failures: int) -> int:
    """Return a number for the pair: Cantor's, which is small."""
    pulls = successes + failures
    return pulls * (pulls + 1) // 2 + successes


@kernel
def size_of(arms: Groups, number: int) -> int:
    """Return the number of members; arms without a slot belong to group 0."""
    size = arms.group[number].size
    return size if number > 0 else size + arms.sampler.n[0] - arms.clock[0].opened


@kernel
def choose_from(arms: Groups, number: int) -> int:
    """Return the slot of a random member of the group."""
    at = below(next_word(arms.ties), size_of(arms, number))
    group = arms.group[number]
    if at < group.size:
        return arms.member[group.start + at]
    slot = arms.clock[0].opened
    arms.clock[0].opened += 1
    arms.slot[slot].arm = draw_fresh(arms.sampler, arms.words)
    _join(arms, slot, 0)
    return slot


@kernel
def credit(arms: Groups, slot: int, reward: float) -> None:
    """Move a slot to the group with one more success, or failure."""
    clock = arms.clock[0]
    if max(2 * clock.groups, clock.places) > 8 * clock.opened + _SPARE:
        _clear_up(arms)
    success = is_success(reward, arms.rounding)
    group = arms.group[arms.slot[slot].group]
    number = _group(arms, group.successes + int(success), group.failures + int(not success))
    _leave(arms, slot)
    _join(arms, slot, number)


@kernel
def _group(arms: Groups, successes: int, failures: int) -> int:
    """Return the number of the group, which is made if it is new."""
    name = name_of(successes, failures)
    at = find(arms.number, name)
    if arms.number.cells[at] != 0:
        return arms.number.cells[at + 1]
    number = arms.clock[0].groups
    arms.clock[0].groups = number + 1
    insert(arms.number, at, name, number)
    wipe(arms.group, number)
    group = arms.group[number]
    group.successes = successes
    group.failures = failures
    group.mean = (successes + 1) / (successes + failures + 2)
    group.ways = 1.0 if failures < FEW else math.inf
    for k in range(min(failures, FEW) + 1):
        group.ways *= (successes + failures + 1 - k) / (k + 1)
    return number


@kernel
def _join(arms: Groups, slot: int, number: int) -> None:
    group = arms.group[number]
    if group.size == group.room:
        _move(arms, number)
    if group.size == 0 and number > 0:
        group.listed = arms.clock[0].listed
        arms.listed[group.listed] = number
        arms.clock[0].listed += 1
    arms.slot[slot].group = number
    arms.slot[slot].place = group.size
    arms.member[group.start + group.size] = slot
    group.size += 1


@rare
def _move(arms: Groups, number: int) -> None:
    """Give a group twice the room."""
    group = arms.group[number]
    start = arms.clock[0].places
    for place in range(group.size):
        arms.member[start + place] = arms.member[group.start + place]
    group.start = start
    group.room = max(1, 2 * group.room)
    arms.clock[0].places = start + group.room


@kernel
def _leave(arms: Groups, slot: int) -> None:
    number, place = arms.slot[slot].group, arms.slot[slot].place
    group = arms.group[number]
    group.size -= 1
    last = arms.member[group.start + group.size]
    arms.member[group.start + place] = last
    arms.slot[last].place = place
    if group.size == 0 and number > 0:
        arms.clock[0].listed -= 1
        moved = arms.listed[arms.clock[0].listed]
        arms.listed[group.listed] = moved
        arms.group[moved].listed = group.listed


@rare
def _clear_up(arms: Groups) -> None:
    """Compact the groups that have members, in the order of their numbers.

    Neither the order of the list nor that of a group's members changes.
    """
    clock = arms.clock[0]
    kept, before = 0, clock.places
    places = before
    clear_map(arms.number)
    for number in range(clock.groups):
        group = arms.group[number]
        if group.size > 0 or number == 0:
            for place in range(group.size):
                slot = arms.member[group.start + place]
                arms.member[places + place] = slot
                arms.slot[slot].group = kept
            group.start = places - before
            group.room = group.size
            places += group.size
            if number > 0:
                arms.listed[group.listed] = kept
            _renumber(arms, number, kept)
            kept += 1
        else:
            wipe(arms.group, number)
    for place in range(places):
        if place < places - before:
            arms.member[place] = arms.member[before + place]
        else:
            arms.member[place] = 0
            release(arms.member, place)
    clock.groups = kept
    clock.places = places - before


@rare
def _renumber(arms: Groups, number: int, new: int) -> None:
    old, group = arms.group[number], arms.group[new]
    name = name_of(old.successes, old.failures)
    insert(arms.number, find(arms.number, name), name, new)
    if new != number:
        group.successes = old.successes
        group.failures = old.failures
        group.size = old.size
        group.start = old.start
        group.room = old.room
        group.listed = old.listed
        group.mean = old.mean
        group.ways = old.ways
        wipe(arms.group, number)


def _used(number: HashMap) -> list[int]:
    return [number.used[k] for k in range(number.filled[0])]
