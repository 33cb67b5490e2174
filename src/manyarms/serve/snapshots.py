"""Snapshots of served experiments, made in a separate process so that no request waits.

The process loads the last snapshot, replays the events after it, and stores a new one. So a replay
has checked every event before it is part of a snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from manyarms.live.opening import continue_experiment
from manyarms.live.recorder import snapshot_is_due
from manyarms.live.snapshots import CODE_VERSION, snapshot
from manyarms.serve import clock
from manyarms.store import open_store

if TYPE_CHECKING:
    from manyarms.serve.experiment import ServedExperiment
    from manyarms.serve.leader import Leader

_STORE = "MANYARMS_SNAPSHOT_STORE"  # in the environment, because the address may have a password
_logger = logging.getLogger("manyarms.serve")


class Snapshots:
    """Starts the processes that make snapshots, one at a time."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._process: asyncio.subprocess.Process | None = None
        self._busy = False

    def save_if_due(self, one: ServedExperiment) -> None:
        """Start a snapshot if many events were committed since the last attempt."""
        if not self._busy and snapshot_is_due(one.experiment, one.committed - one.saved):
            self._busy, one.saved = True, one.committed
            self._leader.in_background(self._save(one.name))

    async def _save(self, name: str) -> None:
        try:
            # -P: `-m` alone would also import from the current folder, where files of other
            # users may have the names of modules
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "manyarms.serve.snapshots", name),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, _STORE: self._leader.url},
            )
            _, said = await process.communicate()
            if process.returncode and not self._leader.closing:
                _logger.warning(
                    "No snapshot of %s was stored: %s", name, said.decode(errors="replace")[-1000:]
                )
        except OSError as error:  # no event is lost
            _logger.warning("No snapshot of %s was stored: %s", name, error)
        finally:
            self.close()
            self._busy = False
            if not self._leader.closing:
                for one in list(self._leader.experiments.values()):  # others may have become due
                    self.save_if_due(one)

    def close(self) -> None:
        """Kill the process if it runs."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def main(name: str) -> None:
    """Store a snapshot of an experiment."""
    with open_store(os.environ[_STORE], create=False) as store:
        context, recording = continue_experiment(store, name, None, clock.now)
        experiment = context.experiment
        if experiment.seq > recording.saved:
            data = snapshot(experiment)
            store.save_snapshot(recording.record.id, experiment.seq, CODE_VERSION, data)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C, the service kills this process
    main(sys.argv[1])
