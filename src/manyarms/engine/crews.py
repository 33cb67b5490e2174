"""Who plays the chunks of an experiment: threads of this process, or a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from numpy.typing import NDArray

from manyarms.engine.progress import Progress
from manyarms.engine.simulate import simulate
from manyarms.errors import ParameterError
from manyarms.specs import Chunk

__all__ = ["Crew", "Played", "Threads", "check_engine", "play_chunk"]

Played = tuple[NDArray[Any], float]  # a chunk's rows, and the seconds they took


class Crew(Protocol):
    """Who plays the chunks."""

    compiles_here: bool  # whether what this process compiles serves those who play

    def room(self) -> int:
        """Return how many chunks may be under way or waiting."""

    def submit(self, chunk: Chunk) -> Future[Played | None]:
        """Begin a chunk; the future holds None where the chunk is stored already."""

    def note(self) -> str:
        """Return what to show beside the progress; mostly nothing."""

    def close(self) -> None:
        """Stop what is under way."""


def check_engine(engine: str, scheduler: str | None, workers: int | None) -> None:
    """Refuse engines that are not there, and options that do not go together."""
    if engine not in ("threads", "dask"):
        raise ParameterError(f'`engine` must be "threads" or "dask", got {engine!r}.')
    if engine == "dask":
        from manyarms.engine.dask_engine import need_dask

        need_dask()  # rather now than when the folder is made
    elif scheduler is not None:
        raise ParameterError(
            f'`scheduler` must be left out with the engine "threads", got {scheduler!r}. Did you '
            f'mean the engine "dask"?'
        )
    if scheduler is not None and workers is not None:
        raise ParameterError(
            f"`workers` must be left out with `scheduler`, got {workers!r}: that cluster has its "
            f"own."
        )


def play_chunk(chunk: Chunk, seed: int, watch: Progress) -> Played:
    """Play a chunk in this thread."""
    result = simulate(
        chunk.player.policy,
        chunk.cell.instance,
        horizon=chunk.cell.horizon,
        replications=chunk.replications,
        first_replication=chunk.first,
        seed=seed,
        workers=1,
        checkpoints=chunk.cell.times,
        progress=watch,
    )
    rows = chunk.new_rows()
    for name in rows.dtype.names or ():
        rows[name] = getattr(result, name)[0]
    return rows, sum(result.seconds.values())


class _Stopped(BaseException):
    """Ends a simulation in another thread."""


class Threads:
    """Plays chunks in threads of this process, which also store them.

    Parameters
    ----------
    workers, seed
        The number of threads; the run's seed.
    played, store
        Told of pulls as they are made, and of finished chunks.
    """

    compiles_here = True

    def __init__(
        self,
        workers: int,
        seed: int,
        played: Callable[[int], None],
        store: Callable[[Chunk, Played], None],
    ) -> None:
        self._seed = seed
        self._played = played
        self._store = store
        self._workers = workers
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="manyarms-chunk")

    def room(self) -> int:
        """Return how many chunks keep the threads busy."""
        return 2 * self._workers

    def submit(self, chunk: Chunk) -> Future[Played | None]:
        """Begin a chunk."""
        return self._pool.submit(self._play, chunk)

    def note(self) -> str:
        """Return nothing: there is nothing to say."""
        return ""

    def close(self) -> None:
        """After Ctrl-C or an error: what is in flight stops soon, nothing else begins."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _play(self, chunk: Chunk) -> None:
        seen = 0

        def watch(done: int, total: int, note: str) -> None:
            nonlocal seen
            if self._stop.is_set():
                raise _Stopped
            self._played(done - seen)
            seen = done

        self._store(chunk, play_chunk(chunk, self._seed, watch))
