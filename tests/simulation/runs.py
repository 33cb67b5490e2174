"""A sweep of fifty chunks, and functions to stop it and to list its files."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyarms as ma
from manyarms.core.jit import jit_enabled
from manyarms.simulation import Sweep, cell, run
from manyarms.simulation.progress import ProgressCallback

# a chunk takes about 30 ms, compiled or not
HORIZON, REPLICATIONS, CHUNK = (20_000, 250, 1_000_000) if jit_enabled() else (100, 100, 2_000)


def made(horizon: int, replications: int, seed: int = 5) -> Sweep:
    """Return a sweep of two cells with five players each."""
    cells = []
    for alpha in (0.1, 0.3):
        policies = [ma.MOSSPlusPlus(), ma.MOSSPlusPlus(beta=0.7), ma.MOSS(), ma.EmpMOSSPlusPlus()]
        one = cell(
            [*policies, ma.MOSSOracle(alpha=alpha)],
            ma.instances.planted(n=500, alpha=alpha, horizon=horizon),
            horizon=horizon,
            replications=replications,
            checkpoints=3,
            parameters={"alpha": alpha},
        )
        cells.append(one)
    return Sweep("many chunks", tuple(cells), seed)


def small(seed: int = 5) -> Sweep:
    return made(60, 10, seed)


def large() -> Sweep:
    return made(HORIZON, REPLICATIONS)


def chunk_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def final(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in chunk_files(folder)}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the contents of all files in a folder."""
    paths = sorted(folder.rglob("*"))
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


class Killed(BaseException):
    """Simulates the end of a process."""


def stop_after(chunks: int) -> ProgressCallback:
    """Return a progress function that ends the run after at least `chunks` chunks."""

    def progress(done: int, total: int, note: str) -> None:
        if done >= 120 * chunks:
            raise Killed

    return progress


def stopped(sweep: Sweep, folder: Path, chunks: int) -> list[Path]:
    with pytest.raises(Killed):
        run(sweep, folder, workers=1, progress=stop_after(chunks))
    return chunk_files(folder)
