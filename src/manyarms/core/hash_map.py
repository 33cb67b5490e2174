"""A map from integers to integers. Its memory and the time to clear it grow with its entries.

Open addressing with linear probing. A name and its value lie side by side, so that a look-up
touches one cache line. If there are few names, each has a fixed place. Written by hand because
Numba's typed dict allocates, counts references and cannot be cleared in place.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, power_of_two, release
from manyarms.core.rng import hashed

_NO_END = 1 << 62


class HashMap(NamedTuple):
    """Entry `at` is (name + 1, value) at places `at` and `at + 1`; name 0 means empty."""

    cells: Ints
    used: Ints  # the filled entries, in order of insertion
    filled: Ints  # [number of filled entries]
    entries: int  # the number of entries there is room for
    mask: int  # the number of places less one, a power of two less one
    direct: bool  # every name has a place of its own


def hash_map(memory: Memory, *, names: int, entries: int, values: int | None = None) -> HashMap:
    """Make a map for names in [0, names), with room for `entries` entries.

    If all values are in [0, values), it may take less memory.
    """
    entries = _NO_END if memory.endless else min(entries, names)
    length = power_of_two(entries + entries // 2 + 1)  # filled to two thirds at most
    direct = names <= length or memory.endless  # endless memory is a dict, which hashes itself
    return HashMap(
        memory.ints(2 * (names if direct else length), most=values and max(names, values)),
        memory.ints(entries, most=2 * max(names, length)),
        memory.ints(1),
        entries,
        2 * length - 1,
        direct,
    )


@kernel
def clear_map(hash_map: HashMap) -> None:
    """Remove all entries."""
    for k in range(hash_map.filled[0]):
        at = hash_map.used[k]
        hash_map.cells[at] = 0
        hash_map.cells[at + 1] = 0
        release(hash_map.cells, at)
        release(hash_map.cells, at + 1)
    hash_map.filled[0] = 0


@kernel
def find(hash_map: HashMap, name: int) -> int:
    """Return the entry of `name`, or the empty one where it belongs."""
    if hash_map.direct:
        return 2 * name
    at = 2 * hashed(name, hash_map.mask >> 1)
    while hash_map.cells[at] != name + 1 and hash_map.cells[at] != 0:
        at = (at + 2) & hash_map.mask
    return at


@kernel
def insert(hash_map: HashMap, at: int, name: int, value: int) -> None:
    """Fill the empty entry `at`, which `find` returned for `name`, if there is room.

    In a full map `find` would not end, so entries beyond the number that a policy has asked for
    are not stored.
    """
    if hash_map.filled[0] >= hash_map.entries:
        return
    hash_map.cells[at] = name + 1
    hash_map.cells[at + 1] = value
    hash_map.used[hash_map.filled[0]] = at
    hash_map.filled[0] += 1


@kernel
def contains(hash_map: HashMap, name: int) -> bool:
    """Return whether the map has an entry of `name`."""
    return hash_map.filled[0] > 0 and hash_map.cells[find(hash_map, name)] != 0


@rare
def add_name(hash_map: HashMap, name: int) -> None:
    """Add a name without a value, for maps that are used as sets."""
    insert(hash_map, find(hash_map, name), name, 0)
