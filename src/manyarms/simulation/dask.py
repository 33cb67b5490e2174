"""The chunks of an experiment on a Dask cluster.

A chunk is sent with its instance and its policy and comes back as rows, which this process stores:
workers need no common disk. What a chunk holds follows from the experiment alone, so it does not
matter who plays it, or how often. The scheduler gives the chunks of a worker that died to others.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

from manyarms.core.checks import refusal
from manyarms.core.optional import need
from manyarms.errors import ClusterError, ManyarmsError, ParameterError
from manyarms.simulation.chunks import Chunk
from manyarms.simulation.executors import CHUNKS_PER_WORKER, Meter, Pool, play_alone
from manyarms.simulation.workbench import Played

_PATIENCE = 10  # seconds for the scheduler to answer
_REFRESH = 2.0  # seconds between two looks at how many threads there are
# Ctrl-C reaches every process of a terminal: ours ends the others, without their cries
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_LOST = "What is finished is kept: run the same again."
_ADDRESS = re.compile(r"((tcp|tls|wss?|ucxx?)://)?(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):[0-9]{1,5}/?")
_PAGES = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")


def need_dask() -> Any:
    """Return the package `distributed`, or say how to get it."""
    return need("distributed", "to play on a cluster", "dask")


def check_scheduler(address: Any) -> None:
    """Refuse an address that cannot be right before Dask waits for it; None is a local cluster."""
    need_dask()
    if address is None:
        need("cryptography", "to start a cluster that is safe from other users", "dask")
    elif not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        rule, fix = "an address such as tcp://10.0.0.5:8786", "`dask scheduler` prints its own."
        raise refusal("scheduler", rule, address, fix)
    elif address.startswith(("tls:", "wss:")) and not _has_credentials():
        raise ParameterError(
            f"`scheduler` must be an address that Dask has credentials for, got {address!r:.80}, "
            f"and none. Set `distributed.comm.tls` in Dask's configuration."
        )


def _has_credentials() -> bool:
    return need_dask().Security().get_connection_args("client").get("ssl_context") is not None


def play_on_worker(chunk: Chunk, seed: int, wanted: str) -> Played:
    """Play a chunk on a worker; stop if the run no longer waits for it."""
    worker = need_dask().get_worker()
    key = worker.get_current_task()

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state in ("cancelled", "released", "forgotten")

    return play_alone(chunk, seed, wanted, stopped)


class Cluster(Pool):
    """Plays chunks on a Dask cluster: the scheduler's, or processes that are started here."""

    play = staticmethod(play_on_worker)

    def __init__(self, *, seed: int, workers: int, scheduler: str | None, meter: Meter) -> None:
        self._threads, self._looked = 0, -_REFRESH
        self._is_here = scheduler is None
        with contextlib.ExitStack() as stack:
            address, security = scheduler, None
            if scheduler is None:
                security = need_dask().Security.temporary()
                address = stack.enter_context(_local(workers, security))
            self._client = stack.enter_context(_connected(address, security))
            super().__init__(self._client.get_executor(pure=False), workers, seed, meter)
            self._stack = stack.pop_all()

    def capacity(self) -> int:
        """Return how many chunks keep the workers busy; they may come and go."""
        if time.monotonic() - self._looked > _REFRESH:
            with contextlib.suppress(OSError):  # if the scheduler is gone, the futures fail
                self._threads = sum(self._client.nthreads().values())
            self._looked = time.monotonic()
        return max(2, CHUNKS_PER_WORKER * self._threads)

    def compile(self, chunk: Chunk) -> None:
        """Compile for processes of this machine; others compile for themselves."""
        if self._is_here:
            super().compile(chunk)

    def result(self, future: Future[Played], chunk: Chunk) -> Played:
        error = _failure(future, chunk)
        if error is not None:
            raise error
        return super().result(future, chunk)

    def note(self) -> str:
        """Say so if the run waits because there is no worker."""
        self.capacity()
        return "" if self._threads else "waiting for workers"

    def close(self) -> None:
        """Give up what is being played, and leave; a cluster of our own ends."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._executor.shutdown(wait=False)
        self._stack.close()


@contextlib.contextmanager
def _local(workers: int, security: Any) -> Iterator[str]:
    """Start a cluster of processes on this machine; yield its address.

    Other users of this machine can reach its ports, and a scheduler runs the code of its clients.
    So it accepts only clients with credentials, which exist in the memory of our processes alone,
    and serves no pages, because pages ask for no credentials.
    """
    from dask import config

    with (
        config.set({key: [] for key in _PAGES}),
        need_dask().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # its HTTP server: any free port
            memory_limit=0,  # as for threads: the system's own
            preload=[_DEAF],
            silence_logs=logging.CRITICAL,  # workers that end and come again are no one's concern
        ) as cluster,
    ):
        yield cluster.scheduler_address


@contextlib.contextmanager
def _connected(address: str | None, security: Any) -> Iterator[Any]:
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # we say ourselves, in one sentence, when the scheduler is gone
    try:
        client = need_dask().Client(
            address, timeout=_PATIENCE, set_as_default=False, security=security
        )
    except (OSError, ValueError, TypeError, AssertionError) as error:  # the last: a busy machine
        raise ClusterError(
            f"`scheduler` must be the address of a Dask scheduler that answers, such as "
            f"tcp://10.0.0.5:8786, got {address!r}, which does not: {error}. Start one with "
            f"`dask scheduler`, or leave the option out for a cluster on this machine."
        ) from error
    else:
        with client:
            yield client
    finally:
        log.setLevel(level)


def _failure(done: Future[Played], chunk: Chunk) -> BaseException | None:
    """Return why a chunk failed, in our words; None if it did not."""
    if done.cancelled():
        return ClusterError(f"The cluster is gone, or gave up a chunk. {_LOST}")
    error = done.exception()
    if error is None or isinstance(error, ManyarmsError):
        return error
    if isinstance(error, need_dask().KilledWorker):
        return ClusterError(
            f"{chunk.player.label} with {chunk.replications} replications of "
            f"{chunk.cell.horizon} pulls has ended several workers, one after the other; they may "
            f"lack memory. {_LOST}"
        )
    if isinstance(error, CancelledError | need_dask().comm.CommClosedError):
        return ClusterError(f"The cluster was lost: {error!r}. {_LOST}")
    hint = " Policies of your own must be in a module that workers can import."
    text = f"A worker failed with {type(error).__name__}: {error}."
    return ClusterError(text + hint * isinstance(error, ImportError))
