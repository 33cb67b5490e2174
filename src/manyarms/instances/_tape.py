"""The reward tape: the k-th reward of an arm is the same whoever pulls it, and whenever.

k counts all pulls of the arm in this replication. So all policies face the same luck, and
differences between them vary far less than the regrets do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, Word
from manyarms.core.rng import draw
from manyarms.instances._world import World, mean_of, reward_of
from manyarms.protocol.recommend import Scale, lower_limit

__all__ = ["Tape", "best_record", "next_reward", "record_of", "rewind", "tape"]

_NOBODY = -(1 << 62)  # the arm of a record not written yet
MEANS = 0
REWARDS = 1


class ArmRecord(Record):
    """What the world knows of an arm that was pulled."""

    arm: int
    key: Word  # of its rewards
    mean: float
    pulls: int
    total: float


class Tape(NamedTuple):
    """The records of the arms pulled so far, in order of their first pull."""

    record: Records[ArmRecord]
    number: HashMap  # arm -> the number of its record
    last: Ints  # [the record asked for last]


def tape(memory: Memory, n_arms: int, pulls: int) -> Tape:
    """Make a tape with room for `pulls` pulls; call `rewind` before use."""
    arms = min(n_arms, pulls)
    return Tape(
        memory.records(arms, ArmRecord),
        hash_map(memory, names=n_arms, entries=arms),
        memory.ints(1),
    )


@kernel
def rewind(tape: Tape) -> None:
    """Forget all pulls."""
    clear_map(tape.number)
    tape.last[0] = 0
    tape.record[0].arm = _NOBODY


@kernel
def record_of(tape: Tape, world: World, key: int, arm: int) -> int:
    """Return the number of the arm's record, written at its first pull; -1 for no such arm."""
    number = tape.last[0]
    if tape.record[number].arm == arm:  # most often the leader once more
        return number
    if arm < 0 or arm >= world.n_arms:
        return -1
    at = find(tape.number, arm)
    if tape.number.cells[at] != 0:
        number = tape.number.cells[at + 1]
    else:
        number = tape.number.filled[0]
        insert(tape.number, at, arm, number)
        record = tape.record[number]
        record.arm = arm
        record.key = draw(draw(key, REWARDS), arm)
        record.mean = mean_of(world, arm, draw(key, MEANS))
        record.pulls = 0
        record.total = 0.0
    tape.last[0] = number
    return number


@kernel
def next_reward(tape: Tape, world: World, number: int) -> float:
    """Pull the arm of this record: return its next reward."""
    record = tape.record[number]
    reward = reward_of(world, record.arm, record.mean, draw(record.key, record.pulls))
    record.pulls += 1
    record.total += reward
    return reward


@rare
def best_record(tape: Tape, scale: Scale) -> int:
    """Return the record of the arm that the rule for all policies recommends, all rewards told."""
    best, highest = 0, -math.inf
    for number in range(tape.number.filled[0]):
        record = tape.record[number]
        limit = lower_limit(record.pulls, record.total, scale, highest)
        if limit > highest:  # of equal ones the arm met first: arms are met in random order
            best, highest = number, limit
    return best
