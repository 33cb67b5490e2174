"""An experiment: its settings, what happened (the ledger), and the search of the present season.

    command ──▶ check ──▶ events ──▶ Ledger ──▶ answers
                             │          │
                             └──────────┴─▶ Search ──▶ the next arm

`calls` checks a command and then makes its events; `replaying` checks the events of a log. Each
event goes through `apply`, to the ledger and to the search. The experiment has the numbers of arms,
not their names.
"""

from __future__ import annotations

import logging
import math
import numbers
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from manyarms.core.checks import shown
from manyarms.errors import ParameterError
from manyarms.inference.facts import CONTROL
from manyarms.live import kinds
from manyarms.live.checks import can_change
from manyarms.live.ledger import RULES, Ledger, observed_counts
from manyarms.live.search import Search
from manyarms.live.settings import Settings
from manyarms.live.turns import Turns
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import described_policy
from manyarms.store import Event

_new = tuple.__new__  # creates a NamedTuple twice as fast as its class does
_logger = logging.getLogger("manyarms.live")
ObservedCounts = tuple[int, int, float, float]  # an arm, and count, sum and sum of squares


class Experiment:
    """The state of an experiment.

    Attributes
    ----------
    settings
        The settings with which the experiment began.
    ledger, search
        What happened; and the search of the present season, None before there are arms.
    turns
        Which pulls are the control's; None without a control.
    seq, log
        The number of the last event; and the events that are not stored yet, None if none are.
    status
        Stored in addition to the events, because the service may change it: `state`
        ("running", "paused" or "stopped") and the settings `epsilon` and `target`.
    columns
        The `TriedArms` that `answers` has made.
    from_file
        Whether the state was loaded from a snapshot.
    syncing
        Whether other parts of the group of arms that came last follow.
    searching
        Whether there is a search as soon as there are arms; False while the events of earlier
        seasons are replayed for the ledger alone.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.time,
        *,
        searching: bool = True,
    ) -> None:
        self.settings, self.now = settings, now
        self.ledger = Ledger(
            settings.n_arms,
            settings.horizon,
            window=settings.window,
            has_control=settings.control is not None,
        )
        self.turns: Turns | None = None
        if settings.control is not None:
            self.turns = Turns(settings.share, settings.seed)
        self.search: Search | None = None
        self.seq = 0
        self.log: list[Event] | None = None
        self.status: dict[str, Any] = {}
        self.columns: Any = None
        self.from_file = self.syncing = False
        self.searching = searching
        if settings.n_arms and searching:
            self._begin(settings.policy, settings.horizon, settings.seed)

    def _begin(
        self, policy: Policy, horizon: int | None, seed: int, waiting: Sequence[int] = ()
    ) -> None:
        """Begin the search of a season with all that is known; newcomers still wait."""
        ledger = self.ledger
        state = self.settings.new_state(policy, ledger.n_all, horizon)
        search = Search(policy, state, n_arms=ledger.n_all, horizon=horizon, seed=seed)
        for arm in sorted(ledger.retired):
            search.leave(arm)
        for arm, counts in ledger.counts.items():
            if counts.known:
                search.hear(arm, counts.place, counts.known, counts.total, counts.squares)
        if waiting and can_change(policy, state):
            search.wait(waiting)
        self.search, self.searching = search, True

    @property
    def policy(self) -> Policy:
        """The policy of the present season."""
        return self.settings.policy if self.search is None else self.search.policy

    @property
    def seed(self) -> int:
        """The seed of the present season."""
        return self.settings.seed if self.search is None else self.search.seed

    # Events

    def apply(self, event: Event) -> None:
        """Record an event, and let the search know. Only a proposal of the search precedes one."""
        kind = event[2]
        RULES[kind](self.ledger, event)
        if kind in _LESSONS:
            _LESSONS[kind](self, event)

    def _note(
        self,
        kind: str,
        pull: int | None = None,
        arm: int | None = None,
        reward: float | None = None,
        detail: dict[str, Any] | None = None,
    ) -> Event:
        """Make the next event, and apply it."""
        at = self.now()
        if at - at != 0.0:
            check_time(at)
        self.seq += 1
        event: Event = _new(Event, (self.seq, at, kind, pull, arm, reward, detail))
        self.apply(event)
        if self.log is not None:
            self.log.append(event)
        return event

    def _learn_reward(self, event: Event) -> None:
        _, _, _, number, arm, reward, _ = event
        if arm == CONTROL or self.search is None:
            return
        assert number is not None
        assert arm is not None
        if reward is None:
            self.search.end(number)
        elif not self.search.tell(number, reward):
            self._hear(arm, 1, reward, reward * reward)

    def _hear(self, arm: int, count: int, total: float, squares: float) -> None:
        if self.search is not None:
            self.search.hear(arm, self.ledger.counts[arm].place, count, total, squares)

    def _learn_observed(self, event: Event) -> None:
        for observed in observed_counts(event):
            self._hear(*observed)

    def _learn_added(self, event: Event) -> None:
        detail: dict[str, Any] = event.detail or {}
        if self.search is not None:
            self.search.add(detail["count"], more=detail.get("more", False))
        elif self.searching:  # these are the first arms
            settings = self.settings
            self._begin(settings.policy, settings.horizon, settings.seed)

    def _learn_retired(self, event: Event) -> None:
        assert event.arm is not None
        if self.search is not None:
            self.search.leave(event.arm)

    def _learn_restored(self, event: Event) -> None:
        arm, search = event.arm, self.search
        assert arm is not None
        if search is None or not search.come_back(arm, more=bool(event.detail)):
            return
        counts = self.ledger.counts.get(arm)
        if counts is not None and counts.known:
            search.hear(arm, counts.place, counts.known, counts.total, counts.squares)

    # Commands

    def ask(self) -> Event:
        """Make the next pull, of the search or of the control."""
        ledger, at = self.ledger, self.now()
        if at - at != 0.0:
            check_time(at)
        number, detail = ledger.next, None
        if self.turns is not None and self.turns.is_control(number):
            arm = CONTROL
        else:
            search = self.search
            assert search is not None
            if search.has_news:
                self.prepare()
            arm, why = search.choose(number)
            if why is not kinds.AT_RANDOM:
                detail = {"why": why}
        self.seq += 1
        event: Event = _new(Event, (self.seq, at, kinds.ASKED, number, arm, None, detail))
        RULES[kinds.ASKED](ledger, event)
        if self.log is not None:
            self.log.append(event)
        return event

    def prepare(self, most: int | None = None) -> bool:
        """Tell the search's policy the news, or `most` items of it; return whether it knows all."""
        search = self.search
        assert search is not None
        if search.more and not self.syncing:  # the process that would have added more has ended
            self._note(kinds.ADDED, detail={"count": 0})
        return search.prepare(most)

    def take(self, number: int, reward: float) -> None:
        """Accept the reward of a pending pull: credit it, or hold it until the window ends."""
        kind = kinds.HELD if self.settings.hold else kinds.TOLD
        self._note(kind, number, self.ledger.pending[number].arm, reward)

    def abandon(self, number: int) -> None:
        """End a pending pull without a reward."""
        self._note(kinds.ABANDONED, number, self.ledger.pending[number].arm)

    def expire(self, most: int | None = None) -> list[Event]:
        """End the windows that have ended, the earliest `most` of them; return the events."""
        ledger, events = self.ledger, list[Event]()
        if ledger.window is None or not ledger.pending:
            return events
        now = self.check_clock()
        while (number := ledger.overdue(now)) is not None and len(events) != most:
            arm, held = ledger.pending[number].arm, ledger.held.get(number)
            if held is not None:
                events.append(self._note(kinds.TOLD, number, arm, held))
            else:
                events.append(self._note(kinds.EXPIRED, number, arm, self.settings.missing))
        return events

    def check_clock(self) -> float:
        """Return the time. If the clock went back, warn, and begin windows again where needed."""
        now = self.now()
        check_time(now)
        if self.ledger.renew_windows(now):
            _logger.warning(
                "The clock went back: it is now %.0f seconds since 1970, more than a minute before "
                "the last pull. Windows of pulls that were asked for later than now begin again.",
                now,
            )
        return now

    def observe(self, arm: int, rewards: Iterable[float]) -> None:
        """Record observed rewards of an arm."""
        for reward in rewards:
            self._note(kinds.OBSERVED, None, arm, reward)

    def observe_counts(self, counts: list[ObservedCounts]) -> None:
        """Record numbers, sums and sums of squares of observed rewards of several arms."""
        self._note(kinds.OBSERVED, detail={"counts": [list(one) for one in counts]})

    def add(self, count: int, *, more: bool = False) -> None:
        """Add arms; `more` says that other arms of the same group follow."""
        self._note(kinds.ADDED, detail={"count": count} | ({"more": True} if more else {}))

    def retire(self, arm: int) -> None:
        """Retire an arm."""
        self._note(kinds.RETIRED, None, arm)

    def restore(self, arm: int, *, more: bool = False) -> None:
        """Restore a retired arm; `more` as for `add`."""
        self._note(kinds.RESTORED, None, arm, detail={"more": True} if more else None)

    def begin_season(self, policy: Policy, horizon: int | None, seed: int) -> None:
        """Begin a season of `horizon` pulls; pending pulls stay pending."""
        detail: dict[str, Any] = {"policy": described_policy(policy)}
        detail |= {"horizon": horizon, "seed": seed}
        waiting = [] if self.search is None else self.search.waiting()
        counts = self.ledger.counts
        waiting = [arm for arm in waiting if arm not in counts or not counts[arm].known]
        if waiting:
            detail["waiting"] = waiting
        self._note(kinds.SEASON, detail=detail)
        self._begin(policy, horizon, seed, waiting)

    def apply_season(self, event: Event, policy: Policy) -> None:
        """Apply the event of a season in a replay; `policy` is the one that it describes."""
        detail: dict[str, Any] = event.detail or {}
        self.apply(event)
        self._begin(policy, detail["horizon"], detail["seed"], detail.get("waiting", ()))


# what the search learns from an event; it proposes the arm of a pull, and hears nothing of holds
_LESSONS: dict[str, Callable[[Experiment, Event], None]] = {
    kinds.TOLD: Experiment._learn_reward,
    kinds.EXPIRED: Experiment._learn_reward,
    kinds.ABANDONED: Experiment._learn_reward,
    kinds.OBSERVED: Experiment._learn_observed,
    kinds.ADDED: Experiment._learn_added,
    kinds.RETIRED: Experiment._learn_retired,
    kinds.RESTORED: Experiment._learn_restored,
}


def check_time(now: Any) -> None:
    """Raise unless a clock's time is a finite number."""
    if isinstance(now, numbers.Real) and math.isfinite(now):
        return
    raise ParameterError(
        f"`now` must return the time as a finite number of seconds since 1970, got {shown(now)}. "
        f"For a datetime, return its `timestamp()`.",
        parameter="now",
    )
