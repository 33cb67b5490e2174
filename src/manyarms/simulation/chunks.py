"""Split a sweep into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from manyarms.core.fingerprint import digest_of_files, fingerprint, is_ours
from manyarms.core.jit import bodies_of
from manyarms.core.memory import BOUNDED
from manyarms.core.versions import environment
from manyarms.protocol.plain_classes import PlainPolicy, plays_plainly
from manyarms.protocol.policy import Policy
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.players import Player
from manyarms.simulation.runner import blocks
from manyarms.simulation.sweep import Cell, Sweep, new_state, values_of

# A killed process loses its current chunks. Each takes less than half a minute if a pull takes less
# than 6 µs (in plain Python 300 µs), unless a single replication takes longer.
CHUNK_PULLS, PLAIN_PULLS = 5_000_000, 100_000
_CHUNK_ROWS = 1 << 20
_WITHOUT = " without "
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


class CodeDigests:
    """Digests of the code that plays chunks: of this package and of the user.

    They are computed once for each player of a cell, before it plays, because a policy may change
    the values that it uses.
    """

    def __init__(self) -> None:
        self._of_player: dict[tuple[int, int], str] = {}
        self._of_code: dict[tuple[Any, ...], str] = {}

    def of(self, chunk: Chunk) -> str:
        """Return the digest, and " without ..." if it leaves out what no process can compare."""
        player = chunk.cell_number, chunk.player_number
        if player not in self._of_player:
            code = code_of(chunk)
            if code not in self._of_code:
                self._of_code[code] = _digest(code)
            self._of_player[player] = self._of_code[code]
        return self._of_player[player]


def left_out(digest: str) -> str:
    """Return the value that a digest leaves out, so that equal digests do not mean equal code."""
    return digest.partition(_WITHOUT)[2]


def code_of(chunk: Chunk) -> tuple[Any, ...]:
    """Return the classes and functions that play a chunk."""
    policy = chunk.player.policy
    state = new_state(policy, chunk.cell.instance, chunk.cell.horizon, BOUNDED)
    classes = classes_in(state) | chunk.cell.law_classes
    ordered = sorted(classes, key=lambda one: f"{one.__module__}.{one.__qualname__}")
    return (*_classes_of(policy), *ordered, *bodies_of(classes))


def _digest(code: tuple[Any, ...]) -> str:
    found = fingerprint(one for one in code if not is_ours(one))
    names = [one.__qualname__ for one in code]
    text = environment(names, found.digest, digest_of_files(found.modules))[:16]
    return text + (f"{_WITHOUT}{found.unknown[0]}" if found.unknown else "")


def _classes_of(value: Any) -> Iterator[type]:
    """Yield the classes of a policy and of the policies among its parameters."""
    parts: Iterable[Any] = ()
    if isinstance(value, Policy):
        yield type(value)
        parts = values_of(value).values()
    elif isinstance(value, tuple | list | dict):
        parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, PlainPolicy):
        yield value.make
    for part in parts:
        yield from _classes_of(part)
