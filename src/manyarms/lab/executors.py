"""Who plays chunks: threads of this process, or a cluster; and the one loop that hands them out."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, get_args

from manyarms.core.checks import check_choice, check_int, refusal
from manyarms.lab.chunks import Chunk
from manyarms.lab.experiment import Engine, Experiment
from manyarms.lab.progress import ProgressCallback
from manyarms.lab.workbench import Played, Workbench
from manyarms.protocol.plain import plays_plainly

_PULLS_PER_SECOND = 2e7  # of one processor, roughly
_COMPILING = 20.0  # seconds for the GPU's kernel of a policy, at worst


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


class Executor(Protocol):
    """Who plays the chunks."""

    compiles_here: bool = True  # whether what this process compiles serves those who play

    def capacity(self) -> int:
        """Return how many chunks may be under way or waiting."""

    def takes_long(self, chunk: Chunk) -> bool:
        """Whether the compiler has to run, because there is no machine code yet."""

    def compile(self, chunk: Chunk) -> None:
        """Compile what the chunk needs, in the main thread."""

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Begin a chunk."""

    def note(self) -> str:
        """Return what to show beside the progress; mostly nothing."""
        return ""

    def close(self) -> None:
        """Stop what is under way."""


def play_chunks(
    chunks: Iterable[Chunk],
    executor: Executor,
    meter: Meter,
    keep: Callable[[Chunk, Played], None],
) -> None:
    """Play chunks and hand each one that is finished to `keep`, in this thread."""
    pending: dict[Future[Played], Chunk] = {}
    compiled: set[tuple[str, bool]] = set()

    def settle() -> None:
        finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in finished:
            keep(pending.pop(future), future.result())
        meter.show(executor.note())

    try:
        for chunk in chunks:
            # rewards in turn and late ones are two loops
            loop = repr(chunk.player.policy), chunk.cell.delay > 0 or chunk.cell.batch > 1
            if executor.compiles_here and loop not in compiled:
                compiled.add(loop)
                long = executor.takes_long(chunk)
                meter.show(f"compiling {chunk.player.label}" if long else executor.note())
                executor.compile(chunk)
            pending[executor.submit(chunk)] = chunk
            while len(pending) >= executor.capacity():
                settle()
        while pending:
            settle()
    finally:
        # after Ctrl-C or an error: what is in flight stops soon, nothing else begins
        executor.close()


def executor_for(
    engine: str,
    *,
    seed: int,
    workers: int | None,
    scheduler: str | None = None,
    meter: Meter,
    record_arms: bool = False,
) -> Executor:
    """Return who plays: threads, a GPU, or a cluster that is started, or connected to."""
    if engine == "dask":
        from manyarms.lab.dask import Cluster

        return Cluster(seed=seed, workers=processors(workers), scheduler=scheduler, meter=meter)
    if engine == "cuda":
        from manyarms.lab.device import Device

        return Device(seed, meter, record_arms=record_arms)
    return Threads(processors(workers), seed, meter, record_arms=record_arms)


def chosen_engine(engine: str, experiment: Experiment, workers: int | None) -> str:
    """Return who "auto" stands for: a GPU, if there is one and it saves more than it costs."""
    if engine != "auto":
        return engine
    policies = {repr(p.policy): p.policy for cell in experiment.cells for p in cell.players}
    seconds = experiment.pulls / (_PULLS_PER_SECOND * processors(workers))
    if seconds < _COMPILING * len(policies) or any(map(plays_plainly, policies.values())):
        return "threads"
    from manyarms.core.cuda import gpu_is_there

    return "cuda" if gpu_is_there() else "threads"


def check_engine(engine: str, scheduler: str | None, workers: int | None) -> None:
    """Refuse engines that are not there, and options that do not go together."""
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
        from manyarms.lab.dask import check_scheduler

        check_scheduler(scheduler)  # rather now than when the folder is made
    processors(workers)


def processors(workers: int | None) -> int:
    """Return how many threads or processes to use (default: all processors)."""
    if workers is not None:
        return check_int("workers", workers, at_least=1)
    if hasattr(os, "sched_getaffinity"):  # what this process may use, where that can be told
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads(Executor):
    """Plays chunks in threads of this process, and may keep the arm of every pull."""

    def __init__(self, workers: int, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        self._workers, self._seed, self._meter = workers, seed, meter
        self._record_arms = record_arms
        self._benches: dict[tuple[int, int], Workbench] = {}  # the latest, by cell and player
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="manyarms")

    def capacity(self) -> int:
        """Return how many chunks keep the threads busy."""
        return 2 * self._workers

    def takes_long(self, chunk: Chunk) -> bool:
        """Whether the compiler has to run."""
        return not self._bench(chunk).is_compiled

    def compile(self, chunk: Chunk) -> None:
        """Compile the policy's loop."""
        self._bench(chunk).compile()

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Begin a chunk."""
        bench = self._bench(chunk)
        return self._pool.submit(
            bench.play, chunk.first, chunk.replications, self._stop.is_set, self._meter.add
        )

    def close(self) -> None:
        """Stop soon, and wait until everything has."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _bench(self, chunk: Chunk) -> Workbench:
        """Return the workbench of a chunk's player; the memory of earlier players is let go."""
        place = (chunk.cell_number, chunk.player_number)
        if place not in self._benches:
            bench = Workbench(
                chunk.cell, chunk.player, seed=self._seed, record_arms=self._record_arms
            )
            self._benches = {place: bench}
        return self._benches[place]
