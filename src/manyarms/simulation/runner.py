"""Run the replications of one policy in one cell on the CPU; `gpu.py` runs them on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import compile_now, compiled, is_cached, jit_enabled
from manyarms.core.memory import ARRAYS, BOUNDED, Memory
from manyarms.errors import ParameterError
from manyarms.instances.tape import Tape, tape
from manyarms.protocol.keys import run_key
from manyarms.protocol.plain_classes import plays_plainly
from manyarms.protocol.scales import scale_of
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.play import NOT_PULLED, InTurn, Late, Measured, Stretch, late, play
from manyarms.simulation.players import Player
from manyarms.simulation.sweep import Cell, informed_policy, new_state

COUNTS = ("best_pulls", "first_best", "distinct_arms", "recommended")  # of a replication
_TWICE, _SLOW_TWICE = 1 << 12, 1 << 9  # pulls to play twice: compiled, and in CPython
_FEWEST, _SHARE = 64, 50  # pulls to play twice: at least 64, and at most a fiftieth of all
PIECE, SLOW_PIECE = 1 << 20, 1 << 11  # pulls in about 30 ms: compiled, and in CPython


class Played(NamedTuple):
    """Measurements: a row for each replication, the arms if recorded, and the computing time."""

    rows: NDArray[Any]
    arms: NDArray[np.int64] | None
    seconds: float


class Stopped(BaseException):
    """Raised when a result is no longer wanted."""


class Workspace(NamedTuple):
    """The memory of one replication, which the next one reuses."""

    state: Any
    rewards: InTurn | Late
    tape: Tape


def blocks(count: int, size: int) -> Iterator[range]:
    """Split `count` replications into blocks of at most `size` (or of 1, if `size` is smaller).

    >>> list(blocks(5, 2))
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    size = max(1, size)
    return (range(first, min(first + size, count)) for first in range(0, count, size))


def row_type(times: int) -> np.dtype[Any]:
    """Return the NumPy type of a row of measurements, with regret at this number of times."""
    counts = [(name, "<i8") for name in COUNTS]
    return np.dtype([("regret", "<f8", (times,)), *counts, ("recommended_mean", "<f8")])


class Runner:
    """Runs replications of one policy in one cell."""

    def __init__(self, cell: Cell, player: Player, *, seed: int, record_arms: bool) -> None:
        self.label = str(player.policy)
        self._cell, self._policy = cell, player.policy
        self._world = cell.instance.world(cell.horizon)
        self._key: Any = np.array([run_key(seed)], np.uint64)
        self._times: Any = np.array(cell.times, np.int64)
        self._recorded = cell.horizon if record_arms else 0  # pulls whose arm is recorded
        rewards = cell.instance.rewards
        policy = informed_policy(player.policy, cell.instance)
        self._scale = scale_of(policy, rewards.reward_range, rewards.reward_sigma)

    def new_workspace(self, memory: Memory) -> Workspace:
        """Allocate memory for a replication with at most `memory.arms_met` distinct arms."""
        cell, n_arms, pulls = self._cell, self._cell.instance.n_arms, self._cell.horizon
        state = new_state(self._policy, cell.instance, pulls, memory)
        rewards: InTurn | Late = InTurn()
        if cell.delay > 0 or cell.batch > 1:
            rewards = late(memory, delay=cell.delay, batch=cell.batch, pulls=pulls)
        return Workspace(state, rewards, tape(memory, n_arms, min(memory.arms_met, pulls)))


class CpuRunner(Runner):
    """Runs replications on the CPU. Several threads may call `play` at the same time."""

    def __init__(self, cell: Cell, player: Player, *, seed: int, record_arms: bool = False) -> None:
        super().__init__(cell, player, seed=seed, record_arms=record_arms)
        self._compiles = jit_enabled() and not plays_plainly(player.policy)
        self._memory = ARRAYS if self._compiles else BOUNDED
        self._piece = PIECE if self._compiles else SLOW_PIECE
        if not self._compiles:
            self._key = self._key.tolist()  # CPython is faster with its own numbers
        self._idle: list[Workspace] = [self.new_workspace(self._memory)]
        self._loop: Any = play
        if self._compiles:
            state, rewards, _ = self._idle[0]
            self._classes = classes_in(state) | {type(rewards)} | cell.law_classes
            self._loop = compiled(play, *self._classes)

    @property
    def is_compiled(self) -> bool:
        """Whether machine code exists or is not needed."""
        return not self._compiles or is_cached(play, *self._classes)

    def compile(self) -> None:
        """Compile the loop now, so that threads do not wait for it."""
        if self._compiles:
            compile_now(
                f"{self.label} on {self._cell.instance.rewards!r} rewards",
                self._loop,
                lambda: self._call(self._idle[0], self._new_measured(0), 0, 0, 0),
            )

    def check_repeatable(self, replications: int) -> None:
        """Raise if the first replication is another one when it is played again.

        Only its first pulls are played. They share memory, which `reset` must clear.
        """
        horizon = self._cell.horizon
        pulls = min(horizon, _TWICE if self._compiles else _SLOW_TWICE)
        pulls = min(pulls, max(_FEWEST, horizon * replications // _SHARE))
        first, second = self._new_measured(1, pulls), self._new_measured(1, pulls)
        for measured in (first, second):
            self._call(self._idle[0], measured, 0, 0, pulls)
        arms, others = first.arms[0].tolist(), second.arms[0].tolist()
        different = [time for time in range(pulls) if arms[time] != others[time]]
        if different:
            time = different[0]
            raise ParameterError(
                f"{self.label} must choose the same arms if a replication is played again, got arm "
                f"{arms[time]} and then arm {others[time]} for pull {time + 1} of the first "
                f"replication. Clear everything that changes when a run starts, and draw all "
                f"random numbers from the `key` or `seed` of the run (docs/own_policy.md)."
            )

    def play(
        self, first: int, count: int, stopped: Callable[[], bool], done: Callable[[int], None]
    ) -> Played:
        """Play replications in blocks, or long ones in pieces; call `stopped` before each."""
        begun = time.perf_counter()
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self.new_workspace(self._memory)
        whole = self._new_measured(count)
        for block in blocks(count, self._piece // self._cell.horizon):
            columns: Any = (column[block.start : block.stop] for column in whole[1:])
            part = Measured(whole.times, *columns)
            self._play_block(workspace, part, first + block.start, stopped, done)
        self._idle.append(workspace)
        arms = whole.arms if self._recorded > 0 else None
        return Played(rows_of(whole), arms, time.perf_counter() - begun)

    def _play_block(
        self,
        workspace: Workspace,
        measured: Measured,
        first: int,
        stopped: Callable[[], bool],
        done: Callable[[int], None],
    ) -> None:
        horizon = self._cell.horizon
        for start in range(0, horizon, self._piece):
            if stopped():
                raise Stopped
            stop = min(start + self._piece, horizon)
            self._call(workspace, measured, first, start, stop)
            done((stop - start) * len(measured.best_pulls))

    def _call(
        self, workspace: Workspace, measured: Measured, first: int, start: int, stop: int
    ) -> None:
        number = self._cell.first_replication + first
        stretch = Stretch(self._key, number, start, stop, self._scale)
        self._loop(
            workspace.state, workspace.rewards, self._world, workspace.tape, stretch, measured
        )
        check_choices(self.label, measured.distinct_arms, measured.recommended, self._cell)

    def _new_measured(self, count: int, recorded: int | None = None) -> Measured:
        recorded = self._recorded if recorded is None else recorded
        regret, means = np.zeros((count, len(self._times) + 1)), np.zeros(count)
        counts = [np.zeros(count, np.int64) for _ in COUNTS]
        arms = np.zeros((count, recorded), np.int64)
        columns: Any = regret, *counts, means, arms
        return Measured(self._times, *columns)


def check_choices(label: str, distinct: Any, recommended: Any, cell: Cell) -> None:
    """Raise if a policy chose or recommended a wrong arm; `distinct` is below 0 then."""
    wrong = np.flatnonzero(np.asarray(distinct) < 0)
    if len(wrong) == 0:
        return
    arm, n_arms = recommended[wrong[0]], cell.instance.n_arms
    if distinct[wrong[0]] == NOT_PULLED:
        what = "which it never pulled" if 0 <= arm < n_arms else f"but there are {n_arms} arms"
        raise ParameterError(
            f"{label} recommended arm {arm}, {what}. Its `recommend` must return the number of an "
            f"arm with a reward, or -1 to leave the choice to the common rule."
        )
    raise ParameterError(
        f"{label} chose arm {arm}, but there are {n_arms} arms, numbered from 0. Its `ask` must "
        f"return (slot, arm), in this order."
    )


def rows_of(measured: Measured) -> NDArray[Any]:
    """Return the measurements as one row for each replication."""
    rows = np.zeros(len(measured.best_pulls), row_type(len(measured.times)))
    rows["regret"] = measured.regret[:, :-1]
    for name in (*COUNTS, "recommended_mean"):
        rows[name] = getattr(measured, name)
    return rows
