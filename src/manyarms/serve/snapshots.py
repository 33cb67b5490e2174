"""Snapshots: with one, loading does not play the whole log again.

A copy of this process makes them (`forked`): they take seconds if a million arms were tried.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from manyarms.core.process_copy import CAN_FORK
from manyarms.live.databases import Database
from manyarms.serve.batch import LostError
from manyarms.serve.forked import forked

if TYPE_CHECKING:
    from manyarms.serve.experiment import Experiment
    from manyarms.serve.leader import Leader

EVENTS = 20_000  # between snapshots, at least; and as many as arms were tried
_SMALL = 1000  # arms and pulls in flight whose snapshot is made here and now, in milliseconds
_RATE = 1e-5  # seconds that a snapshot takes for each of them, at most
_AT_THE_END = 2.0  # seconds for all snapshots of a process that ends
_logger = logging.getLogger("manyarms.serve")


class Snapshots:
    """Makes snapshots of what a leader plays, one at a time."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._turn = asyncio.Lock()
        self._failed: WeakKeyDictionary[Experiment, int] = WeakKeyDictionary()  # at which event

    def save_if_due(self, experiment: Experiment) -> None:
        """Begin a snapshot if many events have come since the last one that was tried."""
        live = experiment.live
        if live is None or self._turn.locked():
            return
        tried = max(experiment.saved_head, self._failed.get(experiment, 0))
        since = experiment.committed_head - tried
        if since >= max(EVENTS, len(live.tally)):
            self._leader.in_background(self._save_due(experiment))

    async def _save_due(self, experiment: Experiment) -> None:
        before = experiment.saved_head
        await self.save(experiment)
        if experiment.saved_head > before and not experiment.gone:
            self.save_if_due(experiment)  # as many events may have come meanwhile

    async def save(self, experiment: Experiment) -> None:
        """Keep a snapshot of an experiment as it is now, if there is anything new."""
        async with self._turn:
            live, head = experiment.live, experiment.head
            if live is None or experiment.gone or head <= experiment.saved_head:
                return
            before, experiment.saved_head = experiment.saved_head, head
            try:
                if CAN_FORK and _size(experiment) > _SMALL:
                    data = await forked(lambda: _packed(*experiment.snapshot()))
                    state, more = _unpacked(data)
                else:
                    state, more = experiment.snapshot()
                await self._keep(experiment, head, state, more)
            except Exception as error:  # whatever it is: the log is kept
                experiment.saved_head, self._failed[experiment] = before, head
                _logger.warning("no snapshot of %s: %r", experiment.name, error)

    async def _keep(self, experiment: Experiment, head: int, state: bytes, more: bytes) -> None:
        while experiment.committed_head < head and not experiment.gone:  # its last events fly
            await asyncio.sleep(0.01)

        def keep(database: Database) -> None:
            if experiment.gone:  # its last events may be others
                raise LostError("the experiment was loaded anew")
            database.save(experiment.id, head, state, more)

        await self._leader.store.write(keep)

    async def save_at_the_end(self) -> None:
        """Keep snapshots of all that can be made in a moment; other logs are played again."""
        try:
            async with asyncio.timeout(2 * _AT_THE_END):  # some began before the end
                await self._save_until(time.monotonic() + _AT_THE_END)
        except Exception as error:  # whatever it is: the logs are kept
            _logger.warning("not all snapshots were kept: %r", error)

    async def _save_until(self, end: float) -> None:
        for experiment in sorted(self._leader.games.values(), key=_size):
            if time.monotonic() + _RATE * _size(experiment) > end:
                return
            live, head = experiment.live, experiment.head
            if live is not None and head > experiment.saved_head:
                await self._keep(experiment, head, *experiment.snapshot())
            if self._leader.before_unloading is not None:
                await self._leader.before_unloading(experiment)


def _size(experiment: Experiment) -> int:
    return len(experiment.flying) + (0 if experiment.live is None else len(experiment.live.tally))


def _packed(state: bytes, more: bytes) -> bytes:
    return len(more).to_bytes(8, "little") + more + state


def _unpacked(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:8], "little")
    return data[8 + size :], data[8 : 8 + size]
