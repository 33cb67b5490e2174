"""One process plays all experiments; others stand by until it has gone.

A request is applied when it is read. At the end of the loop's turn one commit makes all that was
applied durable, and then it is answered. Whatever goes wrong there has one remedy: forget every
game, lead again, load.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

from manyarms.errors import StoreError
from manyarms.live.databases import Database, UnreachableError
from manyarms.serve import cleaning
from manyarms.serve.batch import Batch, LostError
from manyarms.serve.errors import (
    BrokenError,
    RefusedError,
    refuse,
    unavailable,
    unknown,
    unknown_experiment,
    unreachable,
)
from manyarms.serve.experiment import Experiment
from manyarms.serve.game import ReplayError
from manyarms.serve.messages import Failure
from manyarms.serve.snapshots import Snapshots
from manyarms.serve.stores import Readers, store_of
from manyarms.serve.windows import Windows

T = TypeVar("T")
BEAT = 1.0  # seconds
IDLE = 300.0  # seconds after which an experiment that nobody uses is unloaded
_JOINING = 0.002  # seconds that requests may still join a group
_LOADS = 3  # experiments that are loaded at a time
_READS = 4
_CLEANED_EVERY = 600.0  # seconds
_UNPLAYABLE = 10.0  # seconds until an experiment that cannot be played is tried again
_ENDING = 5.0  # seconds that a process which ends waits for its last commits
_logger = logging.getLogger("manyarms.serve")


class Leader:
    """The experiments that this process plays, if it leads.

    Attributes
    ----------
    games
        Experiments that are loaded.
    leads, since
        Whether this process leads, and since when.
    why_not
        Why it does not lead.
    settled
        Set when it leads, or knows who does.
    before_unloading
        Called with an experiment that is about to be unloaded.
    """

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.store = store_of(url, name)
        self.readers = Readers(url, _READS, "reader")
        self.loaders = Readers(url, _LOADS, "loader")
        self.snapshots = Snapshots(self)
        self.windows = Windows(self)
        self.games: dict[str, Experiment] = {}
        self.leads = False
        self.since = 0.0
        self.why_not = "this process starts"
        self.settled = asyncio.Event()
        self.closing = False
        self.before_unloading: Callable[[Experiment], Awaitable[None]] | None = None
        self.seconds: deque[float] = deque(maxlen=1000)  # of commits
        self.sizes: deque[int] = deque(maxlen=1000)  # events of groups
        self.events = 0
        self.terms = 0  # how often this process has led
        self._loading: dict[str, asyncio.Task[Experiment]] = {}
        self._unplayable: dict[str, tuple[float, Failure]] = {}
        self._burying: set[str] = set()
        self._dirty: dict[Experiment, None] = {}  # in the order of their requests
        self._flying: list[Batch] = []
        self._busy = False
        self._seen, self._begun = 0, 0.0
        self._lost = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # what nobody waits for
        self._purging = False
        self._unloading: asyncio.Task[None] | None = None

    # Leading

    def start(self) -> None:
        """Begin to lead, or to stand by."""
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        pause = 0.1
        while not self.closing:
            try:
                await self.store.lead(self._stands_by)
                self._begin()
                pause = 0.1
                await self._stay()
            except LostError as error:
                self._leads_not(str(error))
            except StoreError as error:
                self._leads_not(str(error))
            except Exception as error:  # a mistake of ours: what is kept is loaded anew
                _logger.exception("leading failed")
                self._leads_not(repr(error))
            self._forget()
            await self.store.leave()
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)

    def _stands_by(self, leader: str) -> None:
        self._leads_not(
            f"{leader or 'another process'} leads, and this one stands by", logging.INFO
        )
        self.settled.set()

    def _leads_not(self, why: str, level: int = logging.WARNING) -> None:
        if why != self.why_not:
            _logger.log(level, "does not lead: %s", why)
        self.why_not = why

    def _begin(self) -> None:
        self._lost.clear()
        self.readers.renew()
        self.loaders.renew()
        self.leads, self.since = True, time.time()
        self.terms += 1
        self.why_not, self._purging, self.windows.unknown = "", False, True
        self.in_background(cleaning.begin(self))
        _logger.info("leads")
        self.settled.set()

    async def _stay(self) -> None:
        """Look after what there is until this process leads no longer."""
        cleaned = time.monotonic()
        while not self._lost.is_set():
            await self.store.beat()
            if self._unloading is None or self._unloading.done():
                self._unloading = self.in_background(self._unload_idle())
            if self.windows.unknown:
                self.windows.unknown = False
                self.in_background(self.windows.load())
            if self._purging:
                self._purging = False
                self.in_background(cleaning.purge(self))
            if time.monotonic() - cleaned > _CLEANED_EVERY:
                cleaned = time.monotonic()
                self.in_background(cleaning.drop_old_keys(self))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), BEAT)

    def _forget(self) -> None:
        """Forget every game: what is kept is loaded anew, here or elsewhere."""
        self.leads = False
        forgotten = dict.fromkeys(self.games.values()) | self._dirty
        self.games, self._dirty, self._busy = {}, {}, False
        self._loading.clear()
        self._unplayable.clear()
        lost = LostError(self.why_not)
        for experiment in forgotten:
            experiment.forget(lost)
        for batch in self._flying:
            batch.settle(lost)
        self._flying = []

    def lose(self, error: Exception) -> None:
        """Lead no longer, because something failed."""
        if self.leads:
            self._leads_not(str(error) or repr(error))
        self.leads = False  # nothing is applied to what is about to be forgotten
        self._lost.set()

    def in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin something that nobody waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RefusedError | LostError):
            _logger.error("work in the background failed", exc_info=error)

    # Reading and writing what belongs to no log

    async def read(self, function: Callable[[Database], T]) -> T:
        """Return what the database says, or refuse."""
        try:
            return await self.readers.read(function)
        except UnreachableError as error:
            raise unreachable(error) from error

    async def write(self, function: Callable[[Database], T]) -> T:
        """Change what belongs to no experiment's log, or refuse."""
        self.check_leads()
        try:
            return await self.store.write(function)
        except LostError as error:
            self.lose(error)
            raise unknown(f"It failed ({error})") from error

    def check_leads(self) -> None:
        """Refuse a request unless this process leads."""
        if self.closing:
            raise unavailable("This process is about to end.")
        if not self.leads:
            raise unavailable(f"Nothing was done: {self.why_not}. Send it again, here or there.")

    # Loading

    def playing(self, name: str) -> Experiment | None:
        """Return an experiment if it is loaded."""
        return self.games.get(name) if self.leads and name not in self._burying else None

    async def find(self, name: str) -> Experiment:
        """Return an experiment, loaded."""
        experiment = self.playing(name)
        if experiment is not None:
            return experiment
        self.check_leads()
        self._check_stays(name)
        until, failure = self._unplayable.get(name, (0.0, None))
        if failure is not None and until > time.monotonic():
            raise RefusedError(failure)
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = self.in_background(self._load(name))
            task.add_done_callback(partial(self._loaded, name))
        return await asyncio.shield(task)

    def _loaded(self, name: str, task: asyncio.Task[Experiment]) -> None:
        if self._loading.get(name) is task:  # and not one of a later term
            del self._loading[name]

    def trouble(self, name: str) -> str:
        """Return why an experiment could not be played when that was last tried."""
        failure = self._unplayable.get(name, (0.0, None))[1]
        return "" if failure is None else failure.message

    async def _load(self, name: str) -> Experiment:
        term = self.terms

        def load(database: Database) -> Experiment:
            row = database.find(name)
            if row is None:
                raise unknown_experiment(name)
            if row.spec == "null":
                raise refuse(409, "recorded", f"{name!r} is a handle's that was recorded here.")
            return Experiment.load_all(database, row)

        try:
            experiment = await self.loaders.read(load)
        except UnreachableError as error:
            raise unreachable(error) from error
        except RefusedError:
            raise
        except Exception as error:  # whatever it is, it concerns this experiment alone
            _logger.error("%s", error, exc_info=not isinstance(error, ReplayError))
            failure = Failure("replay", str(error), 503)
            self._unplayable[name] = time.monotonic() + _UNPLAYABLE, failure
            raise RefusedError(failure) from error
        if term != self.terms or not self.leads:
            raise unavailable("Another process leads. Send it again.")
        self._check_stays(name)
        if name in self.games:
            return self.games[name]
        experiment.start(self._wake)
        self.games[name] = experiment
        self._unplayable.pop(name, None)
        if experiment.keyed:
            self.tidy(experiment)
        self.windows.watch(experiment)
        if gc.get_freeze_count():  # as `server.run` does in a process of its own
            gc.freeze()
        return experiment

    def forget(self, experiment: Experiment, why: str = "the experiment was loaded anew") -> None:
        """Drop one experiment, with what was not committed yet."""
        if self.games.get(experiment.name) is experiment:
            del self.games[experiment.name]
        self._dirty.pop(experiment, None)
        experiment.forget(LostError(why))

    def broke(self, experiment: Experiment, error: BrokenError) -> RefusedError:
        """Drop an experiment that is half changed; return the answer."""
        _logger.error("%s", error)
        self.forget(experiment, "the policy failed midway in another request")
        return RefusedError(Failure("policy", str(error), 500))

    async def _unload_idle(self) -> None:
        for experiment in list(self.games.values()):
            idle = time.monotonic() - experiment.used > IDLE
            if not idle or experiment.needed or experiment.gone:
                continue
            try:
                await self.unload(experiment)
            except Exception:  # of one experiment: others are unloaded all the same
                _logger.exception("%s cannot be unloaded", experiment.name)
                experiment.used = time.monotonic()

    async def unload(self, experiment: Experiment) -> None:
        """Keep a snapshot, so that loading is quick, and forget an experiment that nobody uses."""
        used = experiment.used
        if self.before_unloading is not None:
            await self.before_unloading(experiment)
        await self.snapshots.save(experiment)
        if experiment.used == used and not experiment.gone and not experiment.needed:
            self.forget(experiment)

    # Committing

    def _wake(self, experiment: Experiment) -> None:
        self._dirty[experiment] = None
        if not self._busy:
            self._plan()

    def _plan(self) -> None:
        self._busy, self._seen, self._begun = True, -1, time.monotonic()
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Commit when a turn of the loop has brought no more requests, or the time is over."""
        waiting = sum(experiment.waiters for experiment in self._dirty)
        if waiting != self._seen and time.monotonic() - self._begun < _JOINING:
            self._seen = waiting
            asyncio.get_running_loop().call_soon(self._turn)
            return
        self.in_background(self._commit())

    async def _commit(self) -> None:
        dirty, self._dirty = self._dirty, {}
        group = self._flying = [experiment.take() for experiment in dirty]
        begun, term = time.perf_counter(), self.terms
        error: Exception | None = None
        try:
            if group:
                await self.store.commit(group)
        except LostError as lost:
            error = lost
        except Exception as mistake:  # of ours: what is kept is loaded anew
            _logger.exception("a commit failed")
            error = mistake
        if term != self.terms or self._flying is not group:
            return  # all of this was forgotten meanwhile
        if error is not None:
            self.lose(error)  # `_forget` tells those who wait
            return
        self._flying = []
        self.seconds.append(time.perf_counter() - begun)
        self.sizes.append(sum(len(batch.events) for batch in group))
        self.events += self.sizes[-1]
        for experiment, batch in zip(dirty, group, strict=True):
            experiment.learn(batch.names)
            experiment.committed_head = batch.new_head
            batch.settle()
            self.snapshots.save_if_due(experiment)
        self._busy = False
        if self._dirty:
            self._plan()

    def took(self, share: float) -> float:
        """Return the seconds within which a share of the last commits was done."""
        seconds = sorted(self.seconds) or [0.0]
        return seconds[int(share * len(seconds))]

    # What is deleted

    @contextlib.contextmanager
    def burying(self, name: str) -> Iterator[None]:
        """Let nobody find an experiment while it is deleted."""
        self._check_stays(name)
        self._burying.add(name)
        try:
            yield
        finally:
            self._burying.discard(name)

    def _check_stays(self, name: str) -> None:
        if name in self._burying:
            raise unavailable(f"{name!r} is being deleted. Nothing was done.")

    def purge_soon(self, name: str) -> None:
        """Hear that an experiment was deleted."""
        self._unplayable.pop(name, None)
        self._purging = True

    def tidy(self, experiment: Experiment) -> None:
        """Begin to delete arms that an import which did not end has left; the next import waits."""
        experiment.tidying = self.in_background(cleaning.drop_unpublished(self, experiment))

    # The end

    async def close(self) -> None:
        """Commit what is applied, keep snapshots that are quickly made, and let others lead."""
        self.closing = True
        for experiment in self.games.values():
            if experiment.deadline is not None:
                experiment.deadline.cancel()
        end = time.monotonic() + _ENDING
        while (self._dirty or self._flying) and self.leads and time.monotonic() < end:
            await asyncio.sleep(0.005)
        if self.leads:
            await self.snapshots.save_at_the_end()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        self._forget()
        await self.store.leave()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=2)
        self.store.close()
        self.readers.close()
        self.loaders.close()
