"""The file of a chunk: a Parquet file with the hash of its sweep and a checksum.

It has a row for each replication. The columns are the parameters (`Sweep.columns`), policy,
replication, regret (at the horizon), best_pulls, first_best (the time of the first pull of a best
arm, 0 if there is none), distinct_arms, recommended, recommended_mean (the true mean of the
recommended arm), checkpoints and regret_at_checkpoints (lists). The same versions write the same
bytes on processors of one kind.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.files import replace_file
from manyarms.core.optional import need_pyarrow
from manyarms.simulation.chunks import Chunk, CodeDigests, left_out
from manyarms.simulation.runner import COUNTS, Played, row_type
from manyarms.simulation.sweep import Sweep

_SWEEP, _CODE, _SUM = (f"manyarms_{name}" for name in ("sweep", "code", "sum"))
_LISTS = ("checkpoints", "regret_at_checkpoints")
_NUMBERS = (*COUNTS, "recommended_mean")
# errors that reading a damaged file may raise
MALFORMED = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, MemoryError),
)
_LARGEST = 1e100  # of a regret or a mean, so that sums of squares are finite


class Stored(NamedTuple):
    """The contents of a chunk's file."""

    sweep: str  # the hash of the sweep
    code: str  # the digest of the code that played it
    times: NDArray[np.int64]
    rows: NDArray[Any]


class ChunkFiles:
    """The files of a sweep's finished chunks.

    A file contains the hash of its sweep, the digest of its code, and a checksum of its name and
    its table.
    """

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self._folder, self._sweep = folder, sweep
        self._codes = CodeDigests()

    def save(self, chunk: Chunk, played: Played) -> None:
        """Write the file of a chunk atomically."""
        arrow, rows = need_pyarrow(), played.rows
        keys = self._sweep.row(chunk.cell, chunk.player) | {"policy": chunk.player.label}
        types = self._sweep.columns | {"policy": "string"}
        first = chunk.cell.first_replication + chunk.first
        times = np.array(chunk.cell.times, np.int64)
        ends = np.arange(len(rows) + 1, dtype=np.int32) * len(times)
        columns = {
            **{
                name: arrow.repeat(arrow.scalar(keys[name], types[name]), len(rows))
                for name in types
            },
            "replication": first + np.arange(len(rows)),
            "regret": rows["regret"][:, -1],
            **{name: rows[name] for name in _NUMBERS},
            "checkpoints": arrow.ListArray.from_arrays(ends, np.tile(times, len(rows))),
            "regret_at_checkpoints": arrow.ListArray.from_arrays(ends, rows["regret"].ravel()),
        }
        buffer, table = io.BytesIO(), arrow.table(columns)
        about = {
            _SWEEP: self._sweep.hash,
            _CODE: self._codes.of(chunk),
            _SUM: _checksum(chunk.file_name, table),
        }
        with arrow.parquet.ParquetWriter(
            buffer,
            table.schema,
            version="2.6",  # explicit, because defaults may change
            data_page_version="1.0",
            compression="snappy",
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(about)
        replace_file(self._folder / chunk.file_name, buffer.getvalue())

    def has(self, chunk: Chunk) -> bool:
        """Return whether the chunk's file exists, is undamaged, and belongs to this sweep."""
        return self._stored(chunk) is not None

    def has_same_code(self, chunk: Chunk) -> bool:
        """Return whether `has` is true and the code that plays the chunk has not changed."""
        code = self._codes.of(chunk)  # also if there is no file: before the chunk is played
        stored = self._stored(chunk)
        return stored is not None and stored.code == code and not left_out(code)

    def uncertain(self, chunk: Chunk) -> str:
        """Return a value in the code of a stored chunk that may have changed; empty if none may."""
        value = left_out(self._codes.of(chunk))
        return value if value and self.has(chunk) else ""

    def _stored(self, chunk: Chunk) -> Stored | None:
        try:
            stored = read_chunk(self._folder / chunk.file_name)
        except MALFORMED:
            return None
        right = stored.sweep == self._sweep.hash and len(stored.rows) == chunk.replications
        return stored if right else None


def _checksum(name: str, table: Any) -> str:
    """Return the checksum of a file's name, columns and values."""
    found = hashlib.sha256(name.encode())
    for title, column in zip(table.column_names, table.columns, strict=True):
        found.update(title.encode())
        if str(column.type) in ("bool", "string"):
            found.update(repr(column.unique().to_pylist()).encode())
            continue
        values = column.combine_chunks()
        values = values.flatten() if title in _LISTS else values
        found.update(values.to_numpy(zero_copy_only=False).tobytes())
    return found.hexdigest()


def read_chunk(path: Path) -> Stored:
    """Read the file of a chunk, or raise one of `MALFORMED` if it is damaged."""
    parquet, how = need_pyarrow().parquet, {"pre_buffer": False, "page_checksum_verification": True}
    with path.open("rb") as handle, parquet.ParquetFile(handle, **how) as file:
        # no threads, because one that still runs when Python exits aborts the process
        table, about = file.read(use_threads=False), file.metadata.metadata
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    regret = columns["regret_at_checkpoints"].flatten().to_numpy()
    times = columns["checkpoints"][0].values.to_numpy()
    rows = np.zeros(table.num_rows, row_type(len(times)))
    rows["regret"] = regret.reshape(len(rows), len(times))
    for name in _NUMBERS:
        rows[name] = columns[name].to_numpy()
    if not all((np.abs(rows[name]) < _LARGEST).all() for name in ("regret", "recommended_mean")):
        raise ValueError("it has regrets or means that are not finite, or too large")
    sweep, code, checksum = (about[name.encode()].decode() for name in (_SWEEP, _CODE, _SUM))
    if checksum != _checksum(path.name, table):
        raise ValueError("its checksum is wrong")
    return Stored(sweep, code, times, rows)
