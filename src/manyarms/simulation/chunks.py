"""The parts of an experiment that are played, and stored, as a whole."""

from __future__ import annotations

import hashlib
import inspect
import json
import struct
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manyarms.core.compile_cache import digest, reached
from manyarms.core.files import replace_file
from manyarms.core.jit import bodies_of
from manyarms.core.memory import BOUNDED
from manyarms.protocol.plain_classes import PlainPolicy, plays_plainly
from manyarms.protocol.policy import Policy
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.experiment import Cell, Experiment, new_state
from manyarms.simulation.players import Player
from manyarms.simulation.workbench import Played, blocks, row_type

# What is lost with a chunk if it is killed: less than half a minute if a pull takes less than 6 µs,
# or 300 µs in plain Python, unless a single replication takes longer.
CHUNK_PULLS, PLAIN_PULLS = 5_000_000, 100_000
_CHUNK_ROWS = 1 << 20
_MOST_CHUNKS = 100_000  # roughly: files in one folder
_MAGIC = b"manyarms chunk 1\n"


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
        """The number of pulls."""
        return self.cell.horizon * self.replications

    @property
    def file_name(self) -> str:
        """Where the chunk is stored."""
        return f"{self.cell_number:06d}-{self.player_number:04d}-{self.first:010d}.chunk"


def plan(experiment: Experiment, *, parts: int = 1) -> Iterator[Chunk]:
    """Yield the chunks in the order of the tables, at least `parts` for each player if possible.

    By default they follow from the experiment alone, so that a resumed run finds those of the one
    before, whatever the number of workers.

    >>> import manyarms as ma
    >>> from manyarms.simulation import Experiment, cell
    >>> coins = ma.instances.planted(n=1000, m=10)
    >>> long = cell(ma.MOSS(), coins, horizon=250_000, replications=50)
    >>> [(chunk.first, chunk.replications) for chunk in plan(Experiment("x", (long,)))]
    [(0, 20), (20, 20), (40, 10)]
    """
    fewest = experiment.pulls // _MOST_CHUNKS
    for number, cell in enumerate(experiment.cells):
        for place, player in enumerate(cell.players):
            most = PLAIN_PULLS if plays_plainly(player.policy) else CHUNK_PULLS
            pulls = max(most, fewest)
            most = min(pulls // cell.horizon, _CHUNK_ROWS // len(cell.times))
            most = min(most, -(-player.replications // parts))
            for block in blocks(player.replications, most):
                yield Chunk(number, cell, place, player, block.start, len(block))


class ChunkStore:
    """The files of an experiment's finished chunks.

    A file is a line, a digest of all that the content follows from, the seconds it took, the
    rows, and a checksum. A file is ignored if it is cut short, or if it belongs to
    another experiment, other data or other code.
    """

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self._folder = folder
        self._hash = experiment.hash
        self._codes: dict[tuple[str, type], str] = {}  # by policy and reward law

    def save(self, chunk: Chunk, played: Played) -> None:
        """Store a finished chunk."""
        data = self._head(chunk) + struct.pack("<d", played.seconds) + played.rows.tobytes()
        replace_file(self._folder / chunk.file_name, data + hashlib.sha256(data).digest())

    def load(self, chunk: Chunk) -> Played | None:
        """Return what was played; None if it is not there, or not as it was stored."""
        try:
            stored = (self._folder / chunk.file_name).read_bytes()
        except OSError:
            return None
        data, checksum = stored[:-32], stored[-32:]
        head = self._head(chunk)
        if hashlib.sha256(data).digest() != checksum or not data.startswith(head):
            return None
        (seconds,) = struct.unpack_from("<d", data, len(head))
        rows = np.frombuffer(data, row_type(len(chunk.cell.times)), offset=len(head) + 8)
        return Played(rows, None, seconds)

    def _head(self, chunk: Chunk) -> bytes:
        game = repr(chunk.player.policy), type(chunk.cell.law)
        if game not in self._codes:
            self._codes[game] = digest_of_code(chunk)
        world, code, label = chunk.cell.world_digest, self._codes[game], chunk.player.label
        parts = [self._hash, world, code, chunk.cell_number, label, chunk.first, chunk.replications]
        return _MAGIC + hashlib.sha256(json.dumps(parts).encode()).digest()


def digest_of_code(chunk: Chunk) -> str:
    """Digest the code that plays a chunk, ours and the user's: other code, other bits."""
    policy = chunk.player.policy
    state = new_state(policy, chunk.cell.instance, chunk.cell.horizon, BOUNDED)
    bodies = bodies_of(*classes_in(state), type(chunk.cell.law))
    return digest(reached([*_makers(policy), *bodies]))


def codes_of(experiment: Experiment) -> dict[str, str]:
    """Return the digest of the code that plays each policy."""
    found: dict[str, str] = {}
    for number, cell in enumerate(experiment.cells):
        for place, player in enumerate(cell.players):
            if repr(player.policy) not in found:
                chunk = Chunk(number, cell, place, player, 0, 1)
                found[repr(player.policy)] = digest_of_code(chunk)
    return found


def _makers(policy: Policy) -> Iterator[Any]:
    """Yield the functions that make the states of a policy, and of the policies within."""
    yield inspect.unwrap(type(policy).new_state)
    if isinstance(policy, PlainPolicy):
        yield from filter(inspect.isfunction, vars(policy.make).values())
    for one in fields(policy):
        if isinstance(inner := getattr(policy, one.name), Policy):
            yield from _makers(inner)
