"""The chunks of an experiment on a Dask cluster.

A chunk goes out with the instance and the policy it needs, and comes back as rows, which this
process stores: workers need no common disk. What a chunk holds follows from the spec alone, so it
does not matter who plays it, or how often: the scheduler gives the chunks of a worker that died to
others.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any

from manyarms.core.checks import refusal
from manyarms.core.code_digest import digest
from manyarms.core.optional import need
from manyarms.errors import ClusterError, ManyarmsError, ParameterError
from manyarms.lab.chunks import Chunk
from manyarms.lab.executors import Meter
from manyarms.lab.workbench import Played, Workbench

_PATIENCE = 10  # seconds for the scheduler to answer
_ATTEMPTS = 3  # to start a client on a busy machine
_RETRIES = 2  # of a chunk that fails on one worker, and may not on another
_CHUNKS_PER_THREAD = 3  # one under way, two waiting: results travel while others are played
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
    """Refuse what cannot be a scheduler, before Dask waits for it; None stands for one of ours."""
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


def software() -> str:
    """Return the version of manyarms and a digest of what plays: other code, other bits."""
    version = sys.modules["manyarms"].__version__  # an import would go up
    policies = importlib.import_module("manyarms.policies")
    return f"{version} ({digest((), [policies, Workbench])})"


def play_on_worker(chunk: Chunk, seed: int, wanted: str) -> Played:
    """Play a chunk on a worker, unless it has other code than who asks for it."""
    if software() != wanted:  # one that came after the run began
        raise ClusterError(_differ({"a worker": software()}, wanted))
    worker = need_dask().get_worker()
    key = worker.get_current_task()

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state in ("cancelled", "released", "forgotten")

    bench = Workbench(chunk.cell, chunk.player, seed=seed)
    return bench.play(chunk.first, chunk.replications, stopped, lambda pulls: None)


class Cluster:
    """A Dask cluster that plays chunks: the scheduler's, or some processes that are started."""

    def __init__(self, *, seed: int, workers: int, scheduler: str | None, meter: Meter) -> None:
        self._seed, self._meter = seed, meter
        self._software = software()
        self._threads, self._looked = 0, -_REFRESH
        self.compiles_here = scheduler is None  # processes here find it in the common cache
        with contextlib.ExitStack() as stack:
            address, security = scheduler, None
            if scheduler is None:
                security = need_dask().Security.temporary()
                address = stack.enter_context(_local(workers, security))
            self._client = stack.enter_context(_connected(address, security))
            self._check_software()
            self._pool = self._client.get_executor(pure=False, retries=_RETRIES)
            self._stack = stack.pop_all()

    def capacity(self) -> int:
        """Return how many chunks keep the workers busy; they may come and go."""
        if time.monotonic() - self._looked > _REFRESH:
            with contextlib.suppress(OSError):  # the scheduler may be gone: the futures tell
                self._threads = sum(self._client.nthreads().values())
            self._looked = time.monotonic()
        return max(2, _CHUNKS_PER_THREAD * self._threads)

    def takes_long(self, chunk: Chunk) -> bool:
        """Whether the compiler has to run."""
        return not Workbench(chunk.cell, chunk.player, seed=self._seed).is_compiled

    def compile(self, chunk: Chunk) -> None:
        """Compile what the chunk needs; processes on this machine find it in the common cache."""
        Workbench(chunk.cell, chunk.player, seed=self._seed).compile()

    def submit(self, chunk: Chunk) -> Future[Played]:
        """Send a chunk, without the other players of its cell."""
        alone = chunk._replace(cell=replace(chunk.cell, players=()))
        sent = self._pool.submit(play_on_worker, alone, self._seed, self._software)
        passed: Future[Played] = Future()
        sent.add_done_callback(lambda done: self._pass_on(passed, done, chunk))
        return passed

    def _pass_on(self, passed: Future[Played], done: Future[Played], chunk: Chunk) -> None:
        error = _failure(done, chunk)
        if error is None:
            self._meter.add(chunk.pulls)
            passed.set_result(done.result())
        else:
            passed.set_exception(error)

    def note(self) -> str:
        """Return that there is no worker, if so: the run waits for one."""
        self.capacity()
        return "" if self._threads else "waiting for workers"

    def close(self) -> None:
        """Give up what is under way, and leave; a cluster of our own ends."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._pool.shutdown(wait=False)
        self._stack.close()

    def _check_software(self) -> None:
        found = self._client.run(software, on_error="return")
        others = {name: str(text) for name, text in found.items() if text != self._software}
        if others:
            raise ClusterError(_differ(others, self._software))


@contextlib.contextmanager
def _local(workers: int, security: Any) -> Iterator[str]:
    """Start a cluster of processes on this machine; yield its address.

    Others on this machine can reach it, and whoever a scheduler listens to can run code as us. So
    it listens only to who has the credentials, which exist in the memory of our processes alone;
    and it has no pages to look at, which know none.
    """
    config = importlib.import_module("dask.config")
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
def _connected(address: str | None, security: Any = None) -> Iterator[Any]:
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # we say ourselves, in one sentence, when the scheduler is gone
    try:
        client = _client(address, security)
    except (OSError, ValueError, TypeError) as error:
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


def _client(address: str | None, security: Any = None) -> Any:
    """Connect; where its own thread gets no turn for ten seconds, Dask fails an assertion."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(AssertionError):
            return need_dask().Client(
                address, timeout=_PATIENCE, set_as_default=False, security=security
            )
    raise ClusterError("Dask's client did not start in time: this machine is too busy. Try again.")


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


def _differ(others: dict[str, str], wanted: str) -> str:
    shown = ", ".join(f"{name}: {text}" for name, text in list(others.items())[:3])
    return (
        f"All workers must have the same manyarms as this process, {wanted}, or results would "
        f"differ; got {shown}. Install the same version there."
    )
