"""Play an experiment chunk by chunk, into a folder, so that it may be stopped at any moment.

A finished chunk is a file under `chunks/`; when all are there, they become tables, and go. Every
file is written as a whole or not at all. What a chunk holds follows from the spec alone, so a run
that was killed and resumed ends in the same bytes as one that was not.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms import tables
from manyarms.core.checks import check_int
from manyarms.engine.progress import Progress, progress_for
from manyarms.engine.simulate import _processors, simulate
from manyarms.errors import ParameterError
from manyarms.specs import Chunk, Experiment, FolderError, plan
from manyarms.specs.chunks import ChunkStore
from manyarms.specs.folder import PART, claimed, replacing, write_whole
from manyarms.specs.provenance import now, provenance_of

__all__ = ["run_experiment"]


def run_experiment(
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: bool | Progress | None = None,
) -> Path:
    """Play an experiment and write its tables into a folder; or go on where a run stopped.

    Stopped by Ctrl-C, by a kill or by a power cut, and called again, it loses at most the chunks
    in flight (half a second each, or one replication), and ends in the same bytes.

    Parameters
    ----------
    experiment, out
        What to play, from `load_spec`; a folder: new, empty, or one of this experiment.
    workers
        The number of threads; as many as there are processors unless given. Results do not
        depend on it.
    progress
        As for `simulate`.

    Returns
    -------
    Path
        The folder; `read_results` reads it.

    Examples
    --------
    >>> import tempfile
    >>> from manyarms.specs import experiment_from
    >>> experiment = experiment_from({
    ...     "experiment": {"name": "small", "horizon": 50, "replications": 3},
    ...     "instance": {"family": "planted", "n": 100, "m": [5, 10]},
    ...     "policy": [{"name": "moss++"}],
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in run_experiment(experiment, folder).iterdir())
    ['provenance.json', 'regret.parquet', 'runs.parquet', 'spec.toml']
    """
    if not isinstance(experiment, Experiment):
        raise ParameterError(
            f"`experiment` must be an Experiment such as load_spec(path), got {experiment!r}."
        )
    tables.need_pyarrow()  # rather now than after hours
    workers = check_int("workers", _processors() if workers is None else workers, at_least=1)
    folder = Path(out)
    with claimed(folder, experiment.hash, marker=tables.PROVENANCE) as before:
        try:
            _Run(experiment, folder, workers, progress_for(progress)).complete(before)
        except FolderError:
            raise
        except OSError as error:
            raise FolderError(
                f"Cannot write to '{folder}': {error}. What is finished is kept: see to it, and "
                f"run the same again."
            ) from error
    return folder


class _Stopped(BaseException):
    """Ends a simulation in another thread."""


class _Run:
    """A run in a folder that is ours."""

    def __init__(
        self, experiment: Experiment, folder: Path, workers: int, report: Progress
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._chunks = folder / "chunks"
        self._store = ChunkStore(self._chunks, experiment)
        self._workers = workers
        self._report = report
        self._total = experiment.cost()
        self._done = 0
        self._played: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._warm: set[str] = set()

    def complete(self, before: dict[str, Any]) -> None:
        """Do what is left to do."""
        if not self._is_finished(before):
            started, sessions = before.get("started", now()), before.get("sessions", 0) + 1
            provenance: dict[str, Any] = {"format": tables.FORMAT, "status": "running"}
            provenance |= provenance_of(self._experiment, started=started, sessions=sessions)
            self._note(provenance)  # first: from now on the folder is ours
            write_whole(self._folder / tables.SPEC, self._experiment.as_toml().encode())
            self._chunks.mkdir(exist_ok=True)
            self._play()
            provenance["seconds"] = self._assemble()
            provenance |= {"sha256": self._checksums(), "status": "finished", "finished": now()}
            self._note(provenance)
        for part in [*self._chunks.glob("*.chunk"), *self._folder.rglob(f"*{PART}")]:
            part.unlink(missing_ok=True)
        with suppress(OSError):
            self._chunks.rmdir()
        self._report(self._total, self._total, "")

    def _is_finished(self, before: dict[str, Any]) -> bool:
        done = before.get("status") == "finished"
        return done and bool(before.get("sha256") == self._checksums())

    def _checksums(self) -> dict[str, str]:
        paths = (self._folder / name for name in (tables.REGRET, tables.RUNS, tables.SPEC))
        return {path.name: tables.sha256_of(path) if path.is_file() else "" for path in paths}

    def _note(self, provenance: dict[str, Any]) -> None:
        text = json.dumps(provenance, indent=2) + "\n"
        write_whole(self._folder / tables.PROVENANCE, text.encode())

    def _play(self) -> None:
        missing = []
        for chunk in plan(self._experiment):
            if self._store.load(chunk) is None:
                missing.append(chunk)
            else:
                self._done += chunk.pulls
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="manyarms-chunk")
        pending: set[Future[None]] = set()
        try:
            for chunk in missing:
                self._compile(chunk)
                pending.add(pool.submit(self._play_chunk, chunk))
                while len(pending) >= 2 * self._workers:
                    pending = self._settle(pending)
            while pending:
                pending = self._settle(pending)
        finally:
            # after Ctrl-C or an error: what is in flight stops soon, nothing else begins
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _compile(self, chunk: Chunk) -> None:
        """Compile in the main thread, before others would do so at the same time."""
        policy = chunk.player.policy
        if repr(policy) not in self._warm:
            self._warm.add(repr(policy))
            self._report(self._done, self._total, f"compiling {chunk.player.label}")
            simulate(policy, chunk.cell.instance, horizon=1, replications=1, progress=False)

    def _settle(self, pending: set[Future[None]]) -> set[Future[None]]:
        finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in finished:
            future.result()
        while not self._played.empty():
            self._done += self._played.get()
        self._report(self._done, self._total, "")
        return pending

    def _play_chunk(self, chunk: Chunk) -> None:
        seen = 0

        def watch(done: int, total: int, note: str) -> None:
            nonlocal seen
            if self._stop.is_set():
                raise _Stopped
            self._played.put(done - seen)
            seen = done

        result = simulate(
            chunk.player.policy,
            chunk.cell.instance,
            horizon=chunk.cell.horizon,
            replications=chunk.replications,
            first_replication=chunk.first,
            seed=self._experiment.seed,
            workers=1,
            checkpoints=chunk.cell.times,
            progress=watch,
        )
        rows = chunk.new_rows()
        for name in rows.dtype.names or ():
            rows[name] = getattr(result, name)[0]
        self._store.save(chunk, rows, seconds=sum(result.seconds.values()))

    def _assemble(self) -> float:
        """Turn the chunks into tables; return the computing time that they took."""
        keys = self._experiment.columns() | {"policy": "string", "replication": "int64"}
        counts = dict.fromkeys(("best_pulls", "distinct_arms", "recommended"), "int64")
        own = {
            tables.REGRET: {"time": "int64", "regret": "double"},
            tables.RUNS: {"regret": "double"} | counts,
        }
        seconds = 0.0
        with ExitStack() as stack:
            writers = []
            for name, columns in own.items():
                part = stack.enter_context(replacing(self._folder / name))
                writer = tables.TidyWriter(part, keys | columns, spec_hash=self._experiment.hash)
                writers.append(stack.enter_context(closing(writer)))
            for chunk in plan(self._experiment):
                stored = self._store.load(chunk)
                if stored is None:
                    raise OSError(f"{chunk.file_name} was changed")
                row = self._experiment.row(chunk.cell, chunk.player)
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
