"""The reward tape: the k-th reward of an arm is the same whoever pulls it, and whenever.

k counts all pulls of the arm in this replication. So all policies face the same luck, and
differences between them vary far less than the regrets do.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, Word
from manyarms.core.rng import draw
from manyarms.instances._world import World, mean_of, reward_of

__all__ = ["Tape", "card_of", "favourite", "next_reward", "rewind", "tape"]

_NOBODY = -(1 << 62)  # the arm of a card not written yet
MEANS = 0
REWARDS = 1


class Card(Record):
    """What the world knows of an arm that was pulled."""

    arm: int
    key: Word  # of its rewards
    mean: float
    pulls: int
    total: float


class Tape(NamedTuple):
    """The cards of the arms pulled so far, in order of their first pull."""

    card: Records[Card]
    number: HashMap  # arm -> the number of its card
    last: Ints  # [the card asked for last]


def tape(memory: Memory, n_arms: int, pulls: int) -> Tape:
    """Make a tape with room for `pulls` pulls; call `rewind` before use."""
    arms = min(n_arms, pulls)
    return Tape(
        memory.records(arms, Card), hash_map(memory, names=n_arms, entries=arms), memory.ints(1)
    )


@kernel
def rewind(tape: Tape) -> None:
    """Forget all pulls."""
    clear_map(tape.number)
    tape.last[0] = 0
    tape.card[0].arm = _NOBODY


@kernel
def card_of(tape: Tape, world: World, key: int, arm: int) -> int:
    """Return the number of the arm's card, written at its first pull; -1 for no such arm."""
    number = tape.last[0]
    if tape.card[number].arm == arm:  # most often the leader once more
        return number
    if arm < 0 or arm >= world.n_arms:
        return -1
    at = find(tape.number, arm)
    if tape.number.cells[at] != 0:
        number = tape.number.cells[at + 1]
    else:
        number = tape.number.filled[0]
        insert(tape.number, at, arm, number)
        card = tape.card[number]
        card.arm = arm
        card.key = draw(draw(key, REWARDS), arm)
        card.mean = mean_of(world, arm, draw(key, MEANS))
        card.pulls = 0
        card.total = 0.0
    tape.last[0] = number
    return number


@kernel
def next_reward(tape: Tape, world: World, number: int) -> float:
    """Pull the arm of this card: return its next reward."""
    card = tape.card[number]
    reward = reward_of(world, card.mean, draw(card.key, card.pulls))
    card.pulls += 1
    card.total += reward
    return reward


@rare
def favourite(tape: Tape) -> int:
    """Return the arm pulled most often; among these that of largest mean, then at random."""
    best = 0
    for number in range(1, tape.number.filled[0]):
        card, rival = tape.card[number], tape.card[best]
        if card.pulls != rival.pulls:
            better = card.pulls > rival.pulls
        elif card.total != rival.total:
            better = card.total > rival.total
        else:
            better = card.key > rival.key
        if better:
            best = number
    return tape.card[best].arm
