"""A map from integers to integers in memory of the entries made, cleared in the same time.

Open addressing with linear probing. A name and its value lie side by side, so that a look-up
touches one cache line. Where the names are few they address the table directly. Written by hand
because Numba's typed dict allocates, counts references and cannot be cleared in place.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Memory, power_of_two
from manyarms.core.rng import hashed

__all__ = ["Table", "clear_table", "find", "insert", "table"]


_NO_END = 1 << 62


class Table(NamedTuple):
    """Entry `at` is (name + 1, value) at places `at` and `at + 1`; name 0 means empty."""

    cells: Ints
    used: Ints  # the filled entries, in order of insertion
    filled: Ints  # [number of filled entries]
    entries: int  # the number of entries there is room for
    mask: int  # the number of places less one, a power of two less one
    direct: bool  # every name has a place of its own


def table(memory: Memory, *, names: int, entries: int) -> Table:
    """Make a map for names in [0, names) with room for `entries` entries."""
    entries = _NO_END if memory.endless else min(entries, names)
    length = power_of_two(entries + entries // 2 + 1)  # filled to two thirds at most
    direct = names <= length or memory.endless  # a dict is a table already
    return Table(
        memory.ints(2 * (names if direct else length)),
        memory.ints(entries),
        memory.ints(1),
        entries,
        2 * length - 1,
        direct,
    )


@kernel
def clear_table(table: Table) -> None:
    """Remove all entries."""
    for k in range(table.filled[0]):
        table.cells[table.used[k]] = 0
    table.filled[0] = 0


@kernel
def find(table: Table, name: int) -> int:
    """Return the entry of `name`, or the empty one where it belongs."""
    if table.direct:
        return 2 * name
    at = 2 * hashed(name, table.mask >> 1)
    while table.cells[at] != name + 1 and table.cells[at] != 0:
        at = (at + 2) & table.mask
    return at


@kernel
def insert(table: Table, at: int, name: int, value: int) -> None:
    """Fill the empty entry `at`, which `find` returned for `name`, if there is room.

    A full table would make `find` search for ever, so what a careless policy asks for beyond the
    room it made is not remembered.
    """
    if table.filled[0] >= table.entries:
        return
    table.cells[at] = name + 1
    table.cells[at + 1] = value
    table.used[table.filled[0]] = at
    table.filled[0] += 1
