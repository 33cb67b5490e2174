"""The pieces of an experiment that are played, and stored, as a whole."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.compile_cache import digest, users_functions
from manyarms.core.files import replace_file
from manyarms.core.memory import SPARSE
from manyarms.protocol.policy import ask, reset, tell
from manyarms.specs.experiment import Experiment
from manyarms.specs.sweep import Cell, Player

__all__ = ["Chunk", "ChunkStore", "plan"]

CHUNK_PULLS = 20_000_000  # about half a second
_CHUNK_ROWS = 1 << 20
_MOST_CHUNKS = 100_000  # roughly: files in one folder
_MAGIC = b"manyarms chunk 1\n"


class Chunk(NamedTuple):
    """Some replications of one policy in one cell."""

    cell: Cell
    player: Player
    seat: int  # the player's number in the cell
    first: int  # replication
    replications: int

    @property
    def pulls(self) -> int:
        """The number of pulls."""
        return self.cell.horizon * self.replications

    @property
    def file_name(self) -> str:
        """Where the chunk is stored."""
        return f"{self.cell.number:06d}-{self.seat:04d}-{self.first:010d}.chunk"

    def new_rows(self) -> NDArray[Any]:
        """Return a row for each replication, to be filled in."""
        return np.zeros(self.replications, self._row)

    @property
    def _row(self) -> np.dtype[Any]:
        counts = [(name, "<i8") for name in ("best_pulls", "distinct_arms", "recommended")]
        return np.dtype([("regret", "<f8", (len(self.cell.times),)), *counts])


def plan(experiment: Experiment) -> Iterator[Chunk]:
    """Yield the chunks in the order of the tables.

    They follow from the experiment alone, so that a resumed run finds those of the one before,
    whatever the number of workers.

    >>> from manyarms.specs import experiment_from
    >>> experiment = experiment_from({
    ...     "experiment": {"name": "x", "horizon": 1_000_000, "replications": 50},
    ...     "instance": {"family": "planted", "n": 1000, "m": 10},
    ...     "policy": [{"name": "moss"}],
    ... })
    >>> [(chunk.first, chunk.replications) for chunk in plan(experiment)]
    [(0, 20), (20, 20), (40, 10)]
    """
    pulls = max(CHUNK_PULLS, experiment.cost() // _MOST_CHUNKS)
    for cell in experiment.cells():
        size = max(1, min(pulls // cell.horizon, _CHUNK_ROWS // len(cell.times)))
        for seat, player in enumerate(cell.players):
            for first in range(0, experiment.replications, size):
                count = min(size, experiment.replications - first)
                yield Chunk(cell, player, seat, first, count)


class ChunkStore:
    """The files of an experiment's finished chunks.

    A file is a line, a digest of all that the content follows from, the seconds it took, the
    rows, and a checksum. Whatever else lies under its name is not taken for it: files that are
    cut short, and those of another spec, of other data, or of other code.
    """

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self._folder = folder
        self._hash = experiment.hash
        self._worlds: dict[int, str] = {}  # by cell
        self._codes: dict[str, str] = {}  # by policy

    def save(self, chunk: Chunk, rows: NDArray[Any], *, seconds: float) -> None:
        """Store a finished chunk."""
        data = self._head(chunk) + struct.pack("<d", seconds) + rows.tobytes()
        replace_file(self._folder / chunk.file_name, data + hashlib.sha256(data).digest())

    def load(self, chunk: Chunk) -> tuple[NDArray[Any], float] | None:
        """Return a chunk's rows and seconds; None if it is not there, or not as it was stored."""
        try:
            stored = (self._folder / chunk.file_name).read_bytes()
        except OSError:
            return None
        data, checksum = stored[:-32], stored[-32:]
        head = self._head(chunk)
        if hashlib.sha256(data).digest() != checksum or not data.startswith(head):
            return None
        (seconds,) = struct.unpack_from("<d", data, len(head))
        return np.frombuffer(data, chunk.new_rows().dtype, offset=len(head) + 8), seconds

    def _head(self, chunk: Chunk) -> bytes:
        number, label = chunk.cell.number, chunk.player.label
        if number not in self._worlds:
            self._worlds[number] = _digest_of_world(chunk.cell)
        if label not in self._codes:
            self._codes[label] = _digest_of_code(chunk)
        parts = [self._hash, self._worlds[number], self._codes[label], number, label]
        parts += [chunk.first, chunk.replications]
        return _MAGIC + hashlib.sha256(json.dumps(parts).encode()).digest()


def _digest_of_world(cell: Cell) -> str:
    """Digest an instance: a contest's file may change while its name does not."""
    found = hashlib.sha256()
    for part in cell.instance.world(cell.horizon):
        array = np.asarray(part)
        found.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    return found.hexdigest()


def _digest_of_code(chunk: Chunk) -> str:
    """Digest our sources, and the user's if the policy is one: other code, other bits."""
    arms, pulls = chunk.cell.instance.n_arms, chunk.cell.horizon
    waiting = [chunk.player.policy.new_state(SPARSE, n_arms=arms, pulls=pulls)]
    bodies = []
    while waiting:
        state = waiting.pop()
        bodies += [f.bodies[type(state)] for f in (reset, ask, tell) if type(state) in f.bodies]
        waiting += [part for part in state if hasattr(part, "_fields")]
    return digest((), users_functions(bodies))
