"""An experiment that the leader serves: requests change it, and the next commit records that.

A request changes the experiment by the rules of `manyarms.live.calls`. Its events are added to the
next batch. The caller awaits `committed_all()` before it answers.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from manyarms.errors import ManyarmsError, TurnError
from manyarms.live import arm_calls, calls
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Context
from manyarms.live.kinds import ABANDONED, EXPIRED, TOLD
from manyarms.serve import messages as m
from manyarms.serve.errors import (
    ABANDONED_PULL,
    BrokenError,
    LostError,
    RefusedError,
    ended_before,
    failure_of,
    other_reward,
    out_of_pulls,
    refuse,
    refused_tell,
)
from manyarms.serve.view_data import ViewData
from manyarms.store import Append, Event, ExperimentRecord, Request

T = TypeVar("T")
MOST_KEYS = 50_000  # idempotency keys that are remembered
MOST_ENDED = 100_000  # ended pulls that are remembered, to recognize repeated tells
MOST_PENDING = 1_000_000  # pending pulls: each takes memory, and time to load
_MOST_CHANGED = 2000  # arms that a view may have to update (some milliseconds)
_MOST_EXPIRED = 1000  # pulls that expire in one step: other requests wait meanwhile
_MOST_NEWS = 200  # items of news that a policy is told in one step, for the same reason
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, eq=False)
class Batch:
    """The uncommitted changes of an experiment, and the requests that wait for their commit."""

    append: Append
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def settle(self, error: Exception | None = None) -> None:
        """Wake the waiting requests, or raise an error in them; skip cancelled ones."""
        for waiter in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


class ServedExperiment:
    """An experiment, the names of its arms, and the changes since the last commit.

    Attributes
    ----------
    status
        What the store keeps beside the events: `state` ("running", "paused" or "stopped"),
        `target`, and `epsilon` if it was changed.
    keys
        The answers to the last asks with an idempotency key, each with the digest of its request.
    all_keys
        Whether `keys` has every key that the store has.
    ended
        The rewards of the last pulls that ended; None for those without a reward.
    committed, saved
        The last committed event, and the last event when a snapshot was last attempted.
    gone
        Whether the experiment was dropped from memory and must not be used.
    importing, changing, preparing
        Locks of the request that adds or syncs arms, of the one that changes `status`, and of an
        ask that tells the policy the news in pieces. Meanwhile all other changes wait.
    """

    def __init__(self, context: Context, record: ExperimentRecord, *, saved: int) -> None:
        self.context, self.experiment = context, context.experiment
        self.id, self.name = record.id, record.name
        self.status = self.experiment.status
        self.keys: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self.all_keys = True
        self.ended: OrderedDict[int, float | None] = OrderedDict()
        self.committed = self._taken = self.experiment.seq
        self.saved = saved
        self.gone = False
        self.importing, self.changing = asyncio.Lock(), asyncio.Lock()
        self.preparing = asyncio.Lock()
        self.deadline: asyncio.TimerHandle | None = None
        self.wake: Callable[[ServedExperiment], None] = lambda one: None
        self.view_data = ViewData(self)
        self.experiment.log = []
        self._names: list[tuple[int, str]] = []
        self._requests: list[Request] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._dirty = False

    def learn(self, event: Event) -> None:
        """Remember how a pull ended if an event says so."""
        if event.kind in (TOLD, EXPIRED, ABANDONED) and event.pull is not None:
            self._note_end(event.pull, event.reward)

    # Commits

    def touch(self) -> None:
        """Include this experiment in the next commit."""
        if self.gone:  # while the request waited for something
            raise LostError("the experiment was loaded again")
        if not self._dirty:
            self._dirty = True
            self.wake(self)

    def take(self) -> Batch:
        """Return the current batch, and begin another one."""
        events, self.experiment.log = self.experiment.log or [], []
        append = Append(self.id, self._taken, events, self._names, self._requests)
        batch = Batch(append, self._waiters)
        self._names, self._requests, self._waiters = [], [], []
        self._taken, self._dirty = self.experiment.seq, False
        return batch

    async def committed_all(self) -> None:
        """Wait until all changes so far are committed."""
        if self.is_committed and not self.gone:
            return
        self.touch()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    @property
    def is_committed(self) -> bool:
        """Whether all changes are committed."""
        return not self._dirty and self.committed == self._taken

    @property
    def waiting(self) -> int:
        """The number of requests that wait for the next commit."""
        return len(self._waiters)

    def drop(self, error: Exception) -> None:
        """Refuse all further use; uncommitted changes are lost."""
        self.gone = True
        if self.deadline is not None:
            self.deadline.cancel()
        Batch(Append(self.id, 0, ()), self._waiters).settle(error)

    def change(self, change: Callable[[], T]) -> T:
        """Make a change that was checked."""
        if self.gone:
            raise LostError("the experiment was loaded again")
        try:
            result = change()
        except Exception as error:
            raise BrokenError(f"{self.name}: the policy failed with {error!r}") from error
        self.touch()
        if len(self.experiment.ledger.changed or ()) > _MOST_CHANGED:
            self.view_data.refresh()
        return result

    # Asks

    @property
    def state(self) -> str:
        """Whether asks are answered: "running", "paused" or "stopped"."""
        return str(self.status.get("state", "running"))

    @property
    def phase(self) -> m.State:
        """The state to show: also "empty" without arms, or "finished" without pulls left."""
        ledger = self.experiment.ledger
        if ledger.n_all == 0 and self.state != "stopped":
            return "empty"
        finished = self.state == "running" and ledger.left == 0
        return "finished" if finished else self.state  # type: ignore[return-value]  # one of them

    @property
    def has_news(self) -> bool:
        """Whether the policy must be told news before the next pull."""
        search = self.experiment.search
        return search is not None and search.has_news

    async def prepared_ask(self, k: int, key: str | None) -> bytes:
        """Tell the policy the news in pieces, and answer an ask.

        Nothing else may change the experiment between the first piece and the pull, because a
        replay tells all news just before the pull. So do not cancel this.
        """
        async with self.preparing:
            change = self._check_ask(k, key)
            if isinstance(change, bytes):
                return change
            self.experiment.syncing = self.importing.locked()
            while not self.change(partial(self.experiment.prepare, _MOST_NEWS)):
                await asyncio.sleep(0)
            return self._answer(change, k, key)

    def ask(self, k: int, key: str | None) -> bytes:
        """Return the answer to an ask."""
        change = self._check_ask(k, key)
        return change if isinstance(change, bytes) else self._answer(change, k, key)

    def _check_ask(self, k: int, key: str | None) -> bytes | Callable[[], Any]:
        """Return a change that makes the pulls, or the answer to an earlier ask, or refuse."""
        if key is not None and key in self.keys:
            return self.asked_before(*self.keys[key], k)
        self._check_answers_asks()
        self._check_pending(k)
        try:
            return calls.ask(self.context, k)
        except TurnError as error:
            if error.left == 0:
                raise out_of_pulls(self.experiment.ledger.pulls) from error
            raise RefusedError(failure_of(error)) from error

    def _answer(self, change: Callable[[], Any], k: int, key: str | None) -> bytes:
        pulls = self.change(change)
        answer = _encode(m.Asked([m.GivenPull(pull.id, pull.arm) for pull in pulls]))
        if key is not None:
            self._remember(key, k, answer)
        return answer

    def asked_before(self, digest: str, answer: bytes, k: int) -> bytes:
        """Return the answer to an earlier ask with the same key."""
        if digest != _digest(k):
            raise refuse(
                422, "key_reused", "This Idempotency-Key was used for another ask. Use a new one."
            )
        return answer

    def _remember(self, key: str, k: int, answer: bytes) -> None:
        self._requests.append(Request(key, _digest(k), answer.decode(), self.experiment.now()))
        self.keys[key] = _digest(k), answer
        if len(self.keys) > MOST_KEYS:
            self.keys.popitem(last=False)
            self.all_keys = False

    def _check_answers_asks(self) -> None:
        if self.state == "paused":
            raise refuse(409, "paused", f"{self.name} is paused. Ask again when it is resumed.")
        if self.state == "stopped":
            raise RefusedError(m.StoppedFailure("stopped", f"{self.name} was stopped.", None))

    def _check_pending(self, count: int) -> None:
        pending = len(self.experiment.ledger.pending)
        if pending + count > MOST_PENDING:
            fix = "Tell or abandon some first"
            if self.experiment.settings.window is None:
                fix += ". An experiment with a `window` ends pulls whose rewards do not come"
            raise refuse(
                409,
                "too_many_pending",
                f"{self.name} has {pending:,} pending pulls and can have at most "
                f"{MOST_PENDING:,}, so {count} more are too many. {fix}.",
            )

    # Rewards

    def tell(self, pull: int, reward: float) -> m.Told:
        """Tell a reward."""
        held = self.experiment.ledger.held
        if pull in held:
            if held[pull] == reward:
                return m.Told(pull, applied=False, held=True)
            return refused_tell(pull, other_reward(pull, held[pull]))
        try:
            change = calls.tell(self.context, pull, reward)
        except ManyarmsError as error:
            return self._refused(pull, reward, error)
        assert change is not None
        self.change(change)
        if self.experiment.settings.hold:
            return m.Told(pull, applied=True, held=True)
        self._note_end(pull, reward)
        return m.Told(pull, applied=True)

    def abandon(self, pull: int) -> m.Told:
        """Abandon a pull whose reward will not come."""
        try:
            change = calls.abandon(self.context, pull)
        except ManyarmsError as error:
            return self._refused(pull, None, error)
        assert change is not None
        self.change(change)
        self._note_end(pull, None)
        return m.Told(pull, applied=True)

    def _note_end(self, pull: int, reward: float | None) -> None:
        self.ended[pull] = reward
        if len(self.ended) > MOST_ENDED:
            self.ended.popitem(last=False)

    def _refused(self, pull: int, reward: float | None, error: ManyarmsError) -> m.Told:
        reason = error.reason if isinstance(error, TurnError) else ""
        if reason in ("told", "abandoned"):
            known: Any = ABANDONED_PULL if reason == "abandoned" else None
            if pull in self.ended and self.ended[pull] is not None:
                known = self.ended[pull]
            window = self.experiment.settings.window is not None
            return ended_before(pull, known, reward, window=window)
        failure = failure_of(error)
        if reason == "unknown pull":
            failure = m.Failure("unknown_pull", failure.message, 404)
        return refused_tell(pull, failure)

    def expire(self) -> float | None:
        """End some pulls whose windows have ended; return when the next window ends."""
        ledger = self.experiment.ledger
        if ledger.overdue(self.experiment.now()) is not None:
            for event in self.change(partial(self.experiment.expire, _MOST_EXPIRED)):
                self.learn(event)
        end = ledger.next_end
        return None if math.isinf(end) else end

    # Arms and seasons

    @property
    def named(self) -> bool:
        """Whether arms have names; otherwise they have numbers."""
        return isinstance(self.context.arms, ArmNames)

    def do(self, call: Callable[..., Callable[[], T] | None], *given: Any) -> T | None:
        """Make a change by a function of `manyarms.live.calls`, or refuse."""
        try:
            change = call(self.context, *given)
        except ManyarmsError as error:
            raise RefusedError(failure_of(error)) from error
        return None if change is None else self.change(change)

    def add_arms(self, arms: Any, *, more: bool = False) -> int:
        """Add arms, given their names or how many; return the new total, with retired ones.

        `more` says that other arms of the same sync follow.
        """
        before = self.experiment.ledger.n_all
        added: Any = self.do(partial(arm_calls.add_arms, more=more), arms)
        if self.named:
            self._names += [(before + place, str(name)) for place, name in enumerate(added)]
        return self.experiment.ledger.n_all


def _digest(k: int) -> str:
    return f"ask {k}"
