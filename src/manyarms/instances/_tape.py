"""The reward tape: the k-th reward of an arm is the same whoever pulls it, and whenever.

k counts all pulls of the arm in this replication. So all policies face the same luck, and
differences between them vary far less than the regrets do.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records, Word
from manyarms.core.rng import draw
from manyarms.instances._world import World, mean_of, reward_of

__all__ = ["NO_ARM", "NO_ROOM", "Tape", "most_pulled", "next_reward", "record_of", "rewind", "tape"]

_NOBODY = -(1 << 62)  # no arm
NO_ARM, NO_ROOM = -1, -2
MEANS = 0
REWARDS = 1


class ArmRecord(Record):
    """What the world knows of an arm that was pulled: 32 bytes, as much as a GPU reads at once."""

    key: Word  # of its rewards
    mean: float
    pulls: int
    total: float


class LastRecord(Record):
    """The record asked for last."""

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
    tape.last[0].arm = _NOBODY


@kernel
def record_of(tape: Tape, world: World, key: int, arm: int) -> int:
    """Return the number of the arm's record, written at its first pull.

    Returns NO_ARM if there is no such arm, and NO_ROOM if there is no room for its record.
    """
    last = tape.last[0]
    if last.arm == arm:  # most often the leader once more
        return last.number
    if arm < 0 or arm >= world.n_arms:
        return NO_ARM
    at = find(tape.number, arm)
    if tape.number.cells[at] != 0:
        number = tape.number.cells[at + 1]
    else:
        number = tape.number.filled[0]
        if number >= tape.number.entries:
            return NO_ROOM
        insert(tape.number, at, arm, number)
        record = tape.record[number]
        record.key = draw(draw(key, REWARDS), arm)
        record.mean = mean_of(world, arm, draw(key, MEANS))
        record.pulls = 0
        record.total = 0.0
    last.arm = arm
    last.number = number
    return number


@kernel
def next_reward(tape: Tape, world: World, number: int) -> float:
    """Pull the arm of this record: return its next reward."""
    record = tape.record[number]
    reward = reward_of(world, record.mean, draw(record.key, record.pulls))
    record.pulls += 1
    record.total += reward
    return reward


@rare
def most_pulled(tape: Tape) -> int:
    """Return the arm pulled most often; among these that of largest mean, then at random."""
    best = 0
    for number in range(1, tape.number.filled[0]):
        record, rival = tape.record[number], tape.record[best]
        if record.pulls != rival.pulls:
            better = record.pulls > rival.pulls
        elif record.total != rival.total:
            better = record.total > rival.total
        else:
            better = record.key > rival.key
        if better:
            best = number
    return tape.number.cells[tape.number.used[best]] - 1
