"""Play chunks with threads, a GPU or any executor."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Protocol, get_args

from manyarms.core.checks import check_choice, check_int, refusal
from manyarms.core.fingerprint import is_ours
from manyarms.errors import ExecutorError
from manyarms.simulation.chunks import Chunk, CodeDigests, code_of
from manyarms.simulation.progress import ProgressCallback
from manyarms.simulation.runner import CpuRunner, Played
from manyarms.simulation.sweep import Engine

_CHUNKS_PER_WORKER = 3  # one running and two queued, so that workers never wait for a chunk
_checked: set[str] = set()  # digests of this process's own code


class Meter:
    """Counts the pulls that any thread adds, and reports progress."""

    def __init__(self, total: int, report: ProgressCallback) -> None:
        self._total, self._report = total, report
        self._done = 0
        self._played: queue.SimpleQueue[int] = queue.SimpleQueue()

    def add(self, pulls: int) -> None:
        """Add pulls; may be called in any thread."""
        self._played.put(pulls)

    def show(self, note: str = "") -> None:
        """Report progress; called in the main thread."""
        while not self._played.empty():
            self._done += self._played.get()
        self._report(self._done, self._total, note)


class ChunkPlayer(Protocol):
    """Plays several chunks at a time."""

    def capacity(self) -> int:
        """Return how many chunks may be pending."""

    def compile(self, chunk: Chunk) -> None:
        """Compile what the chunk needs, and report it; called in the main thread."""

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Queue a chunk."""

    def result(self, future: Future[Played], chunk: Chunk) -> Played:
        """Return the measurements of a finished chunk, or raise its error."""
        return future.result()

    def close(self) -> None:
        """Stop chunks that are not finished, as far as possible."""


def play_chunks(
    chunks: Iterable[Chunk],
    player: ChunkPlayer,
    meter: Meter,
    keep: Callable[[Chunk, Played], None],
) -> None:
    """Play chunks and pass each finished one to `keep`, in this thread."""
    pending: dict[Future[Played], Chunk] = {}
    compiled: set[tuple[int, int]] = set()

    def collect() -> None:
        finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in finished:
            chunk = pending.pop(future)
            keep(chunk, player.result(future, chunk))
        meter.show()

    try:
        for chunk in chunks:
            # Compiled code depends on the types of state, distribution and delay. The cell and the
            # player determine them. If the code exists, this call costs almost nothing.
            pair = chunk.cell_number, chunk.player_number
            if pair not in compiled:
                compiled.add(pair)
                meter.show()
                player.compile(chunk)
            pending[player.submit(chunk)] = chunk
            while len(pending) >= player.capacity():
                collect()
        while pending:
            collect()
    finally:
        # after Ctrl-C or an error, no more chunks begin and running ones stop soon
        player.close()


def chunk_player(
    engine: Engine,
    executor: Executor | None,
    *,
    seed: int,
    workers: int | None,
    meter: Meter,
    record_arms: bool = False,
) -> ChunkPlayer:
    """Return the player of chunks for an engine or executor."""
    if executor is not None:
        return Pool(executor, processors(workers), seed, meter, record_arms=record_arms)
    if engine == "cuda":
        from manyarms.simulation.gpu import Device

        return Device(seed, meter, record_arms=record_arms)
    return Threads(processors(workers), seed, meter, record_arms=record_arms)


def check_engine(engine: Any, executor: Any, workers: int | None) -> None:
    """Raise if the engine or executor cannot be used, or if options exclude each other."""
    check_choice("engine", engine, get_args(Engine))
    processors(workers)
    if executor is not None and not isinstance(executor, Executor):
        rule, fix = "an executor of concurrent.futures", "For Dask pass client.get_executor()."
        raise refusal("executor", rule, executor, fix)
    if engine != "cuda":
        return
    for name, value in (("executor", executor), ("workers", workers)):
        if value is not None:
            raise refusal(name, 'left out with engine="cuda"', value)
    from manyarms.simulation.gpu_compiler import need_gpu

    need_gpu()


def processors(workers: int | None) -> int:
    """Return the number of threads or processes to use (default: the number of processors)."""
    if workers is not None:
        return check_int("workers", workers, at_least=1)
    if hasattr(os, "sched_getaffinity"):  # only those that this process may use
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(runner: CpuRunner, chunk: Chunk, meter: Meter) -> None:
    if not runner.is_compiled:
        meter.show(f"compiling {chunk.player.label}")
    runner.compile()
    if not all(map(is_ours, code_of(chunk))):
        runner.check_repeatable(chunk.player.replications)


class Threads(ChunkPlayer):
    """Plays chunks in threads of this process."""

    def __init__(self, workers: int, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        self._workers, self._seed, self._meter = workers, seed, meter
        self._record_arms = record_arms
        self._runners: dict[tuple[int, int], CpuRunner] = {}  # only the latest, by cell and player
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="manyarms")

    def capacity(self) -> int:
        return 2 * self._workers

    def compile(self, chunk: Chunk) -> None:
        _compile(self._runner(chunk), chunk, self._meter)

    def submit(self, chunk: Chunk) -> Future[Played]:
        runner = self._runner(chunk)
        return self._pool.submit(
            runner.play, chunk.first, chunk.replications, self._stop.is_set, self._meter.add
        )

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _runner(self, chunk: Chunk) -> CpuRunner:
        """Return the runner of a chunk's player, and drop earlier ones to free their memory."""
        pair = chunk.cell_number, chunk.player_number
        if pair not in self._runners:
            runner = CpuRunner(
                chunk.cell, chunk.player, seed=self._seed, record_arms=self._record_arms
            )
            self._runners = {pair: runner}
        return self._runners[pair]


def play_alone(chunk: Chunk, seed: int, wanted: str, record_arms: bool) -> Played:
    """Play a chunk in any process, or raise if its code does not have the digest `wanted`."""
    if wanted not in _checked and (code := CodeDigests().of(chunk)) != wanted:
        raise ExecutorError(
            f"Workers must have the same code as the process that started the run, so that results "
            f"do not differ. For {chunk.player.label} its digest is {wanted}, got {code} from a "
            f"worker with manyarms {sys.modules['manyarms'].__version__}. Install the same "
            f"versions there."
        )
    _checked.add(wanted)
    runner = CpuRunner(chunk.cell, chunk.player, seed=seed, record_arms=record_arms)
    runner.compile()
    return runner.play(chunk.first, chunk.replications, lambda: False, lambda pulls: None)


class Pool(ChunkPlayer):
    """Plays chunks with an executor of `concurrent.futures`, and does not shut it down."""

    def __init__(
        self, executor: Executor, workers: int, seed: int, meter: Meter, *, record_arms: bool
    ) -> None:
        self._executor, self._workers = executor, workers
        self._seed, self._meter, self._record_arms = seed, meter, record_arms
        self._submitted: set[Future[Played]] = set()
        self._codes = CodeDigests()

    def capacity(self) -> int:
        return _CHUNKS_PER_WORKER * self._workers

    def compile(self, chunk: Chunk) -> None:
        """Compile in this process; others on this machine load the code from the cache."""
        _checked.add(self._codes.of(chunk))  # before it is played
        runner = CpuRunner(chunk.cell, chunk.player, seed=self._seed)
        _compile(runner, chunk, self._meter)

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Submit a chunk, without the other players of its cell."""
        alone = chunk._replace(cell=replace(chunk.cell, players=()))
        future = self._executor.submit(
            play_alone, alone, self._seed, self._codes.of(chunk), self._record_arms
        )
        self._submitted.add(future)
        return future

    def result(self, future: Future[Played], chunk: Chunk) -> Played:
        self._submitted.remove(future)
        played = future.result()
        self._meter.add(chunk.pulls)
        return played

    def close(self) -> None:
        """Cancel the chunks that have not started."""
        for future in self._submitted:
            future.cancel()
