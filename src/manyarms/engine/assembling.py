"""The chunks of a finished run become its tables."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms import tables
from manyarms.core.files import replacing
from manyarms.specs import Chunk, Experiment, plan
from manyarms.specs.chunks import ChunkStore

__all__ = ["assemble"]


def assemble(experiment: Experiment, folder: Path, store: ChunkStore) -> float:
    """Turn the chunks into tables; return the computing time that they took."""
    keys = experiment.columns() | {"policy": "string", "replication": "int64"}
    counts = dict.fromkeys(("best_pulls", "distinct_arms", "recommended"), "int64")
    own = {
        tables.REGRET: {"time": "int64", "regret": "double"},
        tables.RUNS: {"regret": "double"} | counts,
    }
    seconds = 0.0
    with ExitStack() as stack:
        writers = []
        for name, columns in own.items():
            part = stack.enter_context(replacing(folder / name))
            writer = tables.TidyWriter(part, keys | columns, spec_hash=experiment.hash)
            writers.append(stack.enter_context(closing(writer)))
        for chunk in plan(experiment):
            stored = store.load(chunk)
            if stored is None:
                raise OSError(f"{chunk.file_name} was changed")
            row = experiment.row(chunk.cell, chunk.player)
            _add_rows(writers, chunk, stored[0], row | {"policy": chunk.player.label})
            seconds += stored[1]
    return seconds


def _add_rows(
    writers: list[tables.TidyWriter], chunk: Chunk, rows: NDArray[Any], row: dict[str, Any]
) -> None:
    regret, runs = writers
    times = np.array(chunk.cell.times)
    numbers = np.arange(chunk.first, chunk.first + len(rows))
    over_time = {
        "replication": np.repeat(numbers, len(times)),
        "time": np.tile(times, len(rows)),
        "regret": rows["regret"].ravel(),
    }
    regret.write(rows["regret"].size, row | over_time)
    final = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
    final |= {"replication": numbers, "regret": rows["regret"][:, -1].copy()}
    runs.write(len(rows), row | final)
