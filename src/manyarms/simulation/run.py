"""Play an experiment chunk by chunk, into a folder, so that it may be stopped at any moment.

A finished chunk is a file under `chunks/`. When all chunks are finished, they are turned into
tables and deleted. Every file is written as a whole or not at all. The content of a chunk follows
from the experiment, so a run that was killed and resumed ends in the same bytes as one that was
not.
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
from manyarms.core.compile_cache import version_of
from manyarms.core.files import PART, FileLock, LockedError, fix_for, replace_file
from manyarms.core.optional import need_pyarrow
from manyarms.errors import FolderError, OldResultsWarning
from manyarms.simulation import tables
from manyarms.simulation.chunks import ChunkStore, codes_of, plan
from manyarms.simulation.executors import Meter, check_engine, chunk_player, play_chunks
from manyarms.simulation.experiment import Engine, Experiment
from manyarms.simulation.progress import ProgressCallback, progress_for
from manyarms.simulation.results import facts_of

_LOCK = ".manyarms-lock"


def run(
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    engine: Engine = "threads",
    executor: Executor | None = None,
    progress: bool | ProgressCallback | None = None,
) -> tables.ResultsFolder:
    """Play an experiment and write its tables into a folder, or resume a run that was stopped.

    A run may be stopped by Ctrl-C, a kill or a power cut. The same call resumes it. At most the
    chunks that were being played are lost (less than half a minute each, or one replication), and
    the tables are the same bytes.

    Parameters
    ----------
    experiment
        What to play.
    out
        A folder: new, empty, or one of this experiment that was played with the same engine.
    workers, engine, executor
        As for `simulate`. The tables are the same bytes for any number of workers and any executor
        on processors of one kind.
    progress
        As for `simulate`.

    Returns
    -------
    ResultsFolder
        What `read_results` reads from the folder.

    Examples
    --------
    >>> import tempfile
    >>> import manyarms as ma
    >>> from manyarms.simulation import Experiment, cell, run
    >>> coins = [ma.instances.planted(n=100, m=m) for m in (5, 10)]
    >>> cells = [
    ...     cell(ma.MOSSPlusPlus(), c, horizon=50, replications=3, parameters={"m": c.n_best})
    ...     for c in coins
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(Experiment("small", tuple(cells)), folder)
    ...     [(row["m"], row["policy"], row["replications"]) for row in results.summary_rows()]
    [(5, 'moss++', 3), (10, 'moss++', 3)]
    """
    if not isinstance(experiment, Experiment):
        raise refusal("experiment", "an Experiment(name, cells)", experiment)
    need_pyarrow()  # rather now than after hours
    check_engine(engine, executor, workers)
    folder = check_path("out", out)
    meter = Meter(experiment.pulls, progress_for(progress))
    with _claimed(folder, experiment.hash, engine) as before:
        try:
            _Run(experiment, folder, meter, engine).complete(before, executor, workers)
        except FolderError:
            raise
        except OSError as error:
            raise FolderError(
                f"Cannot write to '{folder}': {error}. What is finished is kept. {fix_for(error)}, "
                f"and run the same again."
            ) from error
    return tables.read_results(folder)


class _Run:
    """A run in a folder that is ours."""

    def __init__(self, experiment: Experiment, folder: Path, meter: Meter, engine: Engine) -> None:
        self._experiment, self._engine = experiment, engine
        self._folder = folder
        self._chunks = folder / "chunks"
        self._store = ChunkStore(self._chunks, experiment)
        self._meter = meter

    def complete(
        self, before: dict[str, Any], executor: Executor | None, workers: int | None
    ) -> None:
        """Play what is missing and write the tables, unless the run is finished."""
        finished = before.get("status") == "finished"
        if not finished or before.get("sha256") != self._checksums():
            started, sessions = before.get("started", _now()), before.get("sessions", 0) + 1
            provenance = _provenance(self._experiment) | {
                "engine": self._engine,
                "started": started,
                "sessions": sessions,
            }
            self._note(provenance)  # first: from now on the folder is ours
            self._chunks.mkdir(exist_ok=True)
            self._play(executor, workers)
            provenance["seconds"] = tables.assemble(self._experiment, self._folder, self._store)
            provenance |= {"sha256": self._checksums(), "status": "finished", "finished": _now()}
            self._note(provenance)
        else:
            self._compare_code(before)
            self._meter.add(self._experiment.pulls)
        for part in [*self._chunks.glob("*.chunk"), *self._folder.rglob(f"*{PART}")]:
            part.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._chunks.rmdir()
        self._meter.show()

    def _compare_code(self, before: dict[str, Any]) -> None:
        """Say so if a policy that was played has other code now."""
        then, now = before["code"], codes_of(self._experiment)
        players = (player for cell in self._experiment.cells for player in cell.players)
        labels = {repr(player.policy): player.label for player in players}
        changed = sorted(labels[one] for one in now if then.get(one, now[one]) != now[one])
        if changed:
            text = (
                f"The code of {', '.join(changed)} has changed since the run in '{self._folder}' "
                f"was finished. Its results are those of the earlier code. Choose another folder "
                f"to play the new one."
            )
            warnings.warn(text, OldResultsWarning, stacklevel=4)

    def _checksums(self) -> dict[str, str]:
        paths = (self._folder / name for name in (tables.REGRET, tables.RUNS))
        return {path.name: tables.sha256_of(path) if path.is_file() else "" for path in paths}

    def _note(self, provenance: dict[str, Any]) -> None:
        text = json.dumps(provenance, indent=2) + "\n"
        replace_file(self._folder / tables.PROVENANCE, text.encode())

    def _play(self, executor: Executor | None, workers: int | None) -> None:
        missing = []
        for chunk in plan(self._experiment):
            if self._store.load(chunk) is None:
                missing.append(chunk)
            else:
                self._meter.add(chunk.pulls)
        if missing:
            player = chunk_player(
                self._engine,
                executor,
                seed=self._experiment.seed,
                workers=workers,
                meter=self._meter,
            )
            play_chunks(missing, player, self._meter, self._store.save)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _provenance(experiment: Experiment) -> dict[str, Any]:
    """Return what is known about a run when it starts or resumes."""
    return {
        "format": tables.FORMAT,
        "status": "running",
        "name": experiment.name,
        "hash": experiment.hash,
        "seed": experiment.seed,
        "objective": experiment.objective,
        "replications": experiment.replications,
        "pulls": experiment.pulls,
        "versions": {
            "python": platform.python_version(),
            "manyarms": sys.modules["manyarms"].__version__,  # an import would go up
            **{name: version_of(name) for name in ("numpy", "numba", "pyarrow")},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "processors": os.cpu_count(),
        },
        "cells": [facts_of(cell) for cell in experiment.cells],
        "code": codes_of(experiment),
    }


@contextlib.contextmanager
def _claimed(folder: Path, wanted: str, engine: Engine) -> Iterator[dict[str, Any]]:
    """Hold a folder for one process, if it is empty or belongs to the experiment.

    Yields
    ------
    dict
        What its provenance says; nothing where there is none yet.
    """
    try:
        _owned(folder, wanted, engine)  # before the lock file is made: nothing is touched
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK, remove=True)
    except LockedError as error:
        raise FolderError(
            f"`out` must be free, got '{folder}', where process {error.holder or '?'} is at work. "
            f"Wait for it, or choose another folder."
        ) from error
    except FolderError:
        raise
    except OSError as error:
        raise FolderError(
            f"`out` cannot be used: {error}. {fix_for(error)}, or choose another folder."
        ) from error
    try:
        yield _owned(folder, wanted, engine)  # again: another process may have been here
    finally:
        lock.release()


def _owned(folder: Path, wanted: str, engine: Engine) -> dict[str, Any]:
    """Return the folder's provenance, or raise if the folder is not for this experiment."""
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise FolderError(f"`out` must be a folder, got the file '{folder}'. Choose another name.")
    try:
        found = json.loads((folder / tables.PROVENANCE).read_text(encoding="utf-8"))
        theirs, played = found["hash"], found["engine"]
        found |= {"sessions": int(found["sessions"]), "code": dict(found["code"])}
    except FileNotFoundError:
        if all(entry.name.endswith((_LOCK, PART)) for entry in folder.iterdir()):
            return {}
        theirs = None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        theirs = None
    if not isinstance(theirs, str):
        raise FolderError(
            f"`out` must be an empty folder or one of this experiment, got '{folder}', which "
            f"holds other files. Choose another folder."
        )
    if theirs != wanted:
        raise FolderError(
            f"`out` must be a folder of this experiment (hash {wanted[:12]}), got '{folder}', "
            f"which belongs to another one ({theirs[:12]}). Choose another folder, or delete that "
            f"one."
        )
    if played != engine:
        raise FolderError(
            f"`out` must be a folder that was played with engine={engine!r}, got '{folder}', which "
            f"was played with {played!r}: a GPU may round a logarithm differently, and one folder "
            f"has the results of one engine. Choose another folder, or pass engine={played!r}."
        )
    return dict(found)
