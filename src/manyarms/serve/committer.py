"""Threads with a connection of their own; one of them commits the batches that form meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from manyarms.errors import StoreError
from manyarms.live.databases import Batch, Database, UnreachableError, database_of
from manyarms.live.databases.database import next_seconds
from manyarms.serve.errors import LostError

if TYPE_CHECKING:
    from manyarms.serve.owned import Owned

T = TypeVar("T")
Job = Callable[[], None]

STARTING = 30.0  # seconds
UNKNOWN_AFTER = 5.0  # seconds that requests wait for a database that is away
_logger = logging.getLogger("manyarms.serve")


class DatabaseThread:
    """Runs functions of a database, one after the other, on a connection of its own."""

    def __init__(self, url: str, name: str) -> None:
        self.database: Database = database_of(url)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Open the connection, if need be within half a minute; raises `StoreError`."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        await self.insist(lambda database: database.open())

    async def insist(self, function: Callable[[Database], T]) -> T:
        """Call again for half a minute, while a node starts: its database may start, too."""
        end, pause = time.monotonic() + STARTING, 0.05
        while True:
            try:
                return await self.call(function)
            except UnreachableError as error:
                if time.monotonic() > end:
                    raise StoreError(f"The database cannot be reached: {error}.") from error
                _logger.warning("waits for the database: %s", error)
                await asyncio.sleep(pause)
                pause = next_seconds(pause)

    async def call(self, function: Callable[[Database], T]) -> T:
        """Return what a function of the database returns."""
        assert self._loop is not None
        loop, future = self._loop, self._loop.create_future()

        def job() -> None:
            try:
                result, error = function(self.database), None
            except BaseException as raised:
                result, error = None, raised
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, future, result, error)

        self._jobs.put(job)
        return await future  # type: ignore[no-any-return]

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        self.database.close()

    async def stop(self) -> None:
        """Do what is waiting, and close the connection."""
        self._jobs.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)


def settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Say what came of something; whoever waits for it may have gone."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # nobody may be waiting for it any more


@dataclass
class Answers:
    """What the database said when a batch was committed."""

    ended: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)


@dataclass
class Forming:
    """A batch, who waits for it, and what they want to know of the database."""

    batch: Batch
    done: asyncio.Future[Answers]
    repeated: set[int] = field(default_factory=set)  # pulls that are not in flight
    names_repeated: bool = False  # whether the keys of their arms are wanted, too
    dirty: bool = False
    callbacks: list[Callable[[asyncio.Future[Answers]], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.done.add_done_callback(self._call)

    def when_done(self, callback: Callable[[asyncio.Future[Answers]], None]) -> None:
        """Call back when the batch is committed, or nobody waits for it any more."""
        if self.done.done():  # the database was away for long: those who waited have gone
            self.done.add_done_callback(callback)
        else:
            self.callbacks.append(callback)

    def _call(self, done: asyncio.Future[Answers]) -> None:
        """Let all hear of it in one go: the loop takes longer to call each by itself."""
        for callback in self.callbacks:
            try:
                callback(done)
            except (
                Exception,
                asyncio.CancelledError,
            ):  # of one client: the others get their answers all the same
                _logger.exception("an answer failed")


class Committer(DatabaseThread):
    """Commits the batches of all experiments; the next group forms while this one syncs.

    Attributes
    ----------
    away
        Why the database cannot be reached, while that is so.
    """

    def __init__(self, url: str, lost: Callable[[Owned], None]) -> None:
        super().__init__(url, "committer")
        self._lost = lost
        self._dirty: dict[Owned, None] = {}  # in the order of their requests
        self._group: list[tuple[Owned, Forming]] = []
        self._planned = False
        self.away = ""
        self.seconds: deque[float] = deque(maxlen=1000)  # of commits
        self.sizes: deque[int] = deque(maxlen=1000)  # events of groups
        self.committed = 0
        self._given_up = False

    def give_up(self) -> None:
        """Insist no longer: the process is about to end."""
        self._given_up = True

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be committed."""
        return not self._group and not self._dirty

    def took(self, share: float) -> float:
        """Return the seconds within which a share of the last commits was done."""
        seconds = sorted(self.seconds) or [0.0]
        return seconds[int(share * len(seconds))]

    def wake(self, owned: Owned) -> None:
        """Hear that an experiment has something to commit."""
        self._dirty[owned] = None
        if not self._group:
            self._plan()

    def _plan(self) -> None:
        """Hand over after the requests that are here already, and the answers that are due."""
        if not self._planned:
            self._planned = True
            assert self._loop is not None
            self._loop.call_soon(self._hand_over)

    def drop(self, owned: Owned) -> None:
        """Forget what an experiment has not handed over yet."""
        self._dirty.pop(owned, None)

    def _hand_over(self) -> None:
        self._planned = False
        if self._group or not self._dirty:
            return
        self._group = [(owned, owned.take()) for owned in self._dirty]
        self._dirty = {}
        group = self._group
        self._jobs.put(lambda: self._commit(group))

    # In the thread

    def _commit(self, group: list[tuple[Owned, Forming]]) -> None:
        begun = time.perf_counter()
        batches = [forming.batch for _, forming in group]
        answers: list[Answers | None] = [None] * len(group)
        try:
            stood = self._stood(batches)
            answers = self._insisting(
                lambda: [
                    self._answer(forming) if ok else None
                    for (_, forming), ok in zip(group, stood, strict=True)
                ]
            )
        except UnreachableError:
            return  # the process is about to end
        except Exception:  # a mistake of ours: what is kept is loaded anew
            _logger.exception("a commit failed")
        assert self._loop is not None
        seconds = time.perf_counter() - begun
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._done, group, answers, seconds)

    def _stood(self, batches: Sequence[Batch]) -> list[bool]:
        """Commit batches; one that cannot be takes no other with it."""
        try:
            return self._insisting(
                lambda: self.database.commit(batches), lambda: self._commit_again(batches)
            )
        except UnreachableError:
            raise
        except Exception:
            _logger.exception("a commit failed: its batches are tried one by one")
            return [self._stood_alone(batch) for batch in batches]

    def _stood_alone(self, batch: Batch) -> bool:
        try:
            return self._insisting(lambda: self._commit_again([batch]))[0]
        except UnreachableError:
            raise
        except Exception:
            _logger.exception("experiment %d: a batch was refused", batch.experiment)
            return False

    def _commit_again(self, batches: Sequence[Batch]) -> list[bool]:
        """Send the same batches after the answer to them was lost: some may have succeeded."""
        there = self.database.heads([batch.experiment for batch in batches])
        done = [
            there.get(batch.experiment) == (batch.epoch, batch.new) and batch.new > batch.old
            for batch in batches
        ]
        left = [batch for batch, ok in zip(batches, done, strict=True) if not ok]
        stood = iter(self.database.commit(left) if left else [])
        return [ok or next(stood) for ok in done]

    def _insisting(self, what: Callable[[], T], again: Callable[[], T] | None = None) -> T:
        """Do it until the database has answered; `again` is what to do after a lost answer."""
        pause = 0.05
        while True:
            try:
                result = what()
                self._tell_loop("")
                return result
            except UnreachableError as error:
                what = again or what
                self._tell_loop(str(error) or "the connection was lost")
                if self._given_up:
                    raise
                time.sleep(pause)
                pause = next_seconds(pause)

    def _answer(self, forming: Forming) -> Answers:
        database, x = self.database, forming.batch.experiment
        answers = Answers()
        unnamed = forming.batch.unnamed
        if forming.repeated:
            answers.ended = database.ended(x, sorted(forming.repeated))
            if forming.names_repeated:
                unnamed = unnamed.union(arm for _, _, arm in answers.ended.values())
        answers.names = forming.batch.names
        if len(answers.names) < len(unnamed):
            answers.names = database.keys_of(x, sorted(unnamed))
        return answers

    def _tell_loop(self, away: str) -> None:
        if away != self.away and self._loop is not None:
            first = bool(away) and not self.away
            self.away = away
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._heard, away, first)

    # In the loop

    def _heard(self, away: str, first: bool) -> None:
        if first:
            _logger.warning("database away: %s", away)
            assert self._loop is not None
            self._loop.call_later(UNKNOWN_AFTER, self._give_up_waiting)
        elif not away:
            _logger.warning("database back")

    def _give_up_waiting(self) -> None:
        """Let those who wait go; their events are committed later, or another owner decides."""
        if self.away:
            for _, forming in self._group:
                settle(forming.done, None, TimeoutError())
            for owned in self._dirty:
                settle(owned.forming.done, None, TimeoutError())
            assert self._loop is not None
            self._loop.call_later(UNKNOWN_AFTER, self._give_up_waiting)

    def _done(
        self, group: list[tuple[Owned, Forming]], answers: list[Answers | None], seconds: float
    ) -> None:
        self._group = []
        self.seconds.append(seconds)
        self.sizes.append(sum(len(forming.batch.events) for _, forming in group))
        self.committed += self.sizes[-1]
        for (owned, forming), answer in zip(group, answers, strict=True):
            if answer is None:
                settle(forming.done, None, LostError())
                self._lost(owned)
            else:
                owned.names |= answer.names
                settle(forming.done, answer, None)
        if self._dirty:
            self._plan()
