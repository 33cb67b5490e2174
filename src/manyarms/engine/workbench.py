"""All that playing one policy on one instance needs, ready for several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import check_bodies, compiled, compiling, jit_enabled
from manyarms.core.memory import ARRAYS, SPARSE
from manyarms.engine.play import play
from manyarms.engine.play_late import Ring, play_late, ring
from manyarms.errors import ParameterError
from manyarms.instances._tape import Tape, tape
from manyarms.instances.instance import Instance
from manyarms.protocol.keys import run_key
from manyarms.protocol.policy import Policy, ask, reset, tell
from manyarms.protocol.state_dump import classes_in

__all__ = ["Block", "Late", "Workbench"]

_PIECE = 1 << 20  # pulls between two looks at the clock: some 30 ms
_SLOW_PIECE = 1 << 11  # the same for CPython


class Block(NamedTuple):
    """Replications that one call plays."""

    first: int
    end: int


class Workspace(NamedTuple):
    """The memory of one thread, used for one replication after the other."""

    state: Any
    tape: Tape
    ring: Ring | None  # where rewards come late


class Late(NamedTuple):
    """How late rewards come: after so many further pulls, or in batches of so many."""

    delay: int = 0
    batch: int = 1


class Workbench:
    """Plays blocks of replications of one policy, and keeps what they measure."""

    def __init__(
        self,
        policy: Policy,
        instance: Instance,
        *,
        times: NDArray[np.int64],
        first: int,
        replications: int,
        seed: int,
        record_arms: bool,
        late: Late | None = None,
    ) -> None:
        self.policy = policy
        self._informed = policy.with_best_mean(instance.best_mean)
        self.horizon = int(times[-1])
        self.seconds: list[float] = []
        self._instance = instance
        self._world = instance.world(self.horizon)
        self._times = times
        self._first = first
        self._late = late
        self._memory = ARRAYS if jit_enabled() else SPARSE
        self._piece = _PIECE if jit_enabled() else _SLOW_PIECE
        key = run_key(seed)
        self._seed = np.array([key], np.uint64) if jit_enabled() else [key]
        self._idle: list[Workspace] = [self._new_workspace()]
        counts = (np.zeros(replications, np.int64) for _ in range(3))
        self.regret = np.zeros((replications, len(times) + 1))  # one column more: see `play`
        self.best_pulls, self.distinct_arms, self.recommended = counts
        self.arms = np.zeros((replications, self.horizon if record_arms else 0), np.int64)

    def compile(self) -> None:
        """Compile the loop, before threads wait for it."""
        classes = classes_in(self._idle[0].state)
        self._play: Any = compiled(play if self._late is None else play_late, *classes)
        with compiling(self.policy.label):
            self._call(self._idle[0], Block(0, 0), 0, 0)

    def blocks(self, workers: int) -> Iterator[Block]:
        """Cut the replications into blocks of some 30 ms, or smaller if workers would idle."""
        replications = len(self.best_pulls)
        size = min(self._piece // self.horizon, -(-replications // (2 * workers)))
        for first in range(0, replications, max(1, size)):
            yield Block(first, min(first + max(1, size), replications))

    def play(self, block: Block, stop: threading.Event, done: Callable[[int], None]) -> None:
        """Play a block; a long replication in pieces, so that `stop` is heeded soon."""
        begun = time.perf_counter()
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self._new_workspace()
        for start in range(0, self.horizon, self._piece):
            if stop.is_set():
                return
            end = min(start + self._piece, self.horizon)
            self._call(workspace, block, start, end)
            done((end - start) * (block.end - block.first))
        self._idle.append(workspace)
        self.seconds.append(time.perf_counter() - begun)

    def _call(self, workspace: Workspace, block: Block, start: int, stop: int) -> None:
        rows = slice(block.first, block.end)
        flying = () if workspace.ring is None else (workspace.ring,)
        self._play(
            workspace.state,
            *flying,
            self._world,
            workspace.tape,
            self._seed,
            self._first + block.first,
            start,
            stop,
            self._times,
            self.regret[rows],
            self.best_pulls[rows],
            self.distinct_arms[rows],
            self.recommended[rows],
            self.arms[rows],
        )
        for arm in self.recommended[rows][self.distinct_arms[rows] < 0]:
            raise ParameterError(
                f"{self.policy.label} chose arm {arm}, and there are {self._instance.n_arms}, "
                f"numbered from 0. Its `ask` must return (slot, arm), in this order."
            )

    def _new_workspace(self) -> Workspace:
        n_arms = self._instance.n_arms
        state = self._informed.new_state(self._memory, n_arms=n_arms, pulls=self.horizon)
        check_bodies(state, (reset, ask, tell))
        flying = None
        if self._late is not None:
            delay, batch = self._late
            flying = ring(self._memory, delay=delay, batch=batch, pulls=self.horizon)
        return Workspace(state, tape(self._memory, n_arms, self.horizon), flying)
