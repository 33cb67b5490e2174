"""Play chunks on a GPU: one thread plays one replication, with the same loop as on the CPU.

Chunks of one player that are queued at the same time become one batch, with as many lanes as fit
into the memory of the GPU. Two batches run at the same time, so that the GPU is busy while the host
reads one of them. Four were slower for large batches, and no faster for small ones.

The number of distinct arms of a replication is not known in advance. So its tape has memory for few
arms, and so have states that could need far more. If that is too little, the batch starts again
with more memory. The results are the same.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import compile_now, kernel
from manyarms.core.memory import NO_ROOM, Ints, lanes, logarithms
from manyarms.core.scale import Scale
from manyarms.errors import DeviceError
from manyarms.instances.tape import Tape
from manyarms.instances.world import World
from manyarms.protocol.plain_classes import plays_plainly
from manyarms.simulation.chunks import Chunk
from manyarms.simulation.executors import ChunkPlayer, Meter
from manyarms.simulation.gpu_compiler import (
    cuda,
    is_simulated,
    lane_kernel,
    launch,
    need_gpu,
)
from manyarms.simulation.gpu_memory import Load, StreamMemory, lane_bytes
from manyarms.simulation.play import Measured, Stretch, play
from manyarms.simulation.players import Player
from manyarms.simulation.runner import (
    COUNTS,
    Played,
    Runner,
    Stopped,
    Workspace,
    check_choices,
    rows_of,
)
from manyarms.simulation.sweep import Cell

# Measured on an H200, on which a policy's kernel takes some 160 registers.
_THREADS = 384  # per multiprocessor; more do not fit
_STREAMS = 2  # batches at a time
_SHARE = 0.85  # of the free memory
_COMPILING = 16  # compiling gets the memory of a batch divided by this

FIRST_ARMS = (1 << 10) - 1  # that fit on the first tape
_MORE_ARMS = 4  # the factor by which a tape grows that was too small
_MOST_LOGS = 1 << 22  # the CPU computes logarithms of integers up to this, the GPU larger ones
_SPARE = 1 << 16  # bytes between arrays
_FIRST_PIECE = 256  # pulls of the first piece
_PIECE_SECONDS = 0.1  # of the other pieces, about
_PAUSE = 0.01  # a batch starts after so many seconds without a new chunk
_MOST_QUEUED = 1 << 14  # chunks
_MOST_RUNNERS = 64

_arms: dict[tuple[str, int, int], int] = {}  # by `_kind_of`: for how many arms lanes needed memory
Queue: TypeAlias = list[tuple[Chunk, "Future[Played]"]]

kernel(play)


@kernel
def play_lane(
    lane: int,
    state: Any,
    rewards: Any,
    tape: Tape,
    world: World,
    numbers: Ints,
    stretch: Stretch,
    measured: Measured,
) -> None:
    """Play a stretch of this lane's replication."""
    if measured.distinct_arms[lane] < 0:  # an earlier stretch failed
        return
    own = slice(lane, lane + 1)
    play(
        state,
        rewards,
        world,
        tape,
        Stretch(stretch.key, numbers[lane], stretch.start, stretch.stop, stretch.scale),
        Measured(
            measured.times,
            measured.regret[own],
            measured.best_pulls[own],
            measured.first_best[own],
            measured.distinct_arms[own],
            measured.recommended[own],
            measured.recommended_mean[own],
            measured.arms[own],
        ),
    )


def _compiled_in(path: str, number: float) -> bool:
    """Whether a number is a constant of the kernel, so that code it disables costs nothing."""
    if path.startswith("state."):
        return isinstance(number, bool) or number == 0
    return path in ("world.family", "world.model")


class LaneBatch(NamedTuple):
    """A batch of replications."""

    kernel: Any
    own: tuple[Any, ...]  # state, rewards and tape of each lane
    world: World
    numbers: Any  # the replication of each lane
    key: Any
    scale: Scale
    measured: Measured
    memory: StreamMemory

    def play(self, start: int, stop: int) -> Any:
        """Play a stretch of pulls; return `distinct_arms`."""
        stretch = Stretch(self.key, 0, start, stop, self.scale)
        arguments = (*self.own, self.world, self.numbers, stretch, self.measured)
        lanes, width = len(self.numbers), self.memory.load.width()
        launch(self.kernel, lanes, width, self.memory.stream, arguments, new=start == 0)
        return self.memory.read(self.measured.distinct_arms)


class GpuRunner(Runner):
    """Plays replications in parallel, at first with memory for few arms."""

    def __init__(
        self,
        cell: Cell,
        player: Player,
        *,
        seed: int,
        record_arms: bool = False,
        arms: int = FIRST_ARMS,
    ) -> None:
        super().__init__(cell, player, seed=seed, record_arms=record_arms)
        if plays_plainly(player.policy):
            raise DeviceError(
                f"{self.label} is a plain Python class, which only the interpreter can run. Use "
                f'engine="threads".'
            )
        self.arms = arms  # several threads may increase it
        self._lanes: dict[int, Workspace] = {}

    def lane(self) -> Workspace:
        """Return the templates of a lane with at most `arms` distinct arms."""
        arms = self.arms
        if arms not in self._lanes:
            self._lanes[arms] = self.new_workspace(lanes(arms))
        return self._lanes[arms]

    def compile(self, memory: StreamMemory) -> None:
        """Compile the kernel by playing no pull of one replication."""
        batch = self.batch(np.zeros(1, np.int64), memory, self.lane())
        what = f"{self.label} on {self._cell.instance.rewards!r} rewards for the GPU"
        compile_now(what, batch.kernel, lambda: batch.play(0, 0))

    def most_lanes(self, memory: StreamMemory, lane: Workspace | None = None) -> int:
        """Return the largest number of such lanes in a batch."""
        lane = lane or self.lane()
        shared = self._bytes(0, lane)
        own = self._bytes(1, lane) - shared
        fitting = max(0, memory.size - shared) // own
        return min(memory.load.threads, fitting)

    def play(
        self,
        numbers: NDArray[np.int64],
        memory: StreamMemory,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Played:
        """Play these replications in batches; call `stopped` before each piece."""
        begun = time.perf_counter()
        parts: list[Measured] = []
        left = numbers
        while len(left) > 0:
            tried, lane = self.arms, self.lane()
            most = self.most_lanes(memory, lane)
            if most == 0:
                raise DeviceError(
                    f"{self.label} needs {self._bytes(1, lane) / 1e6:.0f} MB for one replication "
                    f"of this size, but the GPU has {memory.size / 1e6:.0f} MB for a batch. Use "
                    f'engine="threads".'
                )
            part = self._play_batch(left[:most], memory, lane, stopped, done)
            if part is None:
                self.arms = max(self.arms, _MORE_ARMS * (tried + 1) - 1)
            else:
                parts.append(part)
                left = left[most:]
        arms = np.concatenate([part.arms for part in parts]) if self._recorded > 0 else None
        rows = np.concatenate([rows_of(part) for part in parts])
        return Played(rows, arms, time.perf_counter() - begun)

    def _play_batch(
        self,
        numbers: NDArray[np.int64],
        memory: StreamMemory,
        lane: Workspace,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Measured | None:
        """Play replications in parallel; return None if there is too little memory for arms."""
        batch, horizon = self.batch(numbers, memory, lane), self._cell.horizon
        start, piece = 0, _FIRST_PIECE
        while start < horizon:
            if stopped():
                raise Stopped
            stop = min(start + piece, horizon)
            begun = time.perf_counter()
            found = batch.play(start, stop)
            if (found == NO_ROOM).any():
                done(-start * len(numbers))  # they will be played again
                return None
            if (found < 0).any():
                arms = memory.read(batch.measured.recommended)
                check_choices(self.label, found, arms, self._cell)
            done((stop - start) * len(numbers))
            start = stop
            seconds = max(time.perf_counter() - begun, _PIECE_SECONDS / 16)
            piece = max(1, math.ceil(piece * _PIECE_SECONDS / seconds))
        return Measured(*map(memory.read, batch.measured))

    def _bytes(self, count: int, lane: Workspace) -> int:
        """Return the memory of `count` lanes, and of what they share (bytes)."""
        own = lane_bytes(lane) + 8 * (len(self._times) + 7 + self._recorded)
        shared = 8 * (min(self._cell.horizon, _MOST_LOGS) + len(self._times))
        return count * own + shared + lane_bytes(self._world) + _SPARE

    def batch(self, numbers: NDArray[np.int64], memory: StreamMemory, lane: Workspace) -> LaneBatch:
        """Make a batch of these replications, one in each lane."""
        count = len(numbers)
        memory.begin(self._bytes(count, lane))
        own = lane._asdict()
        common = {"world": self._world, "numbers": None, "stretch": None, "measured": None}
        columns: Any = (
            memory.zeros((count, len(self._times) + 1), np.float64),
            *(memory.zeros((count,), np.int64) for _ in COUNTS),
            memory.zeros((count,), np.float64),
            memory.zeros((count, self._recorded), np.int64),
        )
        logs = memory.copy(logarithms(min(self._cell.horizon, _MOST_LOGS) + 1))
        return LaneBatch(
            lane_kernel(play_lane, own, common, _compiled_in),
            tuple(memory.lanes(part, count, logs) for part in own.values()),
            memory.shared(self._world),
            memory.copy(numbers + self._cell.first_replication),
            memory.copy(self._key),
            self._scale,
            Measured(memory.copy(self._times), *columns),
            memory,
        )


class Device(ChunkPlayer):
    """Plays chunks on a GPU, from threads of this process."""

    def __init__(self, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        need_gpu()
        self._seed, self._meter, self._record_arms = seed, meter, record_arms
        processors, free = 1, 1 << 24
        if not is_simulated():
            processors = int(cuda().get_current_device().MULTIPROCESSOR_COUNT)
            free = int(cuda().current_context().get_memory_info().free)
        load, share = Load(_THREADS * processors), int(_SHARE * free) // _STREAMS
        self._compiling = StreamMemory(share // _COMPILING, load)
        self._runners: dict[tuple[int, int], GpuRunner] = {}
        self._queues: dict[tuple[int, int], Queue] = {}
        self._latest = 0.0
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(StreamMemory(share, load),), daemon=True)
            for _ in range(_STREAMS)
        ]
        for thread in self._threads:
            thread.start()

    def capacity(self) -> int:
        """Return how many chunks may be queued; more of them fill batches better."""
        return _MOST_QUEUED

    def compile(self, chunk: Chunk) -> None:
        """Compile the policy's kernel."""
        self._meter.show(f"compiling {chunk.player.label}")
        self._runner(chunk).compile(self._compiling)

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Queue a chunk for the next batch of its player."""
        future: Future[Played] = Future()
        self._runner(chunk)
        with self._changed:
            queue = self._queues.setdefault((chunk.cell_number, chunk.player_number), [])
            queue.append((chunk, future))
            self._latest = time.monotonic()
            self._changed.notify()
        return future

    def close(self) -> None:
        """Stop the threads and wait until they end."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _runner(self, chunk: Chunk) -> GpuRunner:
        pair = chunk.cell_number, chunk.player_number
        if pair not in self._runners:
            if len(self._runners) >= _MOST_RUNNERS:
                with self._changed:
                    self._runners = {at: self._runners[at] for at in self._queues}
            self._runners[pair] = GpuRunner(
                chunk.cell,
                chunk.player,
                seed=self._seed,
                record_arms=self._record_arms,
                arms=_arms.get(_kind_of(chunk), FIRST_ARMS),
            )
        return self._runners[pair]

    def _work(self, memory: StreamMemory) -> None:
        while not self._stop.is_set():
            runner, taken = self._take(memory)
            if runner is not None:
                self._play(runner, taken, memory)

    def _take(self, memory: StreamMemory) -> tuple[GpuRunner | None, Queue]:
        """Return chunks of one player that fill a batch, or all of them if no more may follow."""
        with self._changed:
            growing = time.monotonic() < self._latest + _PAUSE
            for at, queue in self._queues.items():
                most = self._runners[at].most_lanes(memory)
                counts = np.cumsum([chunk.replications for chunk, _ in queue])
                if growing and counts[-1] < most and at == next(reversed(self._queues)):
                    continue
                taken = max(1, int(np.searchsorted(counts, most, side="right")))
                self._queues[at] = queue[taken:]
                if not self._queues[at]:
                    del self._queues[at]
                return self._runners[at], queue[:taken]
            self._changed.wait(_PAUSE)
            return None, []

    def _play(self, runner: GpuRunner, taken: Queue, memory: StreamMemory) -> None:
        chunks = [chunk for chunk, _ in taken]
        numbers = np.concatenate([np.arange(c.first, c.first + c.replications) for c in chunks])
        memory.load.add(len(numbers))
        try:
            played = runner.play(numbers, memory, self._stop.is_set, self._meter.add)
            _arms[_kind_of(chunks[0])] = runner.arms
        except BaseException as error:  # the main thread raises it
            for _, future in taken:
                future.set_exception(error)
            return
        finally:
            memory.load.add(-len(numbers))
        at = 0
        for chunk, future in taken:
            own = slice(at, at + chunk.replications)
            at += chunk.replications
            arms = None if played.arms is None else played.arms[own]
            seconds = played.seconds * chunk.replications / len(numbers)
            future.set_result(Played(played.rows[own], arms, seconds))


def _kind_of(chunk: Chunk) -> tuple[str, int, int]:
    """Return what mostly determines the number of distinct arms of a replication."""
    return str(chunk.player.policy), chunk.cell.instance.n_arms, chunk.cell.horizon
