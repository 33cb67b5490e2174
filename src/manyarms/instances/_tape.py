"""The reward tape: the k-th reward of an arm is the same whoever pulls it, and whenever.

k counts all pulls of the arm in this replication. So all policies face the same luck, and
differences between them vary far less than the regrets do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import NO_ROOM, Ints, Memory, Record, Records, Word, power_of_two, release
from manyarms.core.rng import draw, hashed
from manyarms.instances._world import World, mean_of, reward_of
from manyarms.protocol.recommend import Scale, lower_limit

__all__ = [
    "NO_ARM",
    "Tape",
    "arm_of",
    "best_record",
    "next_reward",
    "record_of",
    "rewind",
    "tape",
]

_NOBODY = -(1 << 62)  # no arm
NO_ARM = -1
MEANS = 0
REWARDS = 1


class ArmRecord(Record):
    """What the world knows of an arm that was pulled: 32 bytes, as much as a GPU reads at once."""

    name: int  # the arm + 1; 0 if it is nobody's
    mean: float
    pulls: int
    total: float


class LastRecord(Record):
    """The record asked for last, at hand; it is put back when another one is asked for."""

    arm: int
    number: int
    key: Word  # of its rewards
    mean: float
    pulls: int
    total: float


class Tape(NamedTuple):
    """The records of the arms pulled so far, in a hash table with linear probing."""

    record: Records[ArmRecord]
    used: Ints  # the numbers of records in use, in order of the first pulls
    met: Ints  # [how many there are]
    last: Records[LastRecord]  # [last]
    room: int  # for so many arms
    mask: int  # the length of the table less one, a power of two less one
    direct: bool  # every arm has a record of its own


def tape(memory: Memory, n_arms: int, arms: int) -> Tape:
    """Make a tape with room for `arms` of the arms; call `rewind` before use."""
    arms = min(n_arms, arms)
    length = power_of_two(arms + arms // 2 + 1)  # filled to two thirds at most
    return Tape(
        memory.records(min(length, n_arms), ArmRecord),
        memory.ints(arms, most=length),
        memory.ints(1),
        memory.records(1, LastRecord),
        arms,
        length - 1,
        n_arms <= length,
    )


@kernel
def rewind(tape: Tape) -> None:
    """Forget all pulls."""
    for k in range(tape.met[0]):
        tape.record[tape.used[k]].name = 0
        release(tape.record, tape.used[k])
    tape.met[0] = 0
    tape.last[0].arm = _NOBODY


@kernel
def _write_back(tape: Tape) -> None:
    """Write down what was learned of the arm pulled last."""
    last = tape.last[0]
    if last.arm != _NOBODY:
        tape.record[last.number].pulls = last.pulls
        tape.record[last.number].total = last.total


@kernel
def _find(tape: Tape, arm: int) -> int:
    """Return the number of the arm's record, or of the one that is free for it."""
    if tape.direct:
        return arm
    number = hashed(arm, tape.mask)
    while tape.record[number].name != arm + 1 and tape.record[number].name != 0:
        number = (number + 1) & tape.mask
    return number


@kernel
def record_of(tape: Tape, world: World, key: int, arm: int) -> int:
    """Return the number of the arm's record, written at its first pull, and have it at hand.

    Returns NO_ARM if there is no such arm, and NO_ROOM if the policy, or the tape, has no room
    for it.
    """
    last = tape.last[0]
    if last.arm == arm:  # most often the leader once more
        return last.number
    if arm < 0 or arm >= world.n_arms:
        return NO_ROOM if arm == NO_ROOM else NO_ARM
    _write_back(tape)
    number = _find(tape, arm)
    record = tape.record[number]
    if record.name == 0:
        if tape.met[0] >= tape.room:
            return NO_ROOM
        record.name = arm + 1
        record.mean = mean_of(world, arm, draw(key, MEANS))
        record.pulls = 0
        record.total = 0.0
        tape.used[tape.met[0]] = number
        tape.met[0] += 1
    last.arm = arm
    last.number = number
    last.key = draw(draw(key, REWARDS), arm)
    last.mean = record.mean
    last.pulls = record.pulls
    last.total = record.total
    return number


@kernel
def next_reward(tape: Tape, world: World) -> float:
    """Pull the arm whose record was asked for last: return its next reward."""
    record = tape.last[0]
    word = draw(record.key, record.pulls)
    reward = reward_of(world, record.arm, record.mean, word)
    record.pulls += 1
    record.total += reward
    return reward


@rare
def best_record(tape: Tape, scale: Scale) -> int:
    """Return the record of the arm that the rule for all policies recommends, all rewards told."""
    _write_back(tape)
    best, highest = tape.used[0], -math.inf
    for k in range(tape.met[0]):
        record = tape.record[tape.used[k]]
        limit = lower_limit(record.pulls, record.total, scale, highest)
        if limit > highest:  # of equal ones the arm met first: arms are met in random order
            best, highest = tape.used[k], limit
    return best


@rare
def arm_of(tape: Tape, number: int) -> int:
    """Return the arm of a record."""
    return tape.record[number].name - 1
