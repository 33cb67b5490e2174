"""Play an experiment chunk by chunk, into a folder, so that it may be stopped at any moment.

A finished chunk is a file under `chunks/`; when all are there, they become tables, and go. Every
file is written as a whole or not at all. What a chunk holds follows from the spec alone, so a run
that was killed and resumed ends in the same bytes as one that was not.
"""

from __future__ import annotations

import json
import os
import queue
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from manyarms import tables
from manyarms.core.checks import check_int
from manyarms.core.files import PART, replace_file
from manyarms.engine.assembling import assemble
from manyarms.engine.crews import Crew, Played, Threads, check_engine
from manyarms.engine.progress import Progress, progress_for
from manyarms.engine.simulate import _processors, simulate
from manyarms.errors import ParameterError
from manyarms.specs import Chunk, Experiment, FolderError, plan
from manyarms.specs.chunks import ChunkStore
from manyarms.specs.folder import claimed
from manyarms.specs.provenance import now, provenance_of

__all__ = ["run_experiment"]


def run_experiment(
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    engine: Literal["threads", "dask"] = "threads",
    scheduler: str | None = None,
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
        The number of threads, or of processes of a local cluster; as many as there are processors
        unless given. Results do not depend on it.
    engine
        "threads" of this process, or "dask": the same chunks go to a Dask cluster (the extra
        `dask`), and the same bytes come back.
    scheduler
        The address of the cluster's scheduler, such as "tcp://10.0.0.5:8786". Unless given, "dask"
        starts a cluster of processes on this machine.
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
    check_engine(engine, scheduler, workers)
    workers = check_int("workers", _processors() if workers is None else workers, at_least=1)
    folder = Path(out)
    with claimed(folder, experiment.hash, marker=tables.PROVENANCE) as before:
        try:
            run = _Run(experiment, folder, progress_for(progress))
            run.complete(before, lambda: run.crew(engine, workers, scheduler))
        except FolderError:
            raise
        except OSError as error:
            raise FolderError(
                f"Cannot write to '{folder}': {error}. What is finished is kept: see to it, and "
                f"run the same again."
            ) from error
    return folder


class _Run:
    """A run in a folder that is ours."""

    def __init__(self, experiment: Experiment, folder: Path, report: Progress) -> None:
        self._played: queue.SimpleQueue[int] = queue.SimpleQueue()  # pulls, from any thread
        self._experiment = experiment
        self._folder = folder
        self._chunks = folder / "chunks"
        self._store = ChunkStore(self._chunks, experiment)
        self._report = report
        self._total = experiment.cost()
        self._done = 0
        self._warm: set[str] = set()

    def crew(self, engine: str, workers: int, scheduler: str | None) -> Crew:
        """Return those who play: a cluster is started, or connected to."""
        if engine == "threads":
            return Threads(workers, self._experiment.seed, self._played.put, self._keep)
        from manyarms.engine.dask_engine import Cluster

        return Cluster(seed=self._experiment.seed, workers=workers, scheduler=scheduler)

    def _keep(self, chunk: Chunk, played: Played) -> None:
        rows, seconds = played
        self._store.save(chunk, rows, seconds=seconds)

    def complete(self, before: dict[str, Any], crew: Callable[[], Crew]) -> None:
        """Do what is left to do."""
        if not self._is_finished(before):
            started, sessions = before.get("started", now()), before.get("sessions", 0) + 1
            provenance: dict[str, Any] = {"format": tables.FORMAT, "status": "running"}
            provenance |= provenance_of(self._experiment, started=started, sessions=sessions)
            self._note(provenance)  # first: from now on the folder is ours
            replace_file(self._folder / tables.SPEC, self._experiment.as_toml().encode())
            self._chunks.mkdir(exist_ok=True)
            self._play(crew)
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
        replace_file(self._folder / tables.PROVENANCE, text.encode())

    def _play(self, crew: Callable[[], Crew]) -> None:
        missing = []
        for chunk in plan(self._experiment):
            if self._store.load(chunk) is None:
                missing.append(chunk)
            else:
                self._done += chunk.pulls
        if missing:
            self._play_with(crew(), missing)

    def _play_with(self, crew: Crew, missing: list[Chunk]) -> None:
        pending: dict[Future[Played | None], Chunk] = {}
        try:
            for chunk in missing:
                if crew.compiles_here:
                    self._compile(chunk)
                pending[crew.submit(chunk)] = chunk
                while len(pending) >= crew.room():
                    self._settle(pending, crew.note())
            while pending:
                self._settle(pending, crew.note())
        finally:
            crew.close()

    def _compile(self, chunk: Chunk) -> None:
        """Compile in the main thread, before others would do so at the same time."""
        policy = chunk.player.policy
        if repr(policy) not in self._warm:
            self._warm.add(repr(policy))
            self._report(self._done, self._total, f"compiling {chunk.player.label}")
            simulate(policy, chunk.cell.instance, horizon=1, replications=1, progress=False)

    def _settle(self, pending: dict[Future[Played | None], Chunk], note: str) -> None:
        finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in finished:
            chunk, played = pending.pop(future), future.result()
            if played is not None:
                self._keep(chunk, played)
                self._done += chunk.pulls
        while not self._played.empty():
            self._done += self._played.get()
        self._report(self._done, self._total, note)

    def _assemble(self) -> float:
        return assemble(self._experiment, self._folder, self._store)
