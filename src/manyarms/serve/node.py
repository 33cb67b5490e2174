"""A node: owns experiments, or knows who does; takes over from owners that are gone.

Fencing is the database's compare-and-set on (epoch, head). Leases and ports only decide when a
takeover is tried; if they are wrong, the old owner is refused with its next commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from manyarms.live.databases import Database, ExperimentRow, UnreachableError
from manyarms.serve.committer import Committer, DatabaseThread, settle
from manyarms.serve.errors import (
    BrokenError,
    LostError,
    RefusedError,
    refuse,
    unavailable,
    unknown,
    unknown_experiment,
    unreachable,
)
from manyarms.serve.game import ReplayError, as_replay_error, engine_of
from manyarms.serve.messages import Failure, Spec
from manyarms.serve.owned import MOST_KEYS, AskedBefore, Owned

T = TypeVar("T")
_IDLE = 60.0  # seconds after which a lease is not renewed any more
_KNOWN_ELSEWHERE = 1.0  # seconds that an owner is believed to be where it was
_FIRST_KEYS = 2000  # of asks, that are loaded before an experiment is served
_LOOK_AGAIN = 1.0  # seconds until a database that was away is tried again
_ENDING = 5.0  # seconds that a node which ends waits for its last commits
SOME_ARMS = 2000  # arms of a transaction: others wait some milliseconds for it
_logger = logging.getLogger("manyarms.serve")


class ServiceNode:
    """The experiments that this process owns.

    Parameters
    ----------
    url
        The database.
    address
        Where other nodes reach this one, such as 10.0.0.5:8765.
    """

    def __init__(self, url: str, address: str) -> None:
        self.address = address
        self.owner = f"node {secrets.token_hex(6)} at {address}"
        self.committer = Committer(url, self._was_lost)
        self.reader = DatabaseThread(url, "reader")
        self._loader = DatabaseThread(url, "loader")  # which may take seconds
        self.owned: dict[str, Owned] = {}
        self._elsewhere: dict[str, tuple[float, str]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._loading: dict[int, int] = {}  # experiments and their epochs
        self._ended: set[int] = set()  # stopped, and no pull is in flight
        self._unplayable: dict[str, float] = {}  # not adopted again until then
        self._keeper: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # what nobody waits for
        self.closing = False
        self.takeovers = 0

    async def start(self) -> None:
        """Connect, and begin to keep leases."""
        await self.committer.start()
        await self.reader.start()
        await self._loader.start()
        await self.committer.insist(lambda database: database.hold_session(self.owner))
        self._keeper = asyncio.create_task(self._keep())
        self._later(_warmed_up)

    def _later(
        self, function: Callable[[Database], T], then: Callable[[T], None] = lambda result: None
    ) -> None:
        """Let the loader do this when it has time."""

        async def do() -> None:
            with contextlib.suppress(UnreachableError):
                then(await self._loader.call(function))

        self._in_background(do())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def read(self, function: Callable[[Database], T]) -> T:
        """Return what the database says, or refuse."""
        try:
            return await self.reader.call(function)
        except UnreachableError as error:
            raise unreachable(error) from error

    async def write(self, function: Callable[[Database], T]) -> T:
        """Change what belongs to no experiment's log, or refuse."""
        if self.committer.away:
            raise unreachable(self.committer.away)
        try:
            return await self.committer.call(function)
        except UnreachableError as error:
            raise unknown(f"The database cannot be reached ({error})") from error

    # Arms that an import which did not end has left

    def tidy(self, owned: Owned) -> None:
        """Begin to delete them; the next import waits for that."""
        owned.tidying = self._in_background(self._tidy(owned))

    async def _tidy(self, owned: Owned) -> None:
        """Delete them some at a time: there may be millions, and others have their turn."""
        begin = owned.live.arms.count if owned.live is not None else 0
        end = None
        while self.owned.get(owned.name) is owned and not self.closing:
            try:
                if end is None:
                    end = await self.read(lambda database: database.end_of_arms(owned.id))
                if begin >= end:
                    return
                some = owned.id, owned.epoch, begin, begin + SOME_ARMS
                await self.write(lambda db, some=some: db.drop_unpublished(*some))  # type: ignore[misc]
                begin += SOME_ARMS
            except RefusedError:  # the database is away
                await asyncio.sleep(_LOOK_AGAIN)

    # Who owns an experiment

    async def find(self, name: str, *, forwarded: bool = False) -> Owned | str:
        """Return an experiment that this node owns, or the address of the node that does."""
        owned = self.owned.get(name)
        if owned is not None:
            return self._checked(owned)
        until, address = self._elsewhere.get(name, (0.0, ""))
        if until > time.monotonic() and not forwarded:
            return address
        if self.closing:
            raise unavailable("This node is about to end.")
        async with self._locks.setdefault(name, asyncio.Lock()):
            owned = self.owned.get(name)
            return self._checked(owned) if owned is not None else await self._settle(name)

    def ready(self, name: str) -> Owned | None:
        """Return an experiment that this node owns, and that can be played at once."""
        owned = self.owned.get(name)
        return None if self.committer.away or (owned and owned.trouble) else owned

    def _checked(self, owned: Owned) -> Owned:
        if self.committer.away:
            raise unreachable(self.committer.away)
        if owned.trouble is not None:
            raise RefusedError(owned.trouble)
        return owned

    async def _settle(self, name: str) -> Owned | str:
        for _ in range(5):
            row = await self.read(lambda database: database.find(name))
            if row is None:
                self._locks.pop(name, None)
                raise unknown_experiment(name)
            if row.spec == "null":
                raise refuse(409, "recorded", f"{name!r} is a handle's that was recorded here.")
            address = row.owner.rpartition(" at ")[2]
            if not await self._may_take(row, address):
                self._elsewhere[name] = time.monotonic() + _KNOWN_ELSEWHERE, address
                return address
            if await self._acquired(row):
                return await self._load(name)
        raise unavailable(f"Several nodes want to own {name!r}.")

    async def _may_take(self, row: ExperimentRow, address: str) -> bool:
        if not row.owner or row.lease_left <= 0 or row.owner == self.owner:
            return True
        if not row.owner.startswith("node "):
            return False
        if address != self.address and await _listens(address):
            return False  # one that had our port is gone, unless its session says otherwise
        return not await self.read(lambda database: database.holds_session(row.owner))

    async def _acquired(self, row: ExperimentRow) -> bool:
        if row.owner not in ("", self.owner):
            self.takeovers += 1
            _logger.info("takes %s over from %s", row.name, row.owner)
        return await self.read(lambda database: database.acquire(row.name, self.owner, row.epoch))

    async def _load(self, name: str) -> Owned:
        row = await self.read(lambda database: database.find(name))
        if row is None or row.owner != self.owner:
            raise unavailable(f"Several nodes want to own {name!r}.")
        self._loading[row.id] = row.epoch
        try:
            owned = await self._loader.call(lambda database: _loaded(database, row))
        except UnreachableError as error:
            raise unreachable(error) from error
        except Exception as error:  # whatever it is, it concerns this experiment alone
            _logger.error("%s", error, exc_info=not isinstance(error, ReplayError))
            self._unplayable[name] = time.monotonic() + _IDLE
            await self.read(lambda database: database.release(row.id, row.epoch))
            raise RefusedError(Failure("replay", str(error), 503)) from error
        finally:
            del self._loading[row.id]
        owned.start(self.committer.wake)
        self.owned[name] = owned
        if owned.keyed:
            self.tidy(owned)
        if not owned.all_keys:
            self._later(lambda database: _keys(database, owned.id, MOST_KEYS), owned.recall)
        self._plan_expiry(owned)
        if gc.get_freeze_count():  # as `server.run` does in a process of its own
            gc.freeze()
        return owned

    def _was_lost(self, owned: Owned) -> None:
        _logger.warning("%s was taken over by another node", owned.name)
        self.forget(owned)

    def forget(self, owned: Owned) -> None:
        """Drop a handle: it is loaded anew, here or elsewhere."""
        owned.gone = True
        if self.owned.get(owned.name) is owned:
            del self.owned[owned.name]
        if owned.deadline is not None:
            owned.deadline.cancel()
        self.committer.drop(owned)
        settle(owned.forming.done, None, LostError())

    def broke(self, owned: Owned, error: BrokenError) -> RefusedError:
        """Drop a handle that is half changed, with what was not handed over; return the answer."""
        _logger.error("%s", error)
        settle(owned.forming.done, None, unavailable("The experiment is loaded anew."))
        self.forget(owned)
        return RefusedError(Failure("policy", str(error), 500))

    def forget_elsewhere(self, name: str) -> None:
        """Look again who owns an experiment."""
        self._elsewhere.pop(name, None)

    # Time

    def _plan_expiry(self, owned: Owned, at: float | None = None) -> None:
        if owned.spec.window is None or self.closing:
            return
        if at is None:
            first = next(iter(owned.waiting.values()), None)
            at = time.time() if first is None else first[0]
            at += owned.spec.window
        loop = asyncio.get_running_loop()
        pause = min(max(0.005, at - time.time()), owned.spec.window, 5.0)
        owned.deadline = loop.call_later(pause, self._expire, owned)

    def _expire(self, owned: Owned) -> None:
        if self.closing or self.owned.get(owned.name) is not owned:
            return
        at = None
        if not self.committer.away and owned.trouble is None:
            try:
                at = owned.expire(time.time())
            except BrokenError as error:
                self.broke(owned, error)
                return
        self._plan_expiry(owned, at)

    async def _keep(self) -> None:
        """Renew leases in time; take over experiments whose windows nobody watches."""
        beats = 0
        while True:
            await asyncio.sleep(Database.lease / 4)
            beats += 1
            try:
                await self._beat(adopts=beats % 4 == 0)
            except RefusedError:
                pass  # the database is away: that was said
            except Exception:  # without leases, others would take over
                _logger.exception("the node's upkeep failed")

    async def _beat(self, *, adopts: bool) -> None:
        now = time.monotonic()
        for owned in list(self.owned.values()):
            if now - owned.used < _IDLE or (owned.spec.window and owned.waiting):
                used = owned.used
                owned.touch()
                owned.used = used
        for number, epoch in list(self._loading.items()):
            await self.write(lambda db, n=number, e=epoch: db.renew(n, e))  # type: ignore[misc]
        if adopts:
            await self._adopt()

    async def _adopt(self) -> None:
        for row in await self.read(lambda database: database.experiments()):
            watched = row.spec != "null" and '"window":null' not in row.spec
            known = row.name in self.owned or self._unplayable.get(row.name, 0) > time.monotonic()
            if watched and row.lease_left < 0 and not known and await self._goes_on(row):
                with contextlib.suppress(RefusedError):
                    await self.find(row.name)

    async def _goes_on(self, row: ExperimentRow) -> bool:
        """Whether pulls may be in flight: of a stopped experiment the last ones end, too."""
        if row.state != "stopped":
            return row.state in ("running", "paused")
        if row.id in self._ended:
            return False
        if await self.read(lambda database: database.in_flight(row.id)):
            return True
        self._ended.add(row.id)
        return False

    async def close(self) -> None:
        """Commit, make snapshots, release."""
        self.closing = True
        for owned in self.owned.values():
            if owned.deadline is not None:
                owned.deadline.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
        end = time.monotonic() + _ENDING
        while not self.committer.idle and time.monotonic() < end:
            await asyncio.sleep(0.01)
        self.committer.give_up()
        if self.committer.idle:
            for owned in list(self.owned.values()):
                with contextlib.suppress(RefusedError, UnreachableError, ReplayError):
                    await self._leave(owned)
        await self.committer.stop()
        await self.reader.stop()
        await self._loader.stop()

    async def _leave(self, owned: Owned) -> None:
        saved = await self.committer.call(lambda database: database.snapshot(owned.id))
        head = owned.head
        # made here in the loop, where nothing can happen to the game meanwhile
        kept = None
        if owned.live is not None and (saved is None or saved[0] < head):
            kept = owned.snapshot()

        def leave(database: Database) -> None:
            if kept is not None:
                database.save(owned.id, head, owned.engine, *kept, epoch=owned.epoch)
            database.release(owned.id, owned.epoch)

        await self.committer.call(leave)


async def _listens(address: str) -> bool:
    """Whether somebody listens there; no answer in time counts as yes."""
    host, _, port = address.rpartition(":")
    try:
        opening = asyncio.open_connection(host.strip("[]"), int(port))
        _, writer = await asyncio.wait_for(opening, 1.0)
    except (ConnectionError, ValueError):
        return False
    except (OSError, TimeoutError):
        return True
    writer.close()
    return True


def _loaded(database: Database, row: ExperimentRow) -> Owned:
    owned = Owned.load(database, row)
    assert isinstance(owned, Owned)
    owned.keys = _keys(database, row.id, _FIRST_KEYS)
    owned.all_keys = len(owned.keys) < _FIRST_KEYS
    return owned


def _keys(database: Database, experiment: int, most: int) -> OrderedDict[str, AskedBefore]:
    """Return the last asks that had keys, the latest last."""
    return OrderedDict(
        (key, AskedBefore.of(*asked))
        for key, *asked in reversed(database.last_ask_keys(experiment, most))
    )


def _warmed_up(database: Database) -> None:
    """Import the policies that are played here now, not during a takeover."""
    for row in database.experiments():
        if row.spec != "null":
            with contextlib.suppress(ReplayError), as_replay_error(row.name):
                engine_of(msgspec.json.decode(row.spec, type=Spec))
