"""The first of many places that passes, each with its own chance, from one random number.

Chances q are kept as weights -log(1 - q), so that the chance that none of some passes is e to the
minus their sum: the first to pass is the first at which the sums of weights exceed an exponential
random number. The sums stand in a Fenwick tree (1994): place i holds the sum of the i & -i weights
that end there. Sums are computed anew from their parts, so that rounding never piles up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints, Memory
from manyarms.core.rng import below, open_unit

_CERTAIN = 64.0  # the weight of a chance of 1: an exponential number made of a word is below 37


class Chances(NamedTuple):
    """Chances at places 1, 2, and so on."""

    weight: Floats
    sums: Floats
    size: Ints  # [places in use]


def chances(memory: Memory, places: int) -> Chances:
    """Make room for the chances of `places` places; call `clear_chances` before use."""
    return Chances(memory.floats(places + 1), memory.floats(places + 1), memory.ints(1))


@kernel
def clear_chances(chances: Chances) -> None:
    chances.size[0] = 0


@kernel
def add_chance(chances: Chances, chance: float) -> int:
    """Append a chance and return its place."""
    chances.size[0] += 1
    set_chance(chances, chances.size[0], chance)
    return chances.size[0]


@kernel
def set_chance(chances: Chances, place: int, chance: float) -> None:
    """Change a chance, and the sums it is part of."""
    chances.weight[place] = min(-math.log1p(-chance), _CERTAIN) if chance < 1.0 else _CERTAIN
    while place <= chances.size[0]:
        total = chances.weight[place]
        part = 1
        while part < place & -place:
            total += chances.sums[place - part]
            part *= 2
        chances.sums[place] = total
        place += place & -place


@kernel
def first_of(chances: Chances, word: int) -> int:
    """Return the first place that passes; 0 if none does."""
    return _beyond(chances, -math.log(open_unit(word)))


@rare
def first_again(chances: Chances, word: int) -> int:
    """Return the first place that passes, if all try again until one does.

    The exponential number is then one that is known to be below the sum of all weights.
    """
    total, place = 0.0, chances.size[0]
    while place > 0:
        total += chances.sums[place]
        place -= place & -place
    u = open_unit(word)
    place = _beyond(chances, -math.log1p(u * math.expm1(-total)))
    # where all chances are too small for a float, any place
    return place if place > 0 else 1 + below(word, chances.size[0])


@kernel
def _beyond(chances: Chances, number: float) -> int:
    """Return the first place at which the sum of all weights so far exceeds a number; 0 if none."""
    step = 1
    while 2 * step <= chances.size[0]:
        step *= 2
    place = 0
    while step > 0:
        if place + step <= chances.size[0] and chances.sums[place + step] <= number:
            place += step
            number -= chances.sums[place]
        step //= 2
    return place + 1 if place < chances.size[0] else 0
