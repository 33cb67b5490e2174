"""Draw from {0, …, n-1} uniformly without replacement; memory grows with the number of draws.

A Fisher–Yates shuffle of an array that exists only where it differs from 0, 1, 2, … Several
independent shuffles may share the memory; `which` selects one. n may grow between draws:
the new numbers join those not drawn yet.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Memory
from manyarms.core.rng import below


class Sampler(NamedTuple):
    """Shuffles of {0, …, n-1}; `drawn` counts the draws from each."""

    moved: HashMap  # place * shuffles + which -> the number that lies there instead of `place`
    drawn: Ints  # by shuffle
    shuffles: int
    n: Ints  # [n]


def sampler(memory: Memory, n: int, *, draws: int, shuffles: int = 1) -> Sampler:
    """Make a sampler with room for `draws` draws until `clear_sampler` is called."""
    size = memory.ints(1)
    size[0] = n
    moved = hash_map(memory, names=n * shuffles, entries=draws, values=n)
    return Sampler(moved, memory.ints(shuffles), shuffles, size)


@kernel
def clear_sampler(sampler: Sampler) -> None:
    """Put all numbers back."""
    clear_map(sampler.moved)
    for which in range(sampler.shuffles):
        sampler.drawn[which] = 0


@kernel
def pick_from(sampler: Sampler, start: int, word: int) -> int:
    """Draw one of the numbers that lie at place `start` or after it, from the only shuffle.

    The places before `start` that are not drawn yet move up by one: pass `start` + 1 next time.
    """
    place = start + below(word, max(1, sampler.n[0] - start))
    chosen = _number_at(sampler, place)
    _put(sampler, place, _number_at(sampler, start))
    _put(sampler, start, _number_at(sampler, sampler.drawn[0]))
    sampler.drawn[0] += 1
    return chosen


@kernel
def _number_at(sampler: Sampler, place: int) -> int:
    at = find(sampler.moved, place)
    return sampler.moved.cells[at + 1] if sampler.moved.cells[at] != 0 else place


@kernel
def _put(sampler: Sampler, place: int, number: int) -> None:
    at = find(sampler.moved, place)
    if sampler.moved.cells[at] != 0:
        sampler.moved.cells[at + 1] = number
    elif number != place:
        insert(sampler.moved, at, place, number)


@kernel
def pick(sampler: Sampler, which: int, word: int) -> int:
    """Draw one of the numbers that shuffle `which` has not drawn yet; `word` decides."""
    moved, n = sampler.moved, sampler.n[0]
    first = sampler.drawn[which]
    sampler.drawn[which] = first + 1
    place = min(first + below(word, max(1, n - first)), n - 1)
    head = find(moved, first * sampler.shuffles + which)
    number = moved.cells[head + 1] if moved.cells[head] != 0 else first
    if place == first:
        return number
    at = find(moved, place * sampler.shuffles + which)
    if moved.cells[at] == 0:
        insert(moved, at, place * sampler.shuffles + which, number)
        return place
    chosen = moved.cells[at + 1]
    moved.cells[at + 1] = number
    return chosen
