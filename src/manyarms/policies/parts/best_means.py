"""empMOSS++'s choice of a set: the arms of highest empirical mean, among all n.

An arm never pulled counts as mean 0, and ties are broken uniformly at random. So three groups
follow each other: arms of positive mean, by their mean; arms of mean 0, failed and never pulled
alike, in random order; and, where rewards may be negative, the rest by their mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory
from manyarms.core.rng import Stream, below, next_word, stream
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey
from manyarms.policies.parts.moss_slots import Slots


class Chosen(NamedTuple):
    """The set of an iteration, as far as its members have slots."""

    slot: Ints
    size: Ints  # [number of slots]
    zeros: Ints  # while choosing: the slots of mean 0
    words: Stream


def chosen(memory: Memory, slots: int) -> Chosen:
    """Make room for a set of at most `slots` slots."""
    return Chosen(
        memory.ints(slots, most=slots),
        memory.ints(1),
        memory.ints(slots, most=slots),
        stream(memory),
    )


@kernel
def choose_slot(chosen: Chosen, slot: int) -> None:
    """Add a slot to the set."""
    chosen.slot[chosen.size[0]] = slot
    chosen.size[0] += 1


@rare
def best_means(chosen: Chosen, slots: Slots, arms: int, untouched: int) -> int:
    """Choose `arms` arms; return how many of them must be drawn from the untouched arms."""
    chosen.size[0] = 0
    zero = 0
    positive = 0
    negative = 0
    clear(slots.rank)
    for slot in range(slots.run[0].opened):
        mean = -math.inf  # mixture-arms, and arms of mean 0, take no part in the ranking
        if slots.slot[slot].member >= 0:
            pulls = slots.slot[slot].pulls  # none while the reward of the first is late
            mean = slots.slot[slot].total / pulls if pulls > 0 else 0.0
            if mean == 0.0:
                chosen.zeros[zero] = slot
                zero += 1
                mean = -math.inf
            elif mean > 0.0:
                positive += 1
            else:
                negative += 1
        enter(slots.rank, mean)
    _choose_leaders(chosen, slots.rank, min(arms, positive))
    fresh = _choose_zeros(chosen, arms - chosen.size[0], zero, untouched)
    _choose_leaders(chosen, slots.rank, min(arms - chosen.size[0] - fresh, negative))
    return fresh


@rare
def _choose_leaders(chosen: Chosen, rank: Tournament, count: int) -> None:
    for _ in range(count):
        slot = leader(rank, chosen.words)
        choose_slot(chosen, slot)
        rekey(rank, slot, -math.inf)


@rare
def _choose_zeros(chosen: Chosen, places: int, zero: int, untouched: int) -> int:
    """Fill places with random arms of mean 0; return how many of these are untouched."""
    fresh = 0
    for _ in range(min(places, zero + untouched)):
        at = below(next_word(chosen.words), zero + untouched - fresh)
        if at < zero:
            choose_slot(chosen, chosen.zeros[at])
            zero -= 1
            chosen.zeros[at] = chosen.zeros[zero]
        else:
            fresh += 1
    return fresh
