"""An experiment of fifty chunks, a way to stop it, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from manyarms.core.jit import jit_enabled
from manyarms.simulation import Experiment, run
from manyarms.simulation.progress import ProgressCallback

__all__ = ["CHUNK", "FINAL", "HORIZON", "LARGE", "REPLICATIONS", "SPEC", "Killed"]
__all__ += ["final", "spec", "stop_after", "stopped", "tree"]

FINAL = ("regret.parquet", "runs.parquet", "spec.toml")
# a chunk takes some 30 ms, compiled or not
HORIZON, REPLICATIONS, CHUNK = (20_000, 250, 1_000_000) if jit_enabled() else (100, 100, 2_000)

POLICIES = ('"moss++"\nbeta = [0.5, 0.7]', '"moss"', '"empmoss++"', '"moss-oracle"')


def spec(horizon: int, replications: int, policies: Sequence[str] = POLICIES) -> str:
    return f"""
[experiment]
name = "many chunks"
horizon = {horizon}
replications = {replications}
seed = 5
checkpoints = 3

[instance]
family = "planted"
n = 500
alpha = [0.1, 0.3]
""" + "".join(f"\n[[policy]]\nname = {policy}\n" for policy in policies)


SPEC, LARGE = spec(60, 10), spec(HORIZON, REPLICATIONS)


def final(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FINAL}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return all that a folder holds."""
    paths = sorted(folder.rglob("*"))
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


class Killed(BaseException):
    """Stands for whatever ends a process."""


def stop_after(chunks: int) -> ProgressCallback:
    """Return a progress that ends the run when so many chunks are surely played."""

    def progress(done: int, total: int, note: str) -> None:
        if done >= 120 * chunks:
            raise Killed

    return progress


def stopped(experiment: Experiment, folder: Path, chunks: int) -> list[Path]:
    with pytest.raises(Killed):
        run(experiment, folder, workers=1, progress=stop_after(chunks))
    return sorted((folder / "chunks").glob("*.chunk"))
