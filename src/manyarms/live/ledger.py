"""What happened in an experiment: arms, pulls, rewards and seasons.

The ledger knows no policy. Estimates, intervals and verdicts follow from it and from the settings.
`RULES` are the only way to change it, in a handle, in the service and in a replay. They do not
check events: `calls` checks what a user asks for, `replaying` what a log says.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from manyarms.inference.facts import CONTROL, RECENT
from manyarms.inference.reported import count_delay, no_delays
from manyarms.live import kinds
from manyarms.live.counts import ArmCounts, ControlCounts, OpenPull
from manyarms.live.course import Course
from manyarms.store import Event

MOST_ABANDONED = 100_000  # numbers of abandoned pulls that are remembered; about 100 bytes each
CLOCK_STEP = 60.0  # seconds that a clock may go back before windows begin again
_new = tuple.__new__  # creates a NamedTuple twice as fast as its class does


class Ledger:
    """What happened in an experiment.

    Attributes
    ----------
    first_arms, n_all, retired
        The number of initial arms, the number of arms including retired ones, and the set of
        retired arms.
    counts
        The counts of each arm, in the order in which arms were first pulled or observed. This order
        decides an arm's share of the intervals' error probability, and never changes.
    named, missed
        Initial arms that were pulled or observed for another reason than a random draw; and these
        together with the initial arms that were retired before they had a reward.
    pending, held, abandoned
        The pending pulls, by number; rewards that count when the window of their pull ends, by
        number; and the numbers of the last pulls that ended without a reward.
    next, pulls, told, earned, observed
        The number of the next pull; the number of pulls without those of the control, and the
        number and the sum of their rewards; and the number of observed rewards.
    n_abandoned, expired
        The number of pulls that ended without a reward, also of the control; and the number of
        windows that ended without one.
    fractional
        The sum of r - r² over all rewards r. For rewards in [0, 1], it is 0 only if all are 0 or 1.
    control
        The counts of the control; None without one.
    season, began, promised, season_pulls
        The number of the present season, from 1; the number of the event with which it began; the
        number of pulls that it was given (None without a horizon); and `pulls` when it began.
    recent, delays, course
        The arms of the last pulls, statistics of delays, and the time series for charts.
    latest
        The largest time of an ask since the clock last went back.
    changed
        Arms that changed since `answers` last looked; None before.
    """

    def __init__(
        self, n_arms: int, horizon: int | None, *, window: float | None, has_control: bool
    ) -> None:
        self.window = window
        self.first_arms = self.n_all = n_arms
        self.retired: set[int] = set()
        self.counts: dict[int, ArmCounts] = {}
        self.named: set[int] = set()
        self.missed: set[int] = set()
        self.pending: dict[int, OpenPull] = {}
        self.held: dict[int, float] = {}
        self.abandoned: dict[int, None] = {}
        self.next = self.pulls = self.told = self.observed = 0
        self.n_abandoned = self.expired = 0
        self.earned = self.fractional = 0.0
        self.control = ControlCounts() if has_control else None
        self.season, self.began, self.promised, self.season_pulls = 1, 0, horizon, 0
        self.recent: deque[int] = deque(maxlen=RECENT)
        self.delays = no_delays()
        self.course = Course()
        self.changed: set[int] | None = None
        self._ends: list[tuple[float, int]] = []  # a heap of ends of windows
        self.latest = 0.0

    # Pulls

    def _asked(self, event: Event) -> None:
        _, at, _, number, arm, _, detail = event
        assert number is not None
        assert arm is not None
        self.next = number + 1
        if at > self.latest:
            self.latest = at
        else:
            self.renew_windows(at)
        if self.window is None:
            self.pending[number] = _new(OpenPull, (arm, at, math.inf))
        else:
            self._open_window(number, arm, at, at + self.window)
        if arm == CONTROL:
            assert self.control is not None
            self.control.asked += 1
            return
        self.pulls += 1
        self.recent.append(arm)
        point = self.course.at(at)
        point[0] += 1
        counts = self.counts.get(arm)
        if counts is None:
            point[3] += 1
            counts = self._meet(arm, by_name=detail is not None)
        counts.asked += 1
        if self.changed is not None:
            self.changed.add(arm)

    def _open_window(self, number: int, arm: int, at: float, ends: float) -> None:
        self.pending[number] = _new(OpenPull, (arm, at, ends))
        heappush(self._ends, (ends, number))
        if len(self._ends) > 1000 + 2 * len(self.pending):  # most of these pulls have ended
            self._sort_ends()

    def _sort_ends(self) -> None:
        self._ends = [(pull.ends, number) for number, pull in self.pending.items()]
        heapify(self._ends)

    def renew_windows(self, now: float) -> bool:
        """Begin windows again whose ask lies in the future, because the clock went back.

        Return whether the clock went back by more than `CLOCK_STEP`. Otherwise nothing changes.
        """
        if now >= self.latest - CLOCK_STEP:
            return False
        self.latest = now
        if self.window is not None:
            for number, pull in self.pending.items():
                if pull.asked > now:
                    self.pending[number] = OpenPull(pull.arm, now, now + self.window)
            self._sort_ends()
        return True

    def restore_windows(self, latest: float) -> None:
        """Restore what follows from the pending pulls, and `latest`."""
        self.latest = latest
        if self.window is not None:
            self._sort_ends()

    def overdue(self, now: float) -> int | None:
        """Return the pending pull whose window ended first; None if none has ended."""
        ends, pending = self._ends, self.pending
        while ends:
            end, number = ends[0]
            pull = pending.get(number)
            if pull is not None and pull.ends == end:
                return number if end <= now else None
            heappop(ends)  # it was told, or its window began again
        return None

    @property
    def next_end(self) -> float:
        """When the next window ends; infinity if none is open."""
        self.overdue(-math.inf)
        return self._ends[0][0] if self._ends else math.inf

    def _meet(self, arm: int, *, by_name: bool) -> ArmCounts:
        """Begin to count an arm; `by_name` says whether it was not drawn at random."""
        counts = self.counts[arm] = ArmCounts(len(self.counts))
        if by_name and arm < self.first_arms:
            self.named.add(arm)
            self.missed.add(arm)
        return counts

    # Rewards

    def _told(self, event: Event) -> None:
        _, at, _, number, arm, reward, _ = event
        assert number is not None
        assert arm is not None
        assert reward is not None
        pull = self.pending.pop(number)
        if not (self.held and self.held.pop(number, None) is not None):
            count_delay(self.delays, at - pull.asked, reward)
        self._credit(arm, reward, at)

    def _credit(self, arm: int, reward: float, at: float) -> None:
        squared = reward * reward
        self.fractional += reward - squared
        if arm == CONTROL:
            assert self.control is not None
            self.control.told += 1
            self.control.total += reward
            return
        counts = self.counts[arm]
        counts.told += 1
        counts.total += reward
        counts.squares += squared
        self.told += 1
        self.earned += reward
        point = self.course.at(at)
        point[1] += 1
        point[2] += reward
        if self.changed is not None:
            self.changed.add(arm)

    def _held(self, event: Event) -> None:
        _, at, _, number, _, reward, _ = event
        assert number is not None
        assert reward is not None
        self.held[number] = reward
        count_delay(self.delays, at - self.pending[number].asked, reward)

    def _expired(self, event: Event) -> None:
        self.expired += 1
        if event.reward is None:
            self._abandoned(event)
        else:
            assert event.pull is not None
            del self.pending[event.pull]
            assert event.arm is not None
            self._credit(event.arm, event.reward, event.at)

    def _abandoned(self, event: Event) -> None:
        assert event.pull is not None
        del self.pending[event.pull]
        self.held.pop(event.pull, None)
        self.n_abandoned += 1
        self.abandoned[event.pull] = None
        if len(self.abandoned) > MOST_ABANDONED:
            del self.abandoned[next(iter(self.abandoned))]
        if event.arm == CONTROL:
            assert self.control is not None
            self.control.abandoned += 1

    def _observed(self, event: Event) -> None:
        for arm, count, total, squares in observed_counts(event):
            counts = self.counts.get(arm) or self._meet(arm, by_name=True)
            counts.observed += count
            counts.total += total
            counts.squares += squares
            self.observed += count
            self.fractional += total - squares
            if self.changed is not None:
                self.changed.add(arm)

    # Arms and seasons

    def _added(self, event: Event) -> None:
        assert event.detail is not None
        if self.n_all == 0:
            self.first_arms = event.detail["count"]
        self.n_all += event.detail["count"]

    def _retired(self, event: Event) -> None:
        arm = event.arm
        assert arm is not None
        self.retired.add(arm)
        counts = self.counts.get(arm)
        if arm < self.first_arms and (counts is None or counts.known == 0):
            self.missed.add(arm)
        if self.changed is not None:
            self.changed.add(arm)

    def _restored(self, event: Event) -> None:
        assert event.arm is not None
        self.retired.remove(event.arm)
        if self.changed is not None:
            self.changed.add(event.arm)

    def _season(self, event: Event) -> None:
        assert event.detail is not None
        self.season += 1
        self.began, self.promised = event.seq, event.detail["horizon"]
        self.season_pulls = self.pulls

    # Queries

    @property
    def known(self) -> int:
        """The number of known rewards, told or observed, without those of the control."""
        return self.told + self.observed

    @property
    def n_arms(self) -> int:
        """The number of available arms, without retired ones."""
        return self.n_all - len(self.retired)

    @property
    def left(self) -> int | None:
        """The number of pulls left in this season; None without a horizon."""
        if self.promised is None:
            return None
        return self.promised - (self.pulls - self.season_pulls)


def observed_counts(event: Event) -> list[tuple[int, int, float, float]]:
    """Return what an event of observed rewards says.

    The result has for each arm its number, and the number of its rewards, their sum and the sum of
    their squares.
    """
    if event.arm is not None:
        reward = event.reward or 0.0
        return [(event.arm, 1, reward, reward * reward)]
    detail: dict[str, Any] = event.detail or {}
    return [(arm, count, total, squares) for arm, count, total, squares in detail["counts"]]


# how the ledger records an event, by kind; the kinds are listed nowhere else
RULES: dict[str, Callable[[Ledger, Event], None]] = {
    kinds.ASKED: Ledger._asked,
    kinds.TOLD: Ledger._told,
    kinds.HELD: Ledger._held,
    kinds.EXPIRED: Ledger._expired,
    kinds.ABANDONED: Ledger._abandoned,
    kinds.OBSERVED: Ledger._observed,
    kinds.ADDED: Ledger._added,
    kinds.RETIRED: Ledger._retired,
    kinds.RESTORED: Ledger._restored,
    kinds.SEASON: Ledger._season,
}
KINDS = RULES.keys()
