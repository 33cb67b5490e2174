"""The reward tape: the k-th reward of an arm does not depend on the policy or the time.

k counts all pulls of the arm in this replication. So all policies get the same random
rewards, and differences between them vary far less than the regrets do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import NO_ROOM, Memory, Record, Records, Word
from manyarms.core.rng import draw
from manyarms.core.scale import Scale, lower_confidence_bound
from manyarms.instances.world import World, mean_of, reward_of

_NONE = -(1 << 62)  # no arm was used last
NO_ARM = -1
MEANS = 0
REWARDS = 1


class ArmRecord(Record):
    """An arm that was pulled: 32 bytes, which a GPU reads in one access."""

    key: Word  # of its rewards
    mean: float
    pulls: int
    total: float


class LastRecord(ArmRecord):
    """A copy of the record used last; it is written back when another one is used."""

    arm: int
    number: int


class Tape(NamedTuple):
    """The records of the arms pulled so far, in order of their first pull."""

    record: Records[ArmRecord]
    number: HashMap  # arm -> the number of its record
    last: Records[LastRecord]  # [last]


def tape(memory: Memory, n_arms: int, arms: int) -> Tape:
    """Make a tape with room for `arms` of the arms; call `rewind` before use."""
    arms = min(n_arms, arms)
    return Tape(
        memory.records(arms, ArmRecord),
        hash_map(memory, names=n_arms, entries=arms, values=arms),
        memory.records(1, LastRecord),
    )


@kernel
def rewind(tape: Tape) -> None:
    """Forget all pulls."""
    clear_map(tape.number)
    tape.last[0].arm = _NONE


@kernel
def _write_back(tape: Tape) -> None:
    """Write the copy back to its record."""
    last = tape.last[0]
    if last.arm != _NONE:
        tape.record[last.number].pulls = last.pulls
        tape.record[last.number].total = last.total


@kernel
def record_of(tape: Tape, world: World, key: int, arm: int) -> int:
    """Return the number of the arm's record, made at its first pull, and copy it to `last`.

    Returns NO_ARM if there is no such arm, and NO_ROOM if the policy, or the tape, has no room
    for it.
    """
    last = tape.last[0]
    if last.arm == arm:  # the usual case: the leader is pulled again
        return last.number
    if arm < 0 or arm >= world.n_arms:
        return NO_ROOM if arm == NO_ROOM else NO_ARM
    _write_back(tape)
    at = find(tape.number, arm)
    if tape.number.cells[at] != 0:
        number = tape.number.cells[at + 1]
        record = tape.record[number]
        last.key = record.key
        last.mean = record.mean
        last.pulls = record.pulls
        last.total = record.total
    else:
        number = tape.number.filled[0]
        if number >= tape.number.entries:
            return NO_ROOM
        insert(tape.number, at, arm, number)
        last.key = draw(draw(key, REWARDS), arm)
        last.mean = mean_of(world, arm, draw(key, MEANS))
        last.pulls = 0
        last.total = 0.0
        tape.record[number].key = last.key
        tape.record[number].mean = last.mean
    last.arm = arm
    last.number = number
    return number


@kernel
def pulled_record(tape: Tape, world: World, arm: int) -> int:
    """Return the number of the record of an arm; NO_ARM if it does not exist or was not pulled."""
    if arm < 0 or arm >= world.n_arms:
        return NO_ARM
    at = find(tape.number, arm)
    return tape.number.cells[at + 1] if tape.number.cells[at] != 0 else NO_ARM


@kernel
def next_reward(tape: Tape, world: World) -> float:
    """Pull the arm whose record was used last: return its next reward."""
    record = tape.last[0]
    word = draw(record.key, record.pulls)
    reward = reward_of(world, record.arm, record.mean, word)
    record.pulls += 1
    record.total += reward
    return reward


@rare
def best_record(tape: Tape, scale: Scale) -> int:
    """Return the record of the arm that the common rule recommends, once all rewards are told."""
    _write_back(tape)
    best, highest = 0, -math.inf
    for number in range(tape.number.filled[0]):
        record = tape.record[number]
        lower = lower_confidence_bound(record.pulls, record.total, scale, highest)
        if lower > highest:  # on ties the arm met first; arms are met in random order
            best, highest = number, lower
    return best


@rare
def arm_of(tape: Tape, number: int) -> int:
    """Return the arm of a record."""
    return tape.number.cells[tape.number.used[number]] - 1
