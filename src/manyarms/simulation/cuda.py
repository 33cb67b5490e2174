"""Replications on a GPU: one thread plays one, with the loop that the CPU plays, too.

Nobody knows beforehand how many arms a replication will meet. So its tape has room for few, and so
have states that could need far more. If that is too little, the batch starts again with more room;
the numbers are the same.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.cuda import Slab, lane_bytes, lane_kernel, launch, new_stream, read
from manyarms.core.jit import compiling, kernel
from manyarms.core.memory import NO_ROOM, Ints, lanes, logarithms
from manyarms.errors import DeviceError
from manyarms.instances.tape import Tape
from manyarms.instances.world import World
from manyarms.protocol.plain_classes import plays_plainly
from manyarms.protocol.recommend import Scale
from manyarms.simulation.play import Recorder, Stretch, play
from manyarms.simulation.players import Player
from manyarms.simulation.sweep import Cell
from manyarms.simulation.workbench import Pairing, Played, Stopped, Workspace, no_such_arm, rows_of

# Measured on an H200, on which a policy's kernel takes some 160 registers.
THREADS = 384  # of a processor: more do not fit
_WIDEST = 8  # threads that share a lane's processor with nobody; more gain nothing

FIRST_ARMS = (1 << 10) - 1  # room on the first tape
_MORE_ARMS = 4  # each time it was too small, it grows by this factor
_MOST_LOGS = 1 << 22  # the CPU's logarithms of whole numbers; those of larger ones are the GPU's
_SPARE = 1 << 16  # bytes between arrays
_FIRST_PIECE = 256  # pulls between two looks at the clock; then as many as take
_PIECE_SECONDS = 0.1

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
        Stretch(stretch.key, numbers[lane], stretch.start, stretch.stop, stretch.scale),
        Recorder(
            recorder.times,
            recorder.regret[own],
            recorder.best_pulls[own],
            recorder.distinct_arms[own],
            recorder.recommended[own],
            recorder.recommended_mean[own],
            recorder.arms[own],
        ),
    )


def _compiled_in(path: str, number: float) -> bool:
    """Whether a number is a constant of the kernel: what it switches off then costs nothing."""
    if path.startswith("state."):
        return isinstance(number, bool) or number == 0
    return path in ("world.family", "world.model")


class Load:
    """How many lanes are played at the moment, in all batches."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._lanes = 0
        self._lock = threading.Lock()

    def add(self, lanes: int) -> None:
        """Add lanes that begin; a negative number stands for lanes that end."""
        with self._lock:
            self._lanes += lanes

    def width(self) -> int:
        """Return how many threads to start for each lane, a power of two.

        The others end at once: where there is room, lanes wait less for each other.
        """
        width = 1
        while width < _WIDEST and 2 * width * self._lanes <= self.threads:
            width *= 2
        return width


class Place:
    """A stream, and the memory of its batches, which run one after the other."""

    def __init__(self, size: int, load: Load) -> None:
        self.size, self.load = size, load
        self.stream = new_stream()
        self._slab: Slab | None = None

    def slab(self, size: int) -> Slab:
        """Return memory for a batch; the one before must be done."""
        if self._slab is None or self._slab.size < size:
            self._slab = None  # give it back first
            self._slab = Slab(max(size, min(self.size, 2 * size)), self.stream)
        self._slab.reset()
        return self._slab


class LaneBatch(NamedTuple):
    """Replications under way."""

    kernel: Any
    own: tuple[Any, ...]  # state, rewards and tape of each lane
    world: World
    numbers: Any  # which replication a lane has
    key: Any
    scale: Scale
    recorder: Recorder
    place: Place

    def play(self, start: int, stop: int) -> Any:
        """Play a stretch of pulls; return `distinct_arms`."""
        stretch = Stretch(self.key, 0, start, stop, self.scale)
        arguments = (*self.own, self.world, self.numbers, stretch, self.recorder)
        lanes, width = len(self.numbers), self.place.load.width()
        launch(self.kernel, lanes, width, self.place.stream, arguments, new=start == 0)
        return self.read(self.recorder.distinct_arms)

    def read(self, array: Any) -> Any:
        """Return a copy of an array, once all work is done."""
        return read(array, self.place.stream)


class Bench(Pairing):
    """Plays replications side by side; at first with room for few arms."""

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
                f"{self.label} is a plain Python class, which only the interpreter can run. Take "
                f'engine="threads".'
            )
        self.arms = arms  # several threads may raise it
        self._lanes: dict[int, Workspace] = {}

    def lane(self) -> Workspace:
        """Return the templates of a lane that meets at most `arms` arms."""
        arms = self.arms
        if arms not in self._lanes:
            self._lanes[arms] = self.new_workspace(lanes(arms))
        return self._lanes[arms]

    def compile(self, place: Place) -> None:
        """Compile the kernel: play no pull of one replication."""
        with compiling(f"{self.label} on {self._cell.instance.rewards!r} rewards for the GPU"):
            self.batch(np.zeros(1, np.int64), place, self.lane()).play(0, 0)

    def most_lanes(self, place: Place, lane: Workspace | None = None) -> int:
        """Return how many lanes like this one a batch can have."""
        lane = lane or self.lane()
        shared = self._bytes(0, lane)
        own = self._bytes(1, lane) - shared
        room = max(0, place.size - shared) // own
        return min(place.load.threads, room)

    def play(
        self,
        numbers: NDArray[np.int64],
        place: Place,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Played:
        """Play these replications, batch after batch, and ask `stopped` often."""
        begun = time.perf_counter()
        parts: list[Recorder] = []
        left = numbers
        while len(left) > 0:
            room, lane = self.arms, self.lane()
            most = self.most_lanes(place, lane)
            if most == 0:
                raise DeviceError(
                    f"{self.label} needs {self._bytes(1, lane) / 1e6:.0f} MB for one replication "
                    f"of this size, and the GPU has {place.size / 1e6:.0f} MB for a batch. Take "
                    f'engine="threads".'
                )
            part = self._play_batch(left[:most], place, lane, stopped, done)
            if part is None:
                self.arms = max(self.arms, _MORE_ARMS * (room + 1) - 1)
            else:
                parts.append(part)
                left = left[most:]
        arms = np.concatenate([part.arms for part in parts]) if self._recorded > 0 else None
        rows = np.concatenate([rows_of(part) for part in parts])
        return Played(rows, arms, time.perf_counter() - begun)

    def _play_batch(
        self,
        numbers: NDArray[np.int64],
        place: Place,
        lane: Workspace,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> Recorder | None:
        """Play replications side by side; return None if they meet too many arms."""
        batch, horizon = self.batch(numbers, place, lane), self._cell.horizon
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
                arm = batch.read(batch.recorder.recommended)[found < 0][0]
                raise no_such_arm(self.label, arm, self._cell.instance.n_arms)
            done((stop - start) * len(numbers))
            start = stop
            seconds = max(time.perf_counter() - begun, _PIECE_SECONDS / 16)
            piece = max(1, math.ceil(piece * _PIECE_SECONDS / seconds))
        return Recorder(*map(batch.read, batch.recorder))

    def _bytes(self, count: int, lane: Workspace) -> int:
        """Return how much memory `count` lanes take, with what they share."""
        own = lane_bytes(lane)
        own += 8 * (len(self._times) + 6 + self._recorded)
        shared = 8 * (min(self._cell.horizon, _MOST_LOGS) + len(self._times))
        shared += lane_bytes(self._world)
        return count * own + shared + _SPARE

    def batch(self, numbers: NDArray[np.int64], place: Place, lane: Workspace) -> LaneBatch:
        """Start these replications, one in each lane."""
        count = len(numbers)
        slab = place.slab(self._bytes(count, lane))
        own = lane._asdict()
        common = {"world": self._world, "numbers": None, "stretch": None, "recorder": None}
        world: World = slab.shared(self._world)
        logs = slab.copy(logarithms(min(self._cell.horizon, _MOST_LOGS) + 1))
        return LaneBatch(
            lane_kernel(play_lane, own, common, _compiled_in),
            tuple(slab.lanes(part, count, logs) for part in own.values()),
            world,
            slab.copy(numbers + self._cell.first_replication),
            slab.copy(self._key),
            self._scale,
            Recorder(
                slab.copy(self._times),
                slab.zeros((count, len(self._times) + 1), np.float64),
                slab.zeros((count,), np.int64),
                slab.zeros((count,), np.int64),
                slab.zeros((count,), np.int64),
                slab.zeros((count,), np.float64),
                slab.zeros((count, self._recorded), np.int64),
            ),
            place,
        )
