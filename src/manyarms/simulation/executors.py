"""Who plays chunks: threads, a GPU, a cluster or any executor; and the loop that hands them out."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Protocol, get_args

from manyarms.core.checks import check_choice, check_int, refusal
from manyarms.errors import ClusterError
from manyarms.protocol.plain_classes import plays_plainly
from manyarms.simulation.chunks import Chunk, digest_of_code
from manyarms.simulation.experiment import Engine, Experiment
from manyarms.simulation.progress import ProgressCallback
from manyarms.simulation.workbench import Played, Workbench

PULLS_PER_SECOND = 2e7  # of one processor, roughly
_COMPILING = 20.0  # seconds for the GPU's kernel of a policy, at worst
CHUNKS_PER_WORKER = 3  # one is played, two are queued: results travel in the meantime


class Meter:
    """Counts pulls, which may be reported from any thread, and shows how far a run is."""

    def __init__(self, total: int, report: ProgressCallback) -> None:
        self._total, self._report = total, report
        self._done = 0
        self._played: queue.SimpleQueue[int] = queue.SimpleQueue()

    def add(self, pulls: int) -> None:
        """Count pulls, in any thread."""
        self._played.put(pulls)

    def show(self, note: str = "") -> None:
        """Show how far the run is; in the main thread."""
        while not self._played.empty():
            self._done += self._played.get()
        self._report(self._done, self._total, note)


class ChunkPlayer(Protocol):
    """Plays chunks, several at a time."""

    def capacity(self) -> int:
        """Return how many chunks to submit before one must be finished."""

    def compile(self, chunk: Chunk) -> None:
        """Compile what the chunk needs, in the main thread; say so if it takes long."""

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Begin a chunk."""

    def result(self, future: Future[Played], chunk: Chunk) -> Played:
        """Return what a finished chunk measured, or raise."""
        return future.result()

    def note(self) -> str:
        """Return what to show beside the progress; mostly nothing."""
        return ""

    def close(self) -> None:
        """Stop what is being played."""


def play_chunks(
    chunks: Iterable[Chunk],
    player: ChunkPlayer,
    meter: Meter,
    keep: Callable[[Chunk, Played], None],
) -> None:
    """Play chunks and pass each finished one to `keep`, in this thread."""
    pending: dict[Future[Played], Chunk] = {}
    compiled: set[tuple[str, bool]] = set()

    def settle() -> None:
        finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in finished:
            chunk = pending.pop(future)
            keep(chunk, player.result(future, chunk))
        meter.show(player.note())

    try:
        for chunk in chunks:
            # rewards in turn and late ones are two loops
            loop = repr(chunk.player.policy), chunk.cell.delay > 0 or chunk.cell.batch > 1
            if loop not in compiled:
                compiled.add(loop)
                meter.show(player.note())
                player.compile(chunk)
            pending[player.submit(chunk)] = chunk
            while len(pending) >= player.capacity():
                settle()
        while pending:
            settle()
    finally:
        # after Ctrl-C or an error: nothing else begins, and what is being played stops soon
        player.close()


def chunk_player(
    engine: str | Executor,
    *,
    seed: int,
    workers: int | None,
    scheduler: str | None = None,
    meter: Meter,
    record_arms: bool = False,
) -> ChunkPlayer:
    """Return who plays; a cluster is started, or connected to."""
    if isinstance(engine, Executor):
        return Pool(engine, processors(workers), seed, meter)
    if engine == "dask":
        from manyarms.simulation.dask import Cluster

        return Cluster(seed=seed, workers=processors(workers), scheduler=scheduler, meter=meter)
    if engine == "cuda":
        from manyarms.simulation.device import Device

        return Device(seed, meter, record_arms=record_arms)
    return Threads(processors(workers), seed, meter, record_arms=record_arms)


def chosen_engine(
    engine: str | Executor, experiment: Experiment, workers: int | None
) -> str | Executor:
    """Return what "auto" stands for: a GPU, if there is one and it saves more than it costs."""
    if engine != "auto":
        return engine
    policies = {repr(p.policy): p.policy for cell in experiment.cells for p in cell.players}
    seconds = experiment.pulls / (PULLS_PER_SECOND * processors(workers))
    if seconds < _COMPILING * len(policies) or any(map(plays_plainly, policies.values())):
        return "threads"
    from manyarms.core.cuda import gpu_is_there

    return "cuda" if gpu_is_there() else "threads"


def check_engine(engine: str | Executor, scheduler: str | None, workers: int | None) -> None:
    """Refuse engines that are not there, and options that do not go together."""
    if not isinstance(engine, Executor):
        check_choice("engine", engine, get_args(Engine))
    if engine != "dask" and scheduler is not None:
        rule, fix = f'left out with the engine "{engine}"', 'Did you mean the engine "dask"?'
        raise refusal("scheduler", rule, scheduler, fix)
    if engine == "cuda":
        from manyarms.core.cuda import need_gpu

        if workers is not None:
            raise refusal("workers", 'left out with the engine "cuda"', workers)
        need_gpu()
    if scheduler is not None and workers is not None:
        raise refusal("workers", "left out with `scheduler`", workers, "That cluster has its own.")
    if engine == "dask":
        from manyarms.simulation.dask import check_scheduler

        check_scheduler(scheduler)  # rather now than when the folder is made
    processors(workers)


def processors(workers: int | None) -> int:
    """Return how many threads or processes to use (default: all processors)."""
    if workers is not None:
        return check_int("workers", workers, at_least=1)
    if hasattr(os, "sched_getaffinity"):  # those that this process may use
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(bench: Workbench, label: str, meter: Meter) -> None:
    if not bench.is_compiled:
        meter.show(f"compiling {label}")
    bench.compile()


class Threads(ChunkPlayer):
    """Plays chunks in threads of this process, and may keep the arm of every pull."""

    def __init__(self, workers: int, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        self._workers, self._seed, self._meter = workers, seed, meter
        self._record_arms = record_arms
        self._benches: dict[tuple[int, int], Workbench] = {}  # the latest, by cell and player
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="manyarms")

    def capacity(self) -> int:
        return 2 * self._workers

    def compile(self, chunk: Chunk) -> None:
        _compile(self._bench(chunk), chunk.player.label, self._meter)

    def submit(self, chunk: Chunk) -> Future[Played]:
        bench = self._bench(chunk)
        return self._pool.submit(
            bench.play, chunk.first, chunk.replications, self._stop.is_set, self._meter.add
        )

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _bench(self, chunk: Chunk) -> Workbench:
        """Return the workbench of a chunk's player; the memory of earlier players is freed."""
        place = (chunk.cell_number, chunk.player_number)
        if place not in self._benches:
            bench = Workbench(
                chunk.cell, chunk.player, seed=self._seed, record_arms=self._record_arms
            )
            self._benches = {place: bench}
        return self._benches[place]


def play_alone(
    chunk: Chunk, seed: int, wanted: str, stopped: Callable[[], bool] = lambda: False
) -> Played:
    """Play a chunk in any process, unless its code is not the `wanted` one."""
    if (code := digest_of_code(chunk)) != wanted:
        raise ClusterError(
            f"All workers must have the same code as the process that started the run, or results "
            f"would differ. For {chunk.player.label} its digest is {wanted}, got {code} from a "
            f"worker with manyarms {sys.modules['manyarms'].__version__}. Install the same "
            f"versions there."
        )
    bench = Workbench(chunk.cell, chunk.player, seed=seed)
    return bench.play(chunk.first, chunk.replications, stopped, lambda pulls: None)


class Pool(ChunkPlayer):
    """Plays chunks with any executor of `concurrent.futures`, which its owner shuts down."""

    play: Callable[[Chunk, int, str], Played] = staticmethod(play_alone)

    def __init__(self, executor: Executor, workers: int, seed: int, meter: Meter) -> None:
        self._executor, self._workers = executor, workers
        self._seed, self._meter = seed, meter
        self._submitted: set[Future[Played]] = set()

    def capacity(self) -> int:
        return CHUNKS_PER_WORKER * self._workers

    def compile(self, chunk: Chunk) -> None:
        """Compile here: other processes on this machine find the code in the common cache."""
        bench = Workbench(chunk.cell, chunk.player, seed=self._seed)
        _compile(bench, chunk.player.label, self._meter)

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Send a chunk, without the other players of its cell."""
        alone = chunk._replace(cell=replace(chunk.cell, players=()))
        future = self._executor.submit(self.play, alone, self._seed, digest_of_code(chunk))
        self._submitted.add(future)
        return future

    def result(self, future: Future[Played], chunk: Chunk) -> Played:
        self._submitted.remove(future)
        played = future.result()
        self._meter.add(chunk.pulls)
        return played

    def close(self) -> None:
        """Cancel the chunks that have not begun."""
        for future in self._submitted:
            future.cancel()
