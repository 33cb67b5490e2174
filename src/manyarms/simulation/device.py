"""Chunks on a GPU: threads of this process play them, each with a batch of its own.

Chunks of one player that wait at the same time become one batch, with as many lanes as the GPU has
room for. Two batches run side by side, so that the GPU is busy while the host reads one of them;
four were slower where batches are large, and no faster where they are small.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TypeAlias

import numpy as np

from manyarms.core.cuda import free_bytes, need_gpu, processors
from manyarms.simulation.chunks import Chunk
from manyarms.simulation.cuda import FIRST_ARMS, THREADS, Bench, Load, Place
from manyarms.simulation.executors import ChunkPlayer, Meter
from manyarms.simulation.workbench import Played

_STREAMS = 2  # batches at a time
_MOST_QUEUED = 1 << 14  # chunks
_MOST_BENCHES = 64
_SHARE = 0.85  # of the free memory
_COMPILING = 16  # compiling has a place for one lane, and this part of the memory of a batch
_PAUSE = 0.01  # seconds without a new chunk, and the batch begins

_arms: dict[tuple[str, int, int], int] = {}  # by game: for how many arms lanes needed room
Queue: TypeAlias = list[tuple[Chunk, "Future[Played]"]]


def _game(chunk: Chunk) -> tuple[str, int, int]:
    """Return what mostly decides how many arms are met."""
    return chunk.player.policy.label, chunk.cell.instance.n_arms, chunk.cell.horizon


class Device(ChunkPlayer):
    """Plays chunks on a GPU, and may keep the arm of every pull."""

    def __init__(self, seed: int, meter: Meter, *, record_arms: bool = False) -> None:
        need_gpu()
        self._seed, self._meter, self._record_arms = seed, meter, record_arms
        load = Load(THREADS * processors())
        share = int(_SHARE * free_bytes()) // _STREAMS
        self._compiling = Place(share // _COMPILING, load)
        self._places = [Place(share, load) for _ in range(_STREAMS)]
        self._benches: dict[tuple[int, int], Bench] = {}
        self._queues: dict[tuple[int, int], Queue] = {}
        self._latest = 0.0
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(place,), daemon=True)
            for place in self._places
        ]
        for thread in self._threads:
            thread.start()

    def capacity(self) -> int:
        """Return how many chunks may wait; the more, the fuller are batches."""
        return _MOST_QUEUED

    def compile(self, chunk: Chunk) -> None:
        """Compile the policy's kernel."""
        self._meter.show(f"compiling {chunk.player.label}")
        self._bench(chunk).compile(self._compiling)

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Queue a chunk for the next batch of its player."""
        future: Future[Played] = Future()
        self._bench(chunk)
        with self._changed:
            self._queues.setdefault((chunk.cell_number, chunk.player_number), []).append(
                (chunk, future)
            )
            self._latest = time.monotonic()
            self._changed.notify()
        return future

    def close(self) -> None:
        """Stop the threads, and wait for them."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _bench(self, chunk: Chunk) -> Bench:
        place = (chunk.cell_number, chunk.player_number)
        if place not in self._benches:
            if len(self._benches) >= _MOST_BENCHES:
                with self._changed:
                    self._benches = {at: self._benches[at] for at in self._queues}
            self._benches[place] = Bench(
                chunk.cell,
                chunk.player,
                seed=self._seed,
                record_arms=self._record_arms,
                arms=_arms.get(_game(chunk), FIRST_ARMS),
            )
        return self._benches[place]

    def _work(self, place: Place) -> None:
        while not self._stop.is_set():
            bench, taken = self._take(place)
            if bench is not None:
                self._play(bench, taken, place)

    def _take(self, place: Place) -> tuple[Bench | None, Queue]:
        """Return chunks of one player that fill a batch, or all there are if no more come."""
        with self._changed:
            growing = time.monotonic() < self._latest + _PAUSE
            for at, queue in self._queues.items():
                most = self._benches[at].most_lanes(place)
                counts = np.cumsum([chunk.replications for chunk, _ in queue])
                if growing and counts[-1] < most and at == next(reversed(self._queues)):
                    continue
                taken = max(1, int(np.searchsorted(counts, most, side="right")))
                self._queues[at] = queue[taken:]
                if not self._queues[at]:
                    del self._queues[at]
                return self._benches[at], queue[:taken]
            self._changed.wait(_PAUSE)
            return None, []

    def _play(self, bench: Bench, taken: Queue, place: Place) -> None:
        chunks = [chunk for chunk, _ in taken]
        numbers = np.concatenate([np.arange(c.first, c.first + c.replications) for c in chunks])
        place.load.add(len(numbers))
        try:
            played = bench.play(numbers, place, self._stop.is_set, self._meter.add)
            _arms[_game(chunks[0])] = bench.arms
        except BaseException as error:  # whatever it is, the main thread raises it
            for _, future in taken:
                future.set_exception(error)
            return
        finally:
            place.load.add(-len(numbers))
        at = 0
        for chunk, future in taken:
            own = slice(at, at + chunk.replications)
            at += chunk.replications
            arms = None if played.arms is None else played.arms[own]
            seconds = played.seconds * chunk.replications / len(numbers)
            future.set_result(Played(played.rows[own], arms, seconds))
