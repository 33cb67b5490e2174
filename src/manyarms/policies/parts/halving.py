"""Sequential halving on brackets: sets of random arms that are halved, round by round.

A bracket of K arms has ⌈log2 K⌉ rounds (Karnin, Koren & Somekh 2013). In each, every arm that is
left is pulled equally often, so that all rounds have an equal share of the budget; then the better
half stays, ties falling at random. Brackets share the memory, one after the other.

Late rewards: a round ends when as many rewards were told as it has pulls. Until then its arms are
pulled on in turn, and the budget of later rounds is what is left.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records
from manyarms.core.rng import Stream, draw, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, sampler
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament
from manyarms.policies.parts.randomness import RANKING, draw_fresh, reset_order

_NOT_PULLED = -1e300


class HalvedArm(Record):
    """An arm of a bracket, in this run of it."""

    arm: int
    pulls: int
    total: float
    bracket: int


class Bracket(Record):
    """A set of arms, and where its run stands."""

    first: int  # its first slot
    size: int  # K
    left: int  # arms that were not dropped: the first places of `order` from `first` on
    rounds: int  # that are still to come, this one included; 0 once the run is over
    budget: int  # pulls of the run that are still to be asked for
    each: int  # pulls of each arm in this round
    asked: int  # pulls asked for in this round
    told: int  # rewards told in this round
    winner: int  # the slot that won the last run, or led the last round; -1 before
    mean: float  # its mean then


class Halving(NamedTuple):
    """The arms of all brackets, in the order in which they are pulled."""

    arm: Records[HalvedArm]
    order: Ints
    bracket: Records[Bracket]
    used: Ints  # [slots, brackets]
    sampler: Sampler
    words: Stream
    ties: Stream
    rank: Tournament


def halving(memory: Memory, n_arms: int, *, slots: int, brackets: int, largest: int) -> Halving:
    """Make room for brackets with `slots` slots in all, and at most `largest` in one."""
    return Halving(
        memory.records(slots, HalvedArm),
        memory.ints(slots),
        memory.records(brackets, Bracket),
        memory.ints(2),
        sampler(memory, n_arms, draws=min(n_arms, largest)),
        stream(memory),
        stream(memory),
        tournament(memory, largest),
    )


@kernel
def reset_halving(table: Halving, key: int) -> None:
    """Forget all brackets."""
    reset_order(table.sampler, table.words, key)
    restart(table.ties, draw(key, RANKING))
    table.used[0] = 0
    table.used[1] = 0


@rare
def open_bracket(table: Halving, size: int, budget: int) -> None:
    """Draw a bracket of `size` arms, each once, and begin its first run."""
    number = table.used[1]
    table.used[1] += 1
    bracket = table.bracket[number]
    bracket.first = table.used[0]
    bracket.size = size
    bracket.winner = -1
    table.used[0] += size
    clear_sampler(table.sampler)  # brackets are drawn independently of each other
    for slot in range(bracket.first, bracket.first + size):
        table.arm[slot].arm = draw_fresh(table.sampler, table.words)
        table.arm[slot].bracket = number
    start_run(table, number, budget)


@rare
def start_run(table: Halving, number: int, budget: int) -> None:
    """Begin a run of sequential halving, with no pulls of an earlier one."""
    bracket = table.bracket[number]
    bracket.left = bracket.size
    bracket.budget = budget
    bracket.rounds = rounds_of(bracket.size)
    for slot in range(bracket.first, bracket.first + bracket.size):
        table.order[slot] = slot
        table.arm[slot].pulls = 0
        table.arm[slot].total = 0.0
    _start_round(table, number)


@kernel
def rounds_of(size: int) -> int:
    """Return how often a bracket of this size is halved."""
    rounds = 1
    while (1 << rounds) < size:
        rounds += 1
    return rounds


@kernel
def _start_round(table: Halving, number: int) -> None:
    bracket = table.bracket[number]
    share = bracket.budget // bracket.rounds
    bracket.each = max(1, share // bracket.left)
    bracket.asked = 0
    bracket.told = 0


@kernel
def ask_bracket(table: Halving, number: int) -> tuple[int, int]:
    """Return the slot to pull next and its arm; after the run, those of the winner."""
    bracket = table.bracket[number]
    slot = table.order[bracket.first + bracket.asked % bracket.left]
    bracket.asked += 1
    bracket.budget -= 1
    return slot, arm_of(table, slot)


@kernel
def tell_bracket(table: Halving, slot: int, reward: float) -> None:
    """Credit a reward, and end the round if it was its last."""
    record = table.arm[slot]
    record.pulls += 1
    record.total += reward
    bracket = table.bracket[record.bracket]
    bracket.told += 1
    if bracket.rounds > 0:
        all_told = bracket.budget <= 0 and bracket.told >= bracket.asked
        if all_told or bracket.told >= bracket.each * bracket.left:
            _end_round(table, record.bracket)


@rare
def _end_round(table: Halving, number: int) -> None:
    """Keep the better half."""
    bracket = table.bracket[number]
    clear(table.rank)
    for place in range(bracket.left):
        record = table.arm[table.order[bracket.first + place]]
        enter(table.rank, record.total / record.pulls if record.pulls > 0 else _NOT_PULLED)
    kept = (bracket.left + 1) // 2
    for place in range(kept):
        best = leader(table.rank, table.ties)
        rekey(table.rank, best, -math.inf)
        chosen = table.order[bracket.first + best]
        table.order[bracket.first + best] = -1 - chosen
        if place == 0:
            bracket.winner = chosen
            bracket.mean = table.arm[chosen].total / max(1, table.arm[chosen].pulls)
    _keep_chosen(table, bracket)
    bracket.left = kept
    bracket.rounds -= 1
    if bracket.rounds > 0:
        _start_round(table, number)


@kernel
def _keep_chosen(table: Halving, bracket: Bracket) -> None:
    """Move the chosen slots, which are marked by numbers below 0, to the front."""
    write = bracket.first
    for place in range(bracket.first, bracket.first + bracket.left):
        if table.order[place] < 0:
            chosen = -1 - table.order[place]
            table.order[place] = table.order[write]
            table.order[write] = chosen
            write += 1


@kernel
def arm_of(table: Halving, slot: int) -> int:
    """Return the arm in a slot."""
    return table.arm[slot].arm
