"""An experiment that the leader plays: requests change it, and what they did joins the next commit.

Nothing here waits. A request is applied, by the rules of `manyarms.live.commands`, its events are
added to the batch that is being formed, and the caller awaits `committed()`: no answer leaves
before that.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import islice
from typing import Any

from manyarms import __version__
from manyarms.errors import ManyarmsError, TurnError
from manyarms.live import commands
from manyarms.live.checks import check_first_draws
from manyarms.live.control import ARM, OF_CONTROL
from manyarms.live.databases import Database, ExperimentRow, LogRow
from manyarms.live.databases.database import packed
from manyarms.live.game import LiveGame
from manyarms.live.store import EventKind
from manyarms.serve import tables
from manyarms.serve.asks import AskedBefore, GivenPulls, compact, pending_arms
from manyarms.serve.batch import Batch, LostError
from manyarms.serve.errors import (
    BrokenError,
    RefusedError,
    as_refusals,
    failure_of,
    other_reward,
    out_of_pulls,
    refuse,
    refused_tell,
)
from manyarms.serve.game import Game, policy_of
from manyarms.serve.look import Look
from manyarms.serve.messages import Failure, StoppedFailure, Told

MOST_KEYS = 100_000  # of asks, that are remembered
_MOST_NAMES = 100_000  # keys of arms that are remembered
_MOST_CHANGED = 2000  # arms that a view may have to look at anew, in some milliseconds
_MOST_EXPIRED = 2000  # pulls whose windows end at a time: others wait for them
_MOST_ANSWERED = 1000  # pulls that observed rewards answer before others have their turn: 50 ms
_PLAIN = ((),)  # of an event: no names
_new = tuple.__new__  # makes a NamedTuple in half the time of its class


class Experiment(Game):
    """A game that goes on: what was applied, and a batch of what is not committed yet.

    Attributes
    ----------
    committed_head, saved_head
        The last event that is durable, and the one of the last snapshot.
    gone
        Whether it was forgotten: another object may be in its place.
    """

    def __init__(self, row: ExperimentRow) -> None:
        super().__init__(row)
        self._names: dict[int, str] = {}  # keys of arms that were asked for
        self.keys: OrderedDict[str, AskedBefore] = OrderedDict()
        self.all_keys = True  # whether no key that is kept is missing among them
        self.used = time.monotonic()
        self.committed_head = row.head
        self.saved_head = 0
        self.gone = False
        self.look = Look(self)
        self.importing = asyncio.Lock()
        self.tidying: asyncio.Task[None] | None = None  # deletes what an import has left
        self.wake: Callable[[Experiment], None] = lambda experiment: None  # hears of work
        self.deadline: asyncio.TimerHandle | None = None
        self._dirty = False
        self._batch: Batch

    @classmethod
    def load_all(cls, database: Database, row: ExperimentRow) -> Experiment:
        """Return the experiment that a database holds, with the keys of its last asks."""
        one = cls.load(database, row)
        saved = database.first("SELECT max(seq) FROM snapshots WHERE experiment = :x", x=row.id)
        one.saved_head = saved[0] or 0
        for key, *asked in reversed(tables.last_ask_keys(database, row.id, MOST_KEYS)):
            one.keys[key] = AskedBefore.of(*asked)
        one.all_keys = len(one.keys) < MOST_KEYS
        one.look.refresh()  # here and not in the loop: there may be a million arms
        return one

    def start(self, wake: Callable[[Experiment], None]) -> None:
        """Begin to serve what was loaded."""
        self.wake = wake
        if self.live is not None:
            self.live.log = []
        self._batch = Batch(self.id, self.head)

    def take(self) -> Batch:
        """Return the batch that was formed, and begin the next."""
        formed, self._batch = self._batch, Batch(self.id, self.head)
        self._dirty = False
        if formed.events and self.version != __version__:
            self.version = formed.columns["version"] = __version__
        return formed

    def touch(self) -> Batch:
        """Let the next commit confirm that this process leads; return its batch."""
        if self.gone:  # while the request waited for something
            raise LostError("the experiment was loaded anew")
        self.used = time.monotonic()
        if not self._dirty:
            self._dirty = True
            self.wake(self)
        return self._batch

    def committed(self) -> asyncio.Future[Batch]:
        """Return what becomes true when all that was done so far is durable."""
        waiter: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        self.touch().waiters.append(waiter)
        return waiter

    @property
    def waiters(self) -> int:
        """How many wait for the next commit."""
        return len(self._batch.waiters)

    @property
    def needed(self) -> bool:
        """Whether it must stay loaded, even if nobody uses it."""
        watched = self.spec.window is not None and self.flying
        return bool(watched) or self.importing.locked()

    def forget(self, error: Exception) -> None:
        """Do nothing any more; what was not committed is not known."""
        self.gone = True
        if self.deadline is not None:
            self.deadline.cancel()
        self._batch.settle(error)

    # Asks

    def ask(self, k: int, key: str | None) -> GivenPulls:
        """Give out pulls. There may be none, if observed rewards have answered many: ask again."""
        live = self._playing()
        self._check_room(k)
        arms = pending_arms(live, self._ask_new(live, k))
        if key is not None and arms:
            self._remember(key, AskedBefore(k, compact([*arms])))
        return GivenPulls([*arms], arms, self._named(arms.values()), self.spec.control)

    def _check_room(self, count: int) -> None:
        """Refuse pulls beyond those that may be pending: each takes memory, and time to load."""
        most, flying = self.spec.max_pending, len(self.flying)
        if flying + count > most:
            fix = "Tell or abandon some first"
            if self.spec.window is None:
                fix += "; with a `window`, an experiment gives up those whose rewards do not come"
            raise refuse(
                409,
                "max_pending",
                f"{self.name} may have {most} pending pulls, and has {flying}: there is no room "
                f"for {count} more. {fix}.",
            )

    def _ask_new(self, live: LiveGame, count: int) -> list[int]:
        try:
            change = commands.ask(live, count, _MOST_ANSWERED)
        except TurnError as error:
            if error.left == 0:
                raise out_of_pulls(live.horizon) from error
            raise RefusedError(failure_of(error)) from error
        tried = len(live.tally)
        given, minute = self._change(change)
        minute[4] += len(live.tally) - tried
        return [pull.id for pull in given]

    def asked_before(self, before: AskedBefore, k: int) -> GivenPulls:
        """Return what an ask of this key was given."""
        if before.k != k:
            raise refuse(
                422, "key_reused", "This Idempotency-Key was used for another ask. Use a new one."
            )
        arms = pending_arms(self._there(), before.pulls)
        batch = self.touch()
        batch.repeated.update(pull for pull in before.pulls if pull not in arms)
        batch.names_repeated |= self.keyed
        names = self._named(arms.values())
        return GivenPulls(before.pulls, arms, names, self.spec.control)

    def _remember(self, key: str, asked: AskedBefore) -> None:
        self._batch.keys.append((key, *asked.columns(), self.now))
        self.keys[key] = asked
        if len(self.keys) > MOST_KEYS:
            self.keys.popitem(last=False)
            self.all_keys = False

    def _named(self, numbers: Collection[int]) -> dict[int, str] | None:
        """Return the keys of arms that are known; the commit finds out the others."""
        batch = self.touch()
        if not self.keyed:
            return None
        known = {n: self._names[n] for n in numbers if n in self._names}
        batch.unnamed.update(n for n in numbers if n not in known and n != ARM)
        return known

    def learn(self, names: dict[int, str]) -> None:
        """Remember keys of arms, for later asks."""
        if len(self._names) > _MOST_NAMES:
            self._names.clear()
        self._names |= names

    # Rewards

    def tell(self, pull: int, reward: float) -> Told | None:
        """Let a reward come; None if the pull has ended, of which the commit finds out how."""
        live = self._there()
        try:
            change = commands.tell(live, pull, reward)
        except ManyarmsError as error:
            return self._refused(pull, error)
        assert change is not None
        if self.spec.early == "hold":
            return self._hold(live, pull, reward)
        self._change(change)
        return Told(pull, applied=True)

    def _hold(self, live: LiveGame, pull: int, reward: float) -> Told:
        if pull in self.held:
            if self.held[pull] == reward:
                return Told(pull, applied=False, held=True)
            return refused_tell(pull, other_reward(pull, self.held[pull]))
        self._note([(EventKind.REPORTED, pull, live.flying(pull), reward)])
        return Told(pull, applied=True, held=True)

    def abandon(self, pull: int) -> Told | None:
        """Go on without the reward of a pull; None as for `tell`."""
        try:
            change = commands.abandon(self._there(), pull)
        except ManyarmsError as error:
            return self._refused(pull, error)
        assert change is not None
        self._change(change)
        return Told(pull, applied=True)

    def _refused(self, pull: int, error: ManyarmsError) -> Told | None:
        reason = error.reason if isinstance(error, TurnError) else ""
        if reason in ("told", "abandoned"):
            self.touch().repeated.add(pull)
            return None
        failure = failure_of(error)
        if reason == "unknown pull":
            failure = Failure("unknown_pull", failure.message, 404)
        return refused_tell(pull, failure)

    def expire(self, now: float) -> float | None:
        """End pulls whose window is over, some at a time; return when the next one is."""
        window, live = self.spec.window, self.live
        if window is None or live is None:
            return None
        for pull, at in list(islice(self.flying.items(), _MOST_EXPIRED)):
            if at + window > now:
                break
            reward = self.held.get(pull, self.spec.missing)
            if reward == "abandon":
                self._change(partial(live.abandon, pull))
            else:
                self._change(partial(live.tell, pull, float(reward)))
        first = next(iter(self.flying.values()), None)
        return None if first is None else first + window

    def observe(self, number: int, rewards: list[float]) -> int:
        """Keep rewards of an arm that no pull earned; return how many."""
        with as_refusals():
            change = commands.observe(self._there(), number, rewards)
        if change is not None:
            self._change(change)
        return len(rewards)

    # Arms, and the state

    def add_arms(self, count: int) -> int:
        """Let new arms come; return how many ever came."""
        if self.live is None:
            with as_refusals():
                check_first_draws(policy_of(self.spec.policy), count, self.spec.horizon)
            self.begin(count)
            assert self.live is not None
            self.live.log = []
            self.state = "running"
            self.touch().columns |= {
                "first_arms": count,
                "n_arms": count,
                "keyed": int(self.keyed),
                "state": "running",
            }
            return count
        with as_refusals():
            change = commands.add_arms(self.live, count)
        self._change(change)
        self._batch.columns["n_arms"] = self.live.arms.count
        return self.live.arms.count

    def check_can_add(self) -> None:
        """Raise unless arms may come."""
        if self.live is not None:
            with as_refusals():
                commands.add_arms(self._there(), 1)

    def retire(self, number: int) -> bool:
        """Let an arm go; False if it has gone already."""
        return self._come_and_go(commands.retire, number, "retired")

    def restore(self, number: int) -> bool:
        """Let a retired arm come back; False if it is there."""
        return self._come_and_go(commands.restore, number, "not retired")

    def _come_and_go(
        self, command: Callable[..., commands.Change[None]], number: int, done: str
    ) -> bool:
        try:
            change = command(self._there(), number)
        except TurnError as error:
            if error.reason == done:
                self.touch()
                return False
            code = error.reason.replace(" ", "_")
            raise refuse(409, code, f"{error}") from error
        except ManyarmsError as error:
            raise RefusedError(failure_of(error)) from error
        self._change(change)
        return True

    def set_state(self, state: str) -> None:
        """Pause, resume or stop."""
        if self.state == "stopped" and state != "stopped":
            raise refuse(409, "stopped", f"{self.name} was stopped, and cannot be resumed.")
        if self.live is None:
            raise refuse(409, "no_arms", f"{self.name} has no arms yet. Add some.")
        self.state = state
        self.look.judge_anew()
        self.touch().columns["state"] = state

    # How

    def _there(self) -> LiveGame:
        if self.gone:
            raise LostError("the experiment was loaded anew")
        if self.live is None:
            raise refuse(
                409, "no_arms", f"{self.name} has no arms yet. POST some to .../arms first."
            )
        return self.live

    def _playing(self) -> LiveGame:
        live = self._there()
        if self.state == "paused":
            raise refuse(409, "paused", f"{self.name} is paused. Ask again when it was resumed.")
        if self.state == "stopped":
            raise RefusedError(StoppedFailure("stopped", f"{self.name} was stopped.", None))
        return live

    def _change(self, change: Callable[[], Any]) -> tuple[Any, list[float]]:
        """Change the game; what it logs joins the batch.

        Return what the change returned, and the counts of this minute.
        """
        live = self._there()
        assert live.log is not None
        try:
            result = change()
        except Exception as error:
            raise BrokenError(f"{self.name}: the policy failed midway with {error!r}") from error
        events, live.log = live.log, []
        return result, self._note(events)

    def _note(self, events: Iterable[tuple[Any, ...]]) -> list[float]:
        now, batch = self.now, self.touch()
        minute = batch.minutes.get(int(now // 60))
        if minute is None:
            minute = batch.minutes[int(now // 60)] = [0, 0, 0, 0.0, 0]
        rows, head = [], self.head
        for event in events:
            head += 1
            kind, pull, arm, reward = event[:4]
            more = None
            if pull >= OF_CONTROL:  # minutes are the policy's
                pass
            elif kind == EventKind.ASKED:
                minute[0] += 1
            elif kind in (EventKind.TOLD, EventKind.ANSWERED):
                minute[1] += 1
                minute[3] += reward
            elif kind == EventKind.ABANDONED:
                minute[2] += 1
            elif event[4:] != _PLAIN:
                more = packed(event)
            rows.append(_new(LogRow, (head, int(kind), pull, arm, reward, now, more)))
        self.head = head
        self.count(rows)
        if self.live is not None and len(self.live.changed or ()) > _MOST_CHANGED:
            self.look.refresh()
        batch.events += rows
        return minute
