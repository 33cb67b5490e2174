"""An experiment that this node owns: requests change it, and what they did joins the next commit.

Nothing here waits. A request is applied, its events are added to the batch that is being formed,
and the caller waits for `batch.done`: no answer leaves before that.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from manyarms.errors import ManyarmsError
from manyarms.live import commands
from manyarms.live.commands import check_reward
from manyarms.live.databases import Batch, ExperimentRow, LogRow
from manyarms.live.databases.database import packed
from manyarms.live.game import LiveGame
from manyarms.live.store import ABANDONED, ASKED, TOLD
from manyarms.protocol.policy import arrive, retire
from manyarms.serve.committer import Answers, Forming
from manyarms.serve.errors import (
    BrokenError,
    LostError,
    RefusedError,
    as_refusals,
    failure_of,
    refuse,
)
from manyarms.serve.game import REPORTED, Game
from manyarms.serve.messages import Failure, Failures, StoppedFailure, Told

MOST_KEYS = 100_000  # of asks, that are remembered
_NONE: tuple[int, ...] = ()
_PLAIN = ((),)  # of an event: no names
_new = tuple.__new__  # makes a NamedTuple in half the time of its class

_OVER = (
    "All {} pulls of the horizon are made. Deploy the recommended arm. For more pulls, create a "
    "new experiment; without a horizon, prospector plays for ever."
)


class AskedBefore(NamedTuple):
    """What an ask with this key was given."""

    pull: int
    k: int
    again: tuple[int, ...]
    body: str

    @classmethod
    def of(cls, pull: int, k: int, again: str | None, body: str) -> AskedBefore:
        """Read what the database holds."""
        return cls(pull, k, tuple(json.loads(again)) if again else (), body)

    @property
    def pulls(self) -> list[int]:
        """All of them, in order."""
        return [*self.again, *range(self.pull, self.pull + self.k)]


class Given(NamedTuple):
    """The pulls of an ask; the arms of those that are in flight."""

    pulls: list[int]
    again: int
    arms: dict[int, int]


class Owned(Game):
    """A game with an epoch: what was applied, and a batch of what is not committed yet."""

    def __init__(self, row: ExperimentRow) -> None:
        super().__init__(row)
        self.epoch = row.epoch
        self.secret, self.generation = row.secret, row.generation
        self.names: dict[int, str] = {}  # of arms touched
        self.workers: dict[str, dict[int, None]] = {}
        self.keys: OrderedDict[str, AskedBefore] = OrderedDict()
        self.all_keys = True  # whether no key that is kept is missing among them
        self.used = time.monotonic()
        self.trouble: Failure | None = None  # why nothing is answered, if so
        self.gone = False  # whether it was dropped: another handle may be in its place
        self.importing = asyncio.Lock()
        self.tidying: asyncio.Task[None] | None = None  # deletes what an import has left
        self.wake: Callable[[Owned], None] = lambda owned: None  # hears that there is work
        self.deadline: asyncio.TimerHandle | None = None
        self.forming: Forming

    def start(self, wake: Callable[[Owned], None]) -> None:
        """Begin to serve what was loaded."""
        self.wake = wake
        if self.live is not None:
            self.live.log = []
        for pull, (_, worker) in self.waiting.items():
            if worker is not None:
                self.workers.setdefault(worker, {})[pull] = None
        self.forming = self._form()

    def _form(self) -> Forming:
        loop = asyncio.get_running_loop()
        batch = Batch(self.id, self.epoch, self.head)
        future: asyncio.Future[Answers] = loop.create_future()
        return Forming(batch, future)

    def take(self) -> Forming:
        """Return the batch that was formed, and begin the next."""
        formed, self.forming = self.forming, self._form()
        if formed.batch.events and self.engine:
            formed.batch.columns.setdefault("engine", self.engine)
        return formed

    def touch(self) -> Forming:
        """Let the next commit confirm that this node is the owner; return its batch."""
        self._check_held()
        self.used = time.monotonic()
        forming = self.forming
        if not forming.dirty:
            forming.dirty = True
            self.wake(self)
        return forming

    # What requests do

    def ask(self, k: int, worker: str | None, key: str | None, body: str) -> Given:
        """Give out pulls: those of the worker that are in flight first."""
        live = self._playing()
        again: tuple[int, ...] = _NONE
        if worker is not None:
            again = tuple(self.workers.get(worker, ()))[:k]
        count = k - len(again)
        if live.horizon is not None and count and live.pulls + count > live.horizon:
            if again:
                count = live.horizon - live.pulls
            elif live.pulls < live.horizon:
                with as_refusals():
                    commands.ask(live, count)
            else:
                raise RefusedError(StoppedFailure("horizon", _OVER.format(live.horizon), None))
        first, fresh, flight = live.pulls, len(live.tally), live.flight
        more = None if worker is None else json.dumps({"worker": worker})
        if count:
            asks = live.ask if count == 1 else lambda: [live.ask() for _ in range(count)]
            self._change(asks, more)[4] += len(live.tally) - fresh
        arms = {pull: flight[pull].arm for pull in (*again, *range(first, first + count))}
        if worker is not None:
            self.workers.setdefault(worker, {}).update(dict.fromkeys(range(first, first + count)))
        if key is not None:
            self._remember(key, AskedBefore(first, count, again, body), worker)
        self._name(arms.values())
        return Given([*arms], len(again), arms)

    def asked_before(self, before: AskedBefore, body: str) -> Given:
        """Return what an ask of this key was given."""
        if before.body != body:
            raise refuse(
                422, "key_reused", "This Idempotency-Key was used for another ask. Use a new one."
            )
        assert self.live is not None
        flight = self.live.flight
        arms = {pull: flight[pull].arm for pull in before.pulls if pull in flight}
        forming = self.touch()
        forming.repeated.update(pull for pull in before.pulls if pull not in arms)
        forming.names_repeated |= self.keyed
        self._name(arms.values())
        return Given(before.pulls, len(before.again), arms)

    def _remember(self, key: str, asked: AskedBefore, worker: str | None) -> None:
        again = json.dumps(asked.again) if asked.again else None
        self.forming.batch.keys.append(
            (key, asked.pull, asked.k, again, asked.body, worker, self.now)
        )
        self.keys[key] = asked
        if len(self.keys) > MOST_KEYS:
            self.keys.popitem(last=False)
            self.all_keys = False

    def recall(self, older: OrderedDict[str, AskedBefore]) -> None:
        """Remember asks of long ago, too: all that are kept, or as many as may be."""
        self.all_keys = len(older) < MOST_KEYS
        for key, asked in self.keys.items():
            older[key] = asked
        self.keys = older
        while len(older) > MOST_KEYS:
            older.popitem(last=False)
            self.all_keys = False

    def tell(self, pull: int, reward: float) -> Told | None:
        """Let a reward come; None if the pull is not in flight, which the database must explain."""
        live = self._there()
        try:
            value = check_reward(reward, live.reward_range)
        except ManyarmsError as error:
            return refused_tell(pull, failure_of(error))
        if pull not in live.flight:
            return self._not_in_flight(pull)
        if self.spec.early == "hold":
            return self._hold(pull, value)
        self._end(lambda: live.tell(pull, value), pull)
        return Told(pull, applied=True)

    def _hold(self, pull: int, reward: float) -> Told:
        if pull in self.held:
            if self.held[pull] == reward:
                return Told(pull, applied=False, held=True)
            return refused_tell(pull, _other_reward(pull, self.held[pull]))
        self._note([(REPORTED, pull, self._there().flight[pull].arm, reward)], None)
        return Told(pull, applied=True, held=True)

    def abandon(self, pull: int) -> Told | None:
        """Go on without the reward of a pull; None as for `tell`."""
        live = self._there()
        if pull not in live.flight:
            return self._not_in_flight(pull)
        self._end(lambda: live.abandon(pull), pull)
        return Told(pull, applied=True)

    def _not_in_flight(self, pull: int) -> Told | None:
        live = self._there()
        if pull >= live.pulls:
            last = f"The last one is {live.pulls - 1}." if live.pulls else "None was yet."
            said = f"Pull {pull} was not asked for. {last}"
            return refused_tell(pull, Failure("unknown_pull", said, 404))
        self.touch().repeated.add(pull)
        return None

    def _end(self, change: Callable[[], None], pull: int) -> None:
        worker = self.waiting[pull][1]
        self._change(change, None)
        if worker is not None:
            left = self.workers.get(worker, {})
            left.pop(pull, None)
            if not left:
                self.workers.pop(worker, None)

    def expire(self, now: float) -> float | None:
        """End the pulls whose window is over; return when the next one is."""
        window = self.spec.window
        if window is None or self.live is None:
            return None
        live, missing = self.live, self.spec.missing
        over = []
        for pull, (at, _) in self.waiting.items():
            if at + window > now:
                break
            over.append(pull)
        for pull in over:
            reward = self.held.get(pull, None if missing == "abandon" else missing)
            if reward is None:
                self._end(partial(live.abandon, pull), pull)
            else:
                self._end(partial(live.tell, pull, float(reward)), pull)
        first = next(iter(self.waiting.values()), None)
        return None if first is None else first[0] + window

    def add_arms(self, count: int) -> int:
        """Let new arms come; return how many ever came."""
        if self.live is None:
            self.begin(count)
            assert self.live is not None
            self.live.log = []
            self.touch().batch.columns |= {
                "first_arms": count,
                "n_arms": count,
                "keyed": int(self.keyed),
                "state": "running",
            }
            self.state = "running"
            return count
        live = self.live
        self.check_can_add()
        new = live.arms.fresh(count)
        self._change(lambda: live.arrive(new), None)
        self.forming.batch.columns["n_arms"] = live.arms.count
        return live.arms.count

    def check_can_add(self) -> None:
        """Raise unless arms may come."""
        if self.live is not None:
            with as_refusals():
                self._there().check_can(arrive)

    def retire(self, number: int) -> bool:
        """Let an arm go; False if it has gone already."""
        live = self._there()
        with as_refusals():
            live.check_can(retire)
        if number in live.retired:
            self.touch()
            return False
        if live.n_arms == 1:
            raise refuse(409, "last_arm", "This is the last arm. Add others first.")
        self._change(lambda: live.retire(number), None)
        return True

    def set_state(self, state: str) -> None:
        """Pause, resume or stop."""
        if self.state == "stopped" and state != "stopped":
            raise refuse(409, "stopped", f"{self.name} was stopped, which is for good.")
        if self.live is None:
            raise refuse(409, "no_arms", f"{self.name} has no arms yet. Add some.")
        self.state = state
        self.touch().batch.columns["state"] = state

    # How

    def _check_held(self) -> None:
        """Refuse a request that waited for something, and meanwhile the handle was dropped."""
        if self.gone:
            raise LostError

    def _there(self) -> LiveGame:
        self._check_held()
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

    def _change(self, change: Callable[[], object], more: str | None) -> list[float]:
        """Change the game; what it logs joins the batch. Return the counts of this minute."""
        live = self._there()
        assert live.log is not None
        try:
            change()
        except Exception as error:
            raise BrokenError(f"{self.name}: the policy failed midway with {error!r}") from error
        events, live.log = live.log, []
        return self._note(events, more)

    def _note(self, events: Iterable[tuple[Any, ...]], more: str | None) -> list[float]:
        now, batch = self.now, self.touch().batch
        minute = batch.minutes.get(int(now // 60))
        if minute is None:
            minute = batch.minutes[int(now // 60)] = [0, 0, 0, 0.0, 0]
        rows, head = [], self.head
        for event in events:
            head += 1
            kind, pull, arm, reward = event[:4]
            rest = more or (packed(event) if event[4:] != _PLAIN else None)
            rows.append(_new(LogRow, (head, kind, pull, arm, reward, now, rest)))
            if kind == ASKED:
                minute[0] += 1
            elif kind == TOLD:
                minute[1] += 1
                minute[3] += reward
            elif kind == ABANDONED:
                minute[2] += 1
        self.head = head
        self.count(rows)
        batch.events += rows
        return minute

    def _name(self, numbers: Iterable[int]) -> None:
        forming = self.touch()
        if self.keyed:
            forming.batch.unnamed.update(n for n in numbers if n not in self.names)

    def arm_name(self, number: int) -> str | int:
        """Return what users call an arm, once its batch is committed."""
        return self.names.get(number, number) if self.keyed else number


def told_before(pull: int, ended: tuple[int, float, int] | None, reward: float | None) -> Told:
    """Return the answer to a tell (or an abandon: no reward) of a pull that has ended."""
    if ended is None:
        return refused_tell(pull, Failure("unknown_pull", f"Pull {pull} is not known.", 404))
    kind, was, _ = ended
    if kind == ABANDONED:
        if reward is None:
            return Told(pull, applied=False)
        said = f"Pull {pull} was abandoned, or its window is over. The reward does not count."
        return refused_tell(pull, Failure("abandoned", said, 410))
    if reward is None:
        said = f"Pull {pull} cannot be abandoned: its reward {was:g} was told."
        return refused_tell(pull, Failure("told", said, 409))
    if reward == was:
        return Told(pull, applied=False)
    return refused_tell(pull, _other_reward(pull, was))


def _other_reward(pull: int, was: float) -> Failure:
    return Failure("told", f"Pull {pull} was told before, with the reward {was:g}.", 409)


def refused_tell(pull: int, failure: Failures) -> Told:
    """Return the answer to a tell or an abandon that is refused."""
    return Told(
        pull, applied=False, status=failure.status, code=failure.code, message=failure.message
    )
