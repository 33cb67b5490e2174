"""Run a sweep and write its results to a folder, chunk by chunk, so that a run can be resumed.

Each finished chunk is a Parquet file, which is written atomically. Its contents are determined by
the sweep, so a resumed run writes the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from manyarms.core.checks import check_path, refusal
from manyarms.core.files import PART, FileLock, LockedError, fix_for, replace_file
from manyarms.core.optional import need_pyarrow
from manyarms.core.versions import version_of
from manyarms.errors import FolderError, OldResultsWarning
from manyarms.simulation import tables
from manyarms.simulation.chunk_files import ChunkFiles
from manyarms.simulation.chunks import Chunk, plan
from manyarms.simulation.executors import Meter, check_engine, chunk_player, play_chunks
from manyarms.simulation.progress import ProgressCallback, progress_for
from manyarms.simulation.results import cell_facts
from manyarms.simulation.runner import Played
from manyarms.simulation.sweep import Engine, Sweep

_LOCK = ".manyarms-lock"


def run(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    engine: Engine = "threads",
    progress: bool | ProgressCallback | None = None,
) -> tables.ResultsFolder:
    """Run a sweep and write its results to a folder, or resume a run that was stopped.

    After Ctrl-C, a kill or a power failure, the same call resumes the run. Only unfinished chunks
    are lost (less than half a minute each, or one replication). The files are the same bytes as
    those of an uninterrupted run.

    Parameters
    ----------
    sweep
        The sweep to run.
    folder
        A new or empty folder, or one with results of this sweep from the same engine.
    executor, workers, engine
        As for `simulate`. The files are the same bytes for any number of workers and any executor
        on processors of one kind.
    progress
        As for `simulate`.

    Returns
    -------
    ResultsFolder
        The results, as `read_results` reads them.

    Examples
    --------
    >>> import tempfile
    >>> import manyarms as ma
    >>> from manyarms.simulation import Sweep, cell, run
    >>> coins = [ma.instances.planted(n=100, m=m) for m in (5, 10)]
    >>> cells = [
    ...     cell(ma.MOSSPlusPlus(), c, horizon=50, replications=3, parameters={"m": c.n_best})
    ...     for c in coins
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(Sweep("small", tuple(cells)), folder)
    ...     [(each.parameters["m"], each.regret.shape) for each in results.cells]
    [(5, (1, 3, 50)), (10, (1, 3, 50))]
    """
    if not isinstance(sweep, Sweep):
        raise refusal("sweep", "a Sweep(name, cells)", sweep)
    need_pyarrow()  # fail now, not after hours of computing
    check_engine(engine, executor, workers)
    path = check_path("folder", folder)
    meter = Meter(sweep.pulls, progress_for(progress))
    with _claimed(path, sweep.hash, engine) as before:
        try:
            _Run(sweep, path, meter, engine).complete(before, executor, workers)
        except KeyboardInterrupt:
            sys.stderr.write(
                f"\nmanyarms: stopped. Finished replications are in '{path}'. Run the same sweep "
                f"again to resume.\n"
            )
            raise
        except FolderError:
            raise
        except OSError as error:
            raise FolderError(
                f"Cannot write to '{path}': {error}. Finished replications are kept. "
                f"{fix_for(error)}, and run the same sweep again."
            ) from error
    return tables.read_results(path)


class _Run:
    """A run in a folder that this process has locked."""

    def __init__(self, sweep: Sweep, folder: Path, meter: Meter, engine: Engine) -> None:
        self._sweep, self._engine = sweep, engine
        self._folder, self._meter = folder, meter
        self._files = ChunkFiles(folder, sweep)
        self._chunks = list(plan(sweep))
        self._seconds, self._pulls = 0.0, 0  # since this start

    def complete(
        self, before: dict[str, Any], executor: Executor | None, workers: int | None
    ) -> None:
        """Play the missing chunks, unless the run is finished."""
        if before.get("status") == "finished" and all(map(self._files.has, self._chunks)):
            self._compare_code()
            self._meter.add(self._sweep.pulls)
        else:
            provenance = _provenance(self._sweep) | {
                "engine": self._engine,
                "started": before.get("started", _now()),
                "sessions": before.get("sessions", 0) + 1,
            }
            self._write(provenance)  # first, so that the folder belongs to this sweep
            self._remove_others()
            self._play(executor, workers)
            # over all workers; if the run was resumed, estimated from the chunks played since then
            seconds = self._seconds * self._sweep.pulls / max(1, self._pulls)
            ended = {"status": "finished", "finished": _now(), "seconds": seconds}
            self._write(provenance | ended)
        for part in self._folder.glob(f"*{PART}"):
            part.unlink(missing_ok=True)
        self._meter.show()

    def _compare_code(self) -> None:
        """Warn if the code of a policy has changed since it was played."""
        files = self._files
        changed = {c.player.label for c in self._chunks if not files.has_same_code(c)}
        uncertain = self._uncertain()
        if changed - uncertain.keys():
            text = (
                f"The code of {', '.join(sorted(changed - uncertain.keys()))} has changed since "
                f"the run in '{self._folder}' was finished. Its results are those of the earlier "
                f"code. To simulate the new code, choose another folder."
            )
            warnings.warn(text, OldResultsWarning, stacklevel=4)
        for label, value in uncertain.items():
            text = (
                f"The code of {label} may have changed since the run in '{self._folder}' was "
                f"finished: it uses {value}, which cannot be compared with its earlier value. To "
                f"simulate the code again, choose another folder."
            )
            warnings.warn(text, OldResultsWarning, stacklevel=4)

    def _uncertain(self) -> dict[str, str]:
        """Return the labels of finished chunks whose code cannot be compared, and why."""
        pairs = [(chunk.player.label, self._files.uncertain(chunk)) for chunk in self._chunks]
        return {label: value for label, value in sorted(pairs) if value}

    def _remove_others(self) -> None:
        """Remove chunks of another version that split the sweep differently."""
        own = {chunk.file_name for chunk in self._chunks}
        for path in self._folder.glob("??????-????-??????????.parquet"):
            if path.name not in own:
                path.unlink()

    def _write(self, provenance: dict[str, Any]) -> None:
        text = json.dumps(provenance, indent=2) + "\n"
        replace_file(self._folder / tables.PROVENANCE, text.encode())

    def _play(self, executor: Executor | None, workers: int | None) -> None:
        for label, value in self._uncertain().items():
            text = (
                f"Finished replications of {label} are played again, because its code may have "
                f"changed: it uses {value}, which cannot be compared with its earlier value. Make "
                f"it a number, a tuple or an array, or create it in the constructor."
            )
            warnings.warn(text, OldResultsWarning, stacklevel=5)
        missing: list[Chunk] = []
        for chunk in self._chunks:
            if self._files.has_same_code(chunk):
                self._meter.add(chunk.pulls)
            else:
                missing.append(chunk)
        if missing:
            how: dict[str, Any] = {"seed": self._sweep.seed, "workers": workers}
            player = chunk_player(self._engine, executor, **how, meter=self._meter)
            play_chunks(missing, player, self._meter, self._keep)

    def _keep(self, chunk: Chunk, played: Played) -> None:
        self._files.save(chunk, played)
        self._seconds += played.seconds
        self._pulls += chunk.pulls


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _provenance(sweep: Sweep) -> dict[str, Any]:
    """Return the provenance of a run that starts or resumes."""
    return {
        "format": tables.FORMAT,
        "status": "running",
        "name": sweep.name,
        "hash": sweep.hash,
        "seed": sweep.seed,
        "objective": sweep.objective,
        "replications": sweep.replications,
        "pulls": sweep.pulls,
        "versions": {
            "python": platform.python_version(),
            "manyarms": sys.modules["manyarms"].__version__,  # importing it would break the layers
            **{name: version_of(name) for name in ("numpy", "numba", "pyarrow")},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "processors": os.cpu_count(),
        },
        "cells": [cell_facts(cell) for cell in sweep.cells],
    }


@contextlib.contextmanager
def _claimed(folder: Path, wanted: str, engine: Engine) -> Iterator[dict[str, Any]]:
    """Lock a folder that is empty or belongs to the sweep.

    Yields
    ------
    dict
        The provenance of the folder; empty if there is none yet.
    """
    try:
        _owned(folder, wanted, engine)  # before the lock file changes a wrong folder
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK, remove=True)
    except LockedError as error:
        raise FolderError(
            f"`folder` must not be in use, got '{folder}', which process {error.holder or '?'} is "
            f"using. Wait until it ends, or choose another folder."
        ) from error
    except FolderError:
        raise
    except OSError as error:
        raise FolderError(
            f"`folder` cannot be used: {error}. {fix_for(error)}, or choose another folder."
        ) from error
    try:
        yield _owned(folder, wanted, engine)  # again: another process may have written it
    finally:
        lock.release()


def _owned(folder: Path, wanted: str, engine: Engine) -> dict[str, Any]:
    """Return the folder's provenance, or raise if the folder cannot hold this sweep's results."""
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise FolderError(
            f"`folder` must be a folder, got the file '{folder}'. Choose another name."
        )
    try:
        found = json.loads((folder / tables.PROVENANCE).read_text(encoding="utf-8"))
        theirs, played = found["hash"], found["engine"]
        found |= {"sessions": int(found["sessions"])}
    except FileNotFoundError:
        if all(entry.name.endswith((_LOCK, PART)) for entry in folder.iterdir()):
            return {}
        theirs = None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        theirs = None
    if not isinstance(theirs, str):
        raise FolderError(
            f"`folder` must be empty or contain results of this sweep, got '{folder}', which "
            f"contains other files. Choose another folder."
        )
    if theirs != wanted:
        raise FolderError(
            f"`folder` must be a folder of this sweep (hash {wanted[:12]}), got '{folder}', "
            f"which belongs to another sweep ({theirs[:12]}). Choose another folder, or delete "
            f"this one."
        )
    if played != engine:
        raise FolderError(
            f"`folder` must have results of engine={engine!r}, got '{folder}', which has results "
            f"of {played!r}. A GPU may round a logarithm differently, so a folder has results of "
            f"one engine only. Choose another folder, or pass engine={played!r}."
        )
    return dict(found)
