"""Split a sweep into chunks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from manyarms.core.compile_cache import digest, reached
from manyarms.core.jit import bodies_of
from manyarms.core.memory import BOUNDED
from manyarms.protocol.plain_classes import PlainPolicy, plays_plainly
from manyarms.protocol.policy import Policy
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.players import Player
from manyarms.simulation.runner import blocks
from manyarms.simulation.sweep import Cell, Sweep, new_state

# A killed process loses its current chunks. Each takes less than half a minute if a pull takes less
# than 6 µs (in plain Python 300 µs), unless a single replication takes longer.
CHUNK_PULLS, PLAIN_PULLS = 5_000_000, 100_000
_CHUNK_ROWS = 1 << 20
_MOST_CHUNKS = 100_000  # approximate limit of the files in one folder


class Chunk(NamedTuple):
    """Some replications of one player in one cell."""

    cell_number: int
    cell: Cell
    player_number: int  # in the cell
    player: Player
    first: int  # replication, from 0
    replications: int

    @property
    def pulls(self) -> int:
        """The number of pulls of its replications."""
        return self.cell.horizon * self.replications

    @property
    def file_name(self) -> str:
        """The name of the chunk's file."""
        return f"{self.cell_number:06d}-{self.player_number:04d}-{self.first:010d}.parquet"


def plan(sweep: Sweep, *, parts: int = 1) -> Iterator[Chunk]:
    """Yield the chunks in the order of the tables, at least `parts` for each player if possible.

    By default they depend on the sweep alone, so a resumed run finds the chunks of the stopped one
    for any number of workers.

    >>> import manyarms as ma
    >>> from manyarms.simulation import Sweep, cell
    >>> coins = ma.instances.planted(n=1000, m=10)
    >>> long = cell(ma.MOSS(), coins, horizon=250_000, replications=50)
    >>> [(chunk.first, chunk.replications) for chunk in plan(Sweep("x", (long,)))]
    [(0, 20), (20, 20), (40, 10)]
    """
    fewest = sweep.pulls // _MOST_CHUNKS
    for number, cell in enumerate(sweep.cells):
        for place, player in enumerate(cell.players):
            most = PLAIN_PULLS if plays_plainly(player.policy) else CHUNK_PULLS
            pulls = max(most, fewest)
            most = min(pulls // cell.horizon, _CHUNK_ROWS // len(cell.times))
            most = min(most, -(-player.replications // parts))
            for block in blocks(player.replications, most):
                yield Chunk(number, cell, place, player, block.start, len(block))


def digest_of_code(chunk: Chunk) -> str:
    """Return a digest of the code that plays a chunk: of this package and of the user."""
    policy = chunk.player.policy
    state = new_state(policy, chunk.cell.instance, chunk.cell.horizon, BOUNDED)
    bodies = bodies_of(*classes_in(state), *chunk.cell.law_classes)
    return digest(reached([*_makers(policy), *bodies]))


def _makers(policy: Policy) -> Iterator[Any]:
    """Yield the functions that make the states of a policy and of the policies inside it."""
    yield inspect.unwrap(type(policy).new_state)
    if isinstance(policy, PlainPolicy):
        yield from filter(inspect.isfunction, vars(policy.make).values())
    for one in fields(policy):
        if isinstance(inner := getattr(policy, one.name), Policy):
            yield from _makers(inner)
