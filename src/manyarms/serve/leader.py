"""Run all experiments in one process, the leader; other processes stand by until it ends.

A request changes its experiment at once. Soon after, one commit records the changes of all requests
that have arrived, and then they are answered. If a commit fails, the leader drops all experiments
from memory, tries to lead again, and loads them from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from manyarms.errors import StoreError
from manyarms.serve import clock
from manyarms.serve.errors import (
    BrokenError,
    LostError,
    RefusedError,
    unavailable,
    unknown,
    unreachable,
)
from manyarms.serve.experiment import Batch, ServedExperiment
from manyarms.serve.loading import Loader
from manyarms.serve.messages import Failure
from manyarms.serve.snapshots import Snapshots
from manyarms.store import EventStore

T = TypeVar("T")
BEAT = 1.0  # seconds between two heartbeats
_POLL = 0.1  # seconds between two attempts of a standby to become leader
_CHECKED_EVERY = 4.0  # seconds between two checks of which process leads
_JOINING = 0.002  # seconds that a commit waits for more requests, at most
_TIDIED_EVERY = 600.0  # seconds between two deletions of old rows
_KEYS_KEPT = 48 * 3600.0  # seconds that idempotency keys are kept
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0  # seconds between two checks of windows
_ENDING = 5.0  # seconds that a closing process waits for its last commits
_logger = logging.getLogger("manyarms.serve")


class Leader:
    """The experiments that this process serves while it leads.

    Attributes
    ----------
    experiments
        Those that are loaded, by name.
    leads, terms
        Whether this process leads, and how many times it has become leader.
    why_not
        Why it does not lead.
    settled
        Set when this process leads, or another one is known to lead.
    """

    def __init__(self, store: EventStore, url: str) -> None:
        self.store, self.url = store, url
        self.snapshots, self.loader = Snapshots(self), Loader(self)
        self.experiments: dict[str, ServedExperiment] = {}
        self.leads = self.closing = False
        self.why_not = "this process is starting"
        self.settled = asyncio.Event()
        self.seconds: deque[float] = deque(maxlen=1000)  # durations of the last commits
        self.events = self.terms = 0
        self._committer = ThreadPoolExecutor(1, "commits")
        self._deleting: set[str] = set()
        self._dirty: dict[ServedExperiment, None] = {}  # in the order of their requests
        self._group: list[Batch] = []
        self._busy = False
        self._seen, self._begun = 0, 0.0
        self._lost = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # Leading

    def start(self) -> None:
        """Start to lead or to stand by."""
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        pause = _POLL
        while not self.closing:
            try:
                await self._become_leader()
                self._begin()
                pause = _POLL
                await self._stay()
            except StoreError as error:
                self._say_why_not(str(error))
            except Exception as error:  # a bug: experiments are loaded again from the store
                _logger.exception("leading failed")
                self._say_why_not(repr(error))
            self._drop_all()
            with contextlib.suppress(StoreError):
                await asyncio.to_thread(self.store.resign)
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)

    async def _become_leader(self) -> None:
        said = 0.0
        while not await asyncio.to_thread(self.store.lead):
            if time.monotonic() > said + _CHECKED_EVERY:
                said = time.monotonic()
                other = await asyncio.to_thread(self.store.leader) or "another process"
                self._say_why_not(f"{other} leads, and this process stands by", logging.INFO)
                self.settled.set()
            await asyncio.sleep(_POLL)

    def _say_why_not(self, why: str, level: int = logging.WARNING) -> None:
        if why != self.why_not:
            _logger.log(level, "This process does not lead: %s", why)
        self.why_not = why

    def _begin(self) -> None:
        self._lost.clear()
        self.leads, self.why_not = True, ""
        self.terms += 1
        self.in_background(self.loader.load_those_with_windows())
        _logger.info("This process leads.")
        self.settled.set()

    async def _stay(self) -> None:
        """Return when this process no longer leads."""
        ended = threading.Event()
        beating = asyncio.get_running_loop(), self.terms, ended
        threading.Thread(target=self._beat, args=beating, name="heartbeat", daemon=True).start()
        try:
            while not self._lost.is_set():
                self.in_background(self._tidy())
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._lost.wait(), _TIDIED_EVERY)
        finally:
            ended.set()

    def _beat(self, loop: asyncio.AbstractEventLoop, term: int, ended: threading.Event) -> None:
        """Renew the heartbeat in the store from a thread, because the event loop may be busy."""
        while not ended.wait(BEAT):
            try:
                self.store.beat()
            except Exception as error:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._missed_beat, term, error)
                return

    def _missed_beat(self, term: int, error: Exception) -> None:
        if term == self.terms and self.leads:
            self.lose(error)

    def _drop_all(self) -> None:
        """Drop all experiments from memory; the next leader loads them again."""
        self.leads = False
        dropped = dict.fromkeys(self.experiments.values()) | self._dirty
        self.experiments, self._dirty, self._busy = {}, {}, False
        self.loader.reset()
        error = LostError(self.why_not)
        for one in dropped:
            one.drop(error)
        for batch in self._group:
            batch.settle(error)
        self._group = []

    def lose(self, error: Exception) -> None:
        """Stop leading, because of an error."""
        if self.leads:
            self._say_why_not(str(error) or repr(error))
        self.leads = False  # refuses further changes in memory
        self._lost.set()

    def in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as a task that no request waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RefusedError | LostError):
            _logger.error("a background task failed", exc_info=error)

    def check_leads(self) -> None:
        """Refuse a request unless this process leads."""
        if self.closing:
            raise unavailable("This process is ending.")
        if not self.leads:
            raise unavailable(
                f"Nothing was done: {self.why_not}. Send the request again, to any process."
            )

    # The store, in threads

    async def read(self, function: Callable[..., T], *given: Any) -> T:
        """Call a method that reads from the store; refuse the request if that fails."""
        try:
            return await asyncio.to_thread(function, *given)
        except StoreError as error:
            raise unreachable(error) from error

    async def write(self, function: Callable[..., T], *given: Any) -> T:
        """Call a method that writes something other than events to the store.

        If it fails, the request is refused.
        """
        self.check_leads()
        try:
            return await asyncio.to_thread(function, *given)
        except StoreError as error:
            self.lose(error)
            raise unknown(f"The store did not confirm the change ({error})") from error

    async def _tidy(self) -> None:
        """Delete rows of deleted experiments and old idempotency keys, some at a time.

        If that fails, it is retried after `_TIDIED_EVERY`; experiments are not affected.
        """
        before = clock.now() - _KEYS_KEPT
        for work in (self.store.purge, functools.partial(self.store.prune_requests, before)):
            try:
                while self.leads and await asyncio.to_thread(work):
                    await asyncio.sleep(0.01)
            except StoreError as error:
                _logger.warning("Old rows could not be deleted; trying again later: %s", error)

    @contextlib.contextmanager
    def deleting(self, name: str) -> Iterator[None]:
        """Refuse requests for an experiment while it is deleted."""
        self.check_stays(name)
        self._deleting.add(name)
        try:
            yield
        finally:
            self._deleting.discard(name)

    def check_stays(self, name: str) -> None:
        """Refuse a request for an experiment that is being deleted."""
        if name in self._deleting:
            raise unavailable(f"{name!r} is being deleted. Nothing was done.")

    def deleted(self, name: str) -> None:
        """Delete the rows of a deleted experiment in the background."""
        self.loader.forget(name)
        self.in_background(self._tidy())

    # Experiments

    def loaded(self, name: str) -> ServedExperiment | None:
        """Return an experiment if it is loaded."""
        return self.experiments.get(name) if self.leads and name not in self._deleting else None

    def serve(self, one: ServedExperiment) -> None:
        """Serve an experiment that was loaded."""
        one.wake = self._wake
        self.experiments[one.name] = one
        self._watch(one)

    def drop(self, one: ServedExperiment, why: str = "the experiment was loaded again") -> None:
        """Drop one experiment from memory, with its uncommitted changes."""
        if self.experiments.get(one.name) is one:
            del self.experiments[one.name]
        self._dirty.pop(one, None)
        one.drop(LostError(why))

    def broke(self, one: ServedExperiment, error: BrokenError) -> RefusedError:
        """Drop an experiment whose policy raised an error; return the error for the answer."""
        _logger.error("%s", error, exc_info=error.__cause__)
        self.drop(one, "the policy failed in another request")
        return RefusedError(Failure("policy", str(error), 500))

    # Windows

    def _watch(self, one: ServedExperiment, at: float | None = None) -> None:
        """Schedule a check of the experiment for when its next window ends."""
        window = one.experiment.settings.window
        if window is None or one.gone:
            return
        if at is None:
            at = clock.now() + window if not one.experiment.ledger.pending else 0.0
        pause = min(max(_SHORTEST_PAUSE, at - clock.now()), _LONGEST_PAUSE)
        one.deadline = asyncio.get_running_loop().call_later(pause, self._expire, one)

    def _expire(self, one: ServedExperiment) -> None:
        if self.closing or one.gone or not self.leads:
            return
        if one.preparing.locked():
            self._watch(one, 0.0)
            return
        try:
            at = one.expire()
        except BrokenError as error:
            self.broke(one, error)
            return
        self._watch(one, at)

    # Committing

    def _wake(self, one: ServedExperiment) -> None:
        self._dirty[one] = None
        if not self._busy:
            self._plan()

    def _plan(self) -> None:
        self._busy, self._seen, self._begun = True, -1, time.monotonic()
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Commit if no request has arrived since the last turn, or after `_JOINING` seconds."""
        waiting = sum(one.waiting for one in self._dirty)
        if waiting != self._seen and time.monotonic() - self._begun < _JOINING:
            self._seen = waiting
            asyncio.get_running_loop().call_soon(self._turn)
            return
        self.in_background(self._commit())

    async def _commit(self) -> None:
        dirty, self._dirty = self._dirty, {}
        group = self._group = [one.take() for one in dirty]
        appends = [batch.append for batch in group if batch.append.events]
        begun, term = time.perf_counter(), self.terms
        error: Exception | None = None
        if appends:
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._committer, self.store.commit, appends)
            except StoreError as refused:
                error = refused
            except Exception as defect:  # a bug: experiments are loaded again from the store
                _logger.exception("a commit failed")
                error = defect
        if term != self.terms or self._group is not group:
            return  # `_drop_all` has dropped these changes meanwhile
        if error is not None:
            self.lose(error)  # `_drop_all` answers the requests
            return
        self._group = []
        if appends:
            self.seconds.append(time.perf_counter() - begun)
            self.events += sum(len(append.events) for append in appends)
        for one, batch in zip(dirty, group, strict=True):
            one.committed = batch.append.after_seq + len(batch.append.events)
            batch.settle()
            self.snapshots.save_if_due(one)
        self._busy = False
        if self._dirty:
            self._plan()

    def commit_quantile(self, share: float) -> float:
        """Return a quantile of the durations of the last commits (seconds)."""
        seconds = sorted(self.seconds) or [0.0]
        return seconds[int(share * len(seconds))]

    # The end

    async def close(self) -> None:
        """Commit all changes, and give up the lead."""
        self.closing = True
        for one in self.experiments.values():
            if one.deadline is not None:
                one.deadline.cancel()
        end = time.monotonic() + _ENDING
        while (self._dirty or self._group) and self.leads and time.monotonic() < end:
            await asyncio.sleep(0.005)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        self._drop_all()
        self.snapshots.close()
        for _ in range(2):  # wait up to 2 s for tasks, cancel the rest, and wait for those
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=2)
            for task in list(self._tasks):
                task.cancel()
        self._committer.shutdown()
        self.loader.close()
        await asyncio.to_thread(self._leave)

    def _leave(self) -> None:
        with contextlib.suppress(StoreError):
            self.store.resign()
        self.store.close()
