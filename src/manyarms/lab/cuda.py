"""Chunks on a GPU: one thread plays one replication, with the loop that the CPU plays, too.

Chunks of one player that wait at the same time are played together, in as many lanes as the GPU's
memory has room for. Some batches run side by side, each in a stream of its own: where a study has
few replications of many players, one batch alone would leave most of the GPU idle.

How many arms a replication will meet is not known before. So its tape has room for few, and where
they were too few the batch begins anew with more: the same numbers, only later.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.cuda import (
    Slab,
    free_bytes,
    lane_bytes,
    lane_kernel,
    launch,
    need_gpu,
    new_stream,
    read,
)
from manyarms.core.jit import check_bodies, compiling, kernel
from manyarms.core.memory import LANES, Ints, logarithms
from manyarms.errors import DeviceError
from manyarms.instances._tape import NO_ROOM, Tape, tape
from manyarms.instances._world import World
from manyarms.lab.chunks import Chunk
from manyarms.lab.executors import Meter
from manyarms.lab.experiment import Cell, Player
from manyarms.lab.play import Recorder, Stretch, in_turn, late, play
from manyarms.lab.workbench import Played, Stopped, no_such_arm, rows_of
from manyarms.protocol.keys import run_key
from manyarms.protocol.policy import ask, reset, tell

__all__ = ["Device"]

STREAMS = 8  # batches at a time
MOST_LANES = 1 << 15  # of a batch
WIDTH = 1
_FIRST_ARMS, _MORE_ARMS = 1 << 10, 8  # room on the first tape, and how many times as much then
_SPARE = 1 << 16  # bytes between arrays
_SHARE = 0.9  # of the free memory
_FIRST_PIECE = 256  # pulls between two looks at the clock; then as many as take
_PIECE_SECONDS = 0.1
MOST_WAITING = 4096  # chunks
_PAUSE = 0.01  # seconds without a new chunk, and the batch begins

MOST_LOGS = 1 << 22  # logarithms of numbers from the CPU's table; of larger ones from the GPU
_NO_TEMPLATE = dict.fromkeys(("numbers", "stretch", "recorder"))

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
    recorder: Recorder,
) -> None:
    """Play a stretch of the replication that this lane has."""
    if recorder.distinct_arms[lane] < 0:  # it was given up
        return
    own = slice(lane, lane + 1)
    play(
        state,
        rewards,
        world,
        tape,
        Stretch(stretch.key, numbers[lane], stretch.start, stretch.stop),
        Recorder(
            recorder.times,
            recorder.regret[own],
            recorder.best_pulls[own],
            recorder.distinct_arms[own],
            recorder.most_pulled[own],
            recorder.arms[own],
        ),
    )


class Batch(NamedTuple):
    """Replications under way."""

    kernel: Any
    own: list[Any]
    world: World
    numbers: Any
    key: Any
    recorder: Recorder
    stream: Any

    def play(self, start: int, stop: int) -> NDArray[np.int64]:
        """Play a stretch of pulls; return what is known of the arms of each replication."""
        stretch = Stretch(self.key, 0, start, stop)
        lanes = len(self.numbers)
        arguments = (*self.own, self.world, self.numbers, stretch, self.recorder)
        launch(self.kernel, lanes, WIDTH, self.stream, *arguments)
        return self.read(self.recorder.distinct_arms)

    def read(self, array: Any) -> Any:
        """Return a copy of an array, once all work is done."""
        return read(array, self.stream)


def _compiled_in(path: str, number: float) -> bool:
    """Whether a kernel is made for this number: switches, and what most policies have none of."""
    if path.startswith("state."):
        return isinstance(number, bool) or number == 0
    return path in ("world.family", "world.model")


class Bench:
    """Plays replications of one policy in one cell, side by side."""

    def __init__(self, cell: Cell, player: Player, *, seed: int, record_arms: bool = False) -> None:
        self.label = player.policy.label
        self._cell = cell
        self._world = cell.instance.world(cell.horizon)
        self._width = cell.horizon if record_arms else 0
        self._key = np.array([run_key(seed)], np.uint64)
        informed = player.policy.with_best_mean(cell.instance.best_mean)
        arms, pulls = cell.instance.n_arms, cell.horizon
        self._state = informed.new_state(LANES, n_arms=arms, pulls=pulls)
        check_bodies(self._state, (reset, ask, tell))
        self._rewards: Any = in_turn()
        if cell.delay > 0 or cell.batch > 1:
            self._rewards = late(LANES, delay=cell.delay, batch=cell.batch, pulls=pulls)
        self._arms = min(arms, pulls, _FIRST_ARMS)
        self._kernel: Any = None

    def compile(self) -> None:
        """Compile the kernel: play no pull of one replication."""
        stream = new_stream()
        with compiling(f"{self.label} for the GPU"):
            self._start(Slab(2 * self._bytes(1), stream), np.zeros(1, np.int64), stream).play(0, 0)

    def most_lanes(self, size: int) -> int:
        """Return how many lanes there can be in so much memory."""
        return min(MOST_LANES, (size - self._bytes(0)) // (self._bytes(1) - self._bytes(0)))

    def play(
        self,
        numbers: NDArray[np.int64],
        place: Place,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Played:
        """Play these replications."""
        begun = time.perf_counter()
        parts, at = [], 0
        while at < len(numbers):
            lanes = self.most_lanes(place.size)
            if lanes == 0:
                raise DeviceError(
                    f"{self.label} needs {self._bytes(1) / 1e6:.0f} MB for a replication, and the "
                    f'GPU has {place.size / 1e6:.0f} MB for a batch. Take engine="threads".'
                )
            part = self._play_batch(numbers[at : at + lanes], place, stopped, done)
            if part is None:
                self._arms = min(_MORE_ARMS * self._arms, self._most_arms)
            else:
                parts.append(part)
                at += lanes
        arms = np.concatenate([part.arms for part in parts]) if self._width else None
        rows = np.concatenate([rows_of(part) for part in parts])
        return Played(rows, arms, time.perf_counter() - begun)

    def _play_batch(
        self,
        numbers: NDArray[np.int64],
        place: Place,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Recorder | None:
        """Play replications side by side; return None if their tapes have too little room."""
        batch = self._start(place.slab(self._bytes(len(numbers))), numbers, place.stream)
        start, piece = 0, _FIRST_PIECE
        while start < self._cell.horizon:
            if stopped():
                raise Stopped
            stop = min(start + piece, self._cell.horizon)
            begun = time.perf_counter()
            found = batch.play(start, stop)
            if (found == NO_ROOM).any():
                done(-start * len(numbers))
                return None
            if (found < 0).any():
                arm = batch.read(batch.recorder.most_pulled)[found < 0][0]
                raise no_such_arm(self.label, arm, self._cell.instance.n_arms)
            done((stop - start) * len(numbers))
            start = stop
            seconds = max(time.perf_counter() - begun, _PIECE_SECONDS / 16)
            piece = max(1, math.ceil(piece * _PIECE_SECONDS / seconds))
        return Recorder(*map(batch.read, batch.recorder))

    @property
    def _most_arms(self) -> int:
        return min(self._cell.instance.n_arms, self._cell.horizon)

    def _tape(self) -> Tape:
        return tape(LANES, self._cell.instance.n_arms, self._arms)

    def _bytes(self, lanes: int) -> int:
        """Return how much memory so many lanes take, with what they share."""
        own = lane_bytes((self._state, self._rewards, self._tape()))
        own += 8 * (len(self._cell.times) + 5 + self._width)
        shared = 8 * (min(self._cell.horizon, MOST_LOGS) + len(self._cell.times))
        shared += sum(part.nbytes for part in self._world if isinstance(part, np.ndarray))
        return lanes * own + shared + _SPARE

    def _start(self, slab: Slab, numbers: NDArray[np.int64], stream: Any) -> Batch:
        lanes = len(numbers)
        own = {"state": self._state, "rewards": self._rewards, "tape": self._tape()}
        recorder = Recorder(
            slab.copy(np.array(self._cell.times, np.int64)),
            slab.zeros((lanes, len(self._cell.times) + 1), np.float64),
            slab.zeros((lanes,), np.int64),
            slab.zeros((lanes,), np.int64),
            slab.zeros((lanes,), np.int64),
            slab.zeros((lanes, self._width), np.int64),
        )
        world = World(*(slab.copy(p) if isinstance(p, np.ndarray) else p for p in self._world))
        shared = slab.copy(logarithms(min(self._cell.horizon, MOST_LOGS) + 1))
        return Batch(
            lane_kernel(play_lane, own, {"world": self._world, **_NO_TEMPLATE}, _compiled_in),
            [slab.lanes(part, lanes, shared) for part in own.values()],
            world,
            slab.copy(numbers + self._cell.first_replication),
            slab.copy(self._key),
            recorder,
            stream,
        )


class Place:
    """A stream and the memory of its batches, taken when they need it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stream = new_stream()
        self._slab: Slab | None = None

    def slab(self, size: int) -> Slab:
        """Return memory for a batch; the one before is done."""
        if self._slab is None or self._slab.size < size:
            self._slab = None  # give it back first
            self._slab = Slab(min(self.size, 2 * size), self.stream)
        self._slab.reset()
        return self._slab


class Device:
    """Plays chunks on a GPU.

    Parameters
    ----------
    seed
        The run's seed.
    meter
        Counts pulls as they are made.
    record_arms
        Whether to keep the arm of every pull.
    """

    compiles_here = True

    def __init__(self, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        need_gpu()
        self._seed, self._meter, self._record_arms = seed, meter, record_arms
        self._share = int(_SHARE * free_bytes()) // STREAMS
        self._benches: dict[tuple[int, int], Bench] = {}
        self._waiting: dict[tuple[int, int], list[tuple[Chunk, Future[Played]]]] = {}
        self._latest = 0.0
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(STREAMS)]
        for thread in self._threads:
            thread.start()

    def capacity(self) -> int:
        """Return how many chunks may wait; the more, the fuller are batches."""
        return MOST_WAITING

    def compile(self, chunk: Chunk) -> None:
        """Compile the policy's kernel."""
        self._bench(chunk).compile()

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Let a chunk wait until a batch of its player's begins."""
        future: Future[Played] = Future()
        self._bench(chunk)
        with self._changed:
            self._waiting.setdefault((chunk.number, chunk.seat), []).append((chunk, future))
            self._latest = time.monotonic()
            self._changed.notify()
        return future

    def note(self) -> str:
        """Return nothing: there is nothing to say."""
        return ""

    def close(self) -> None:
        """Stop soon, and wait until everything has."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _bench(self, chunk: Chunk) -> Bench:
        place = (chunk.number, chunk.seat)
        if place not in self._benches:
            self._benches[place] = Bench(
                chunk.cell, chunk.player, seed=self._seed, record_arms=self._record_arms
            )
        return self._benches[place]

    def _work(self) -> None:
        place = Place(self._share)
        while not self._stop.is_set():
            batch = self._take()
            if batch:
                self._play(batch, place)

    def _take(self) -> list[tuple[Chunk, Future[Played]]]:
        """Return chunks of one player that fill a batch, or all there are if no more come."""
        with self._changed:
            for at, waiting in self._waiting.items():
                most = self._benches[at].most_lanes(self._share)
                counts = np.cumsum([chunk.replications for chunk, _ in waiting])
                still_growing = time.monotonic() < self._latest + _PAUSE
                if counts[-1] < most and still_growing and at == list(self._waiting)[-1]:
                    continue
                taken = max(1, int(np.searchsorted(counts, most, side="right")))
                self._waiting[at] = waiting[taken:]
                if not self._waiting[at]:
                    del self._waiting[at]
                return waiting[:taken]
            self._changed.wait(_PAUSE)
            return []

    def _play(self, batch: list[tuple[Chunk, Future[Played]]], place: Place) -> None:
        bench = self._bench(batch[0][0])
        ranges = [np.arange(one.first, one.first + one.replications) for one, _ in batch]
        try:
            played = bench.play(np.concatenate(ranges), place, self._stop.is_set, self._meter.add)
        except BaseException as error:  # the main thread raises it, whatever it is
            for _, future in batch:
                future.set_exception(error)
            return
        at = 0
        for chunk, future in batch:
            own = slice(at, at + chunk.replications)
            at += chunk.replications
            seconds = played.seconds * chunk.replications / len(played.rows)
            arms = None if played.arms is None else played.arms[own]
            future.set_result(Played(played.rows[own], arms, seconds))
