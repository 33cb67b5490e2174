"""Windows: pulls whose rewards do not come in time are ended, though nobody asks for that."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from manyarms.serve import clock, tables
from manyarms.serve.errors import BrokenError, RefusedError
from manyarms.serve.game import SHORTEST_WINDOW

if TYPE_CHECKING:
    from manyarms.serve.experiment import Experiment
    from manyarms.serve.leader import Leader

_LONGEST_PAUSE = 5.0  # seconds
_logger = logging.getLogger("manyarms.serve")


class Windows:
    """Watches the windows of what a leader plays.

    Attributes
    ----------
    unknown
        Whether some may have to be loaded.
    """

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self.unknown = True

    async def load(self) -> None:
        """Load experiments whose windows somebody must watch."""
        try:
            for name in await self._leader.read(tables.with_windows):
                try:
                    await self._leader.find(name)
                except RefusedError as error:
                    if error.failure.code == "unavailable":
                        raise
        except RefusedError as error:
            _logger.warning("windows are not watched yet: %s", error)
            self.unknown = True

    def watch(self, experiment: Experiment, at: float | None = None) -> None:
        """Look at an experiment again when the next window ends."""
        window = experiment.spec.window
        if window is None or experiment.gone:
            return
        if at is None:
            first = next(iter(experiment.flying.values()), None)
            at = (clock.now() if first is None else first) + window
        pause = min(max(SHORTEST_WINDOW / 2, at - clock.now()), _LONGEST_PAUSE)
        loop = asyncio.get_running_loop()
        experiment.deadline = loop.call_later(pause, self._expire, experiment)

    def _expire(self, experiment: Experiment) -> None:
        leader, used = self._leader, experiment.used
        if leader.closing or experiment.gone or not leader.leads:
            return
        try:
            at = experiment.expire(clock.now())
        except BrokenError as error:
            leader.broke(experiment, error)
            return
        experiment.used = used
        self.watch(experiment, at)
