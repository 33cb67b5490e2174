"""An experiment: a deterministic state machine over events.

`calls` checks a call and then changes the experiment; `replay` repeats the changes of a log. Each
change appends its events to `log`. The experiment has the numbers of arms, not their names.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice, takewhile
from typing import Any

from manyarms.core.jit import Dispatched, check_bodies
from manyarms.core.memory import SPARSE
from manyarms.errors import ParameterError
from manyarms.inference.facts import CONTROL, RECENT
from manyarms.inference.reported import count_delay, no_delays
from manyarms.live import kinds
from manyarms.live.arms import Seats
from manyarms.live.checks import MOST_HORIZON, check_can, exchangeable
from manyarms.live.counts import ArmCounts, ControlCounts, PendingPull, in_random_order
from manyarms.live.course import Course
from manyarms.live.settings import Settings
from manyarms.protocol.keys import policy_key
from manyarms.protocol.pending import abandon_pull, ask_pull, tell_pull
from manyarms.protocol.policy import Policy, arrive, ask, reset, retire, tell
from manyarms.protocol.registry import described_policy
from manyarms.store import Event

_NEVER = -1  # the generation of a pull whose reward the policy does not get
_new = tuple.__new__  # creates a NamedTuple twice as fast as its class does


class Experiment:
    """The state of an experiment. Each change appends its events to `log`, unless it is None.

    Attributes
    ----------
    settings
        The settings with which the experiment began.
    policy, horizon, seed, season
        Those of the present season; seasons are counted from 1. The horizon is the policy's number
        of choices, so it also counts the known rewards that it gets instead of pulls.
    most_pulls
        The largest number of pulls in all.
    state
        The state of the policy.
    n_all, retired
        The number of arms, including retired ones, and the set of retired arms.
    counts
        The counts of each arm, in the order in which arms were first pulled or observed. This order
        decides an arm's share of the intervals' error probability, and does not change with
        seasons.
    pending, held, abandoned
        Pending pulls, by number in the order of asks; rewards that count when the window of their
        pull ends, by pull; and the numbers of pulls that ended without a reward.
    next, pulls, turns
        The number of the next pull, the number of the policy's pulls, and the number of choices
        that the policy made in this season.
    unused
        The number of known rewards that the policy of this season has not been told.
    stock, drawn_next
        These rewards by arm (`_has_stock` adds those of earlier seasons when their arm is chosen);
        and the arms that are drawn next as fresh arms.
    status
        Stored in addition to the events, because the service may change it: `state`
        ("running", "paused" or "stopped") and the settings `epsilon` and `target`.
    course
        The time series for charts.
    named, skipped
        Arms that were chosen deliberately, not at random; and the number of initial arms that were
        retired before they had a reward.
    """

    def __init__(self, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self.settings, self.now = settings, now
        self.window, self.reward_range = settings.window, settings.reward_range
        self.first_arms = settings.n_arms
        self.n_all = settings.n_arms
        self.by_chance = exchangeable(settings.policy)  # of the first season's policy
        self.control: ControlCounts | None = None
        if settings.control is not None:
            self.control = ControlCounts(settings.share, settings.seed)
        self.retired: set[int] = set()
        self.counts: dict[int, ArmCounts] = {}
        self.pending: Any = SPARSE.records(MOST_HORIZON, PendingPull)
        self.held: dict[int, float] = {}
        self.abandoned: set[int] = set()  # about 65 bytes each
        self.named: set[int] = set()
        self.skipped = self.expired = self.unused = 0
        self.next = self.pulls = self.told = 0
        self.earned = 0.0
        self.recent: deque[int] = deque(maxlen=RECENT)
        self.delays = no_delays()
        self.seq = 0
        self.log: list[Event] | None = None
        self.status: dict[str, Any] = {}
        self.columns: Any = None  # the `TriedArms` that `live.facts` has made
        self.changed: Any = None  # arms that changed since; None while `columns` is None
        self.from_file = False  # whether the state was loaded from a snapshot
        self._by_arm: dict[int, list[int]] = {}  # pending pulls
        self._by_arm_at = -1  # `next` when `_by_arm` was made
        self.course = Course()
        self.season = 0
        self._begin(settings.policy, settings.horizon, settings.seed)

    def _begin(self, policy: Policy, horizon: int | None, seed: int) -> None:
        """Start a policy; without arms, it starts when the first ones are added."""
        self.policy, self.horizon, self.seed = policy, horizon, seed
        self.season += 1
        self.first_pull, self.last, self.turns = self.next, -1, 0
        self.most_pulls = horizon
        self.seats = Seats(self.n_all)
        self.stock: dict[int, deque[float]] = {}
        self.drawn_next: dict[int, None] = {}
        self._exchangeable = exchangeable(policy)
        self.state: Any = None
        if self.n_all == 0:
            return
        self.state = self.settings.new_state(policy, self.n_all, horizon)
        check_bodies(self.state, (reset, ask, tell))
        reset(self.state, policy_key(seed, 0), horizon or 0)

    def _note(
        self,
        kind: str,
        pull: int | None = None,
        arm: int | None = None,
        reward: float | None = None,
        detail: dict[str, Any] | None = None,
        at: float | None = None,
    ) -> None:
        if self.log is not None:
            self.seq += 1
            at = self.now() if at is None else at
            self.log.append(Event(self.seq, at, kind, pull, arm, reward, detail))

    # Asks

    def ask(self, more: int = 1, most: int = 0, exactly: int | None = None) -> int | None:
        """Let the policy choose the next pull; return its number.

        `more` is the number of pulls that are wanted, including this one. While the policy chooses
        an arm with a known reward that it has not been told, it is told this reward, and chooses
        again. After `most` such rewards, None is returned, so that the service can answer other
        requests; the next call continues. In a replay, `exactly` is the recorded number of such
        rewards.
        """
        number, used, pending = self.next, 0, self.pending
        before = self.last if self.last in pending else -1
        self.last = -1  # from now on, `before` is late
        while True:
            arm = ask_pull(self.state, pending, number, before)
            if not 0 <= arm < self.seats.count:
                raise ParameterError(
                    f"{self.policy} chose arm {arm!r}, but there are {self.n_all} arms, numbered "
                    f"from 0. Its `ask` must return (slot, arm), in this order."
                )
            if self.drawn_next or self.seats.arm_at:
                arm = pending[number].arm = self._seated(arm)
            self.turns += 1
            known = self.unused and self._has_stock(arm)  # in any case, because it changes `stock`
            if used == exactly or not known:
                break
            if exactly is None and self.horizon is not None and self.turns + more > self.horizon:
                break
            self._use(number, arm)
            used, before = used + 1, -1
            if used == most:
                self._note(kinds.USED, detail={"count": used})
                return None
        if exactly is not None and used != exactly:
            raise ParameterError(f"{self.policy} chose arm {arm}, which has no known rewards left.")
        self._hand_out(number, arm, used)
        return number

    def _hand_out(self, number: int, arm: int, used: int) -> None:
        now = self.now()
        self.pending[number].asked = now
        self.last, self.next = number, number + 1
        self.pulls += 1
        if self.control is not None:
            self.control.turns += 1
        self.recent.append(arm)
        point = self.course.at(now)
        point[0] += 1
        try:
            counts = self.counts[arm]
        except KeyError:
            counts = self.counts[arm] = ArmCounts()
            point[3] += 1
            if not self._exchangeable:
                self.named.add(arm)
        counts.asked += 1
        counts.season = self.season
        if self.changed is not None:
            self.changed.add(arm)
        if self.log is not None:
            self.seq += 1
            detail = {"used": used} if used else None
            self.log.append(_new(Event, (self.seq, now, kinds.ASKED, number, arm, None, detail)))

    def _seated(self, seat: int) -> int:
        """Return a seat's arm. If it is fresh, give the seat to the first arm of `drawn_next`."""
        arm = self.seats.arm(seat)
        if not self.drawn_next:
            return arm
        known = self.counts.get(arm)
        if arm in self.drawn_next or known is None or known.season != self.season:
            first = arm if not self._exchangeable else next(iter(self.drawn_next))
            self.drawn_next.pop(first, None)
            if first != arm:
                self.seats.swap(first, arm)
            return first
        return arm

    def _has_stock(self, arm: int) -> bool:
        """Return whether an arm has known rewards that the policy has not been told.

        Rewards of earlier seasons are put in order here, before a new reward is added. Doing so for
        all arms at the beginning of a season would take seconds.
        """
        if arm in self.stock:
            return True
        counts = self.counts.get(arm)
        if self.season == 1 or counts is None or counts.season == self.season or not counts.known:
            return False
        settings = self.settings
        self.stock[arm] = deque(in_random_order(arm, counts, settings.reward_range, settings.seed))
        return True

    def _use(self, number: int, arm: int) -> None:
        """Tell the policy the next known reward of the arm that it chose."""
        self.unused -= 1
        left = self.stock[arm]
        reward = left.popleft()
        if not left:
            del self.stock[arm]
        tell_pull(self.state, self.pending, number, reward)
        del self.pending[number]
        self.counts[arm].season = self.season

    def ask_for(self, count: int, most: int = 0) -> list[int]:
        """Choose `count` pulls, of the policy or of the control; return their numbers.

        There may be fewer if `most` is given, as for `ask`.
        """
        numbers: list[int] = []
        while len(numbers) < count:
            if self.control is not None and self.control.due:
                numbers.append(self.ask_control())
                continue
            number = self.ask(count - len(numbers), most)
            if number is None:
                break
            numbers.append(number)
        return numbers

    def use(self, count: int) -> None:
        """Replay a `USED` event: tell the policy `count` known rewards."""
        if self.ask(most=count) is not None:
            raise ParameterError(f"{self.policy} was told fewer than {count} known rewards.")

    def ask_control(self) -> int:
        """Give the next pull to the control; return its number."""
        assert self.control is not None
        number = self.next
        self.next = number + 1
        self.control.asked += 1
        self.control.turns += 1
        pull, now = self.pending[number], self.now()
        pull.arm, pull.asked = CONTROL, now
        self._note(kinds.ASKED, number, CONTROL, at=now)
        return number

    # Rewards

    def take(self, number: int, reward: float) -> None:
        """Accept the reward of a pending pull: credit it, or hold it until the window ends."""
        if self.settings.hold:
            self.hold(number, reward)
        else:
            self.tell(number, reward)

    def hold(self, number: int, reward: float) -> None:
        """Hold the reward of a pending pull until its window ends."""
        pull, now = self.pending[number], self.now()
        self.held[number] = reward
        count_delay(self.delays, now - pull.asked, reward)
        self._note(kinds.HELD, number, pull.arm, reward, at=now)

    def tell(self, number: int, reward: float, kind: str = kinds.TOLD) -> None:
        """Credit the reward of a pending pull."""
        pending, now = self.pending, self.now()
        pull = pending[number]
        arm = pull.arm
        if arm == CONTROL:
            assert self.control is not None
            self.control.told += 1
            self.control.total += reward
        else:
            if number >= self.first_pull:
                tell_pull(self.state, pending, number, reward)
            else:  # a pull of an earlier season
                self._remember(arm, reward)
            counts = self.counts[arm]
            counts.told += 1
            counts.total += reward
            self.told += 1
            self.earned += reward
            point = self.course.at(now)
            point[1] += 1
            point[2] += reward
            if self.changed is not None:
                self.changed.add(arm)
        del pending[number]
        if kind is kinds.TOLD and not (self.held and self.held.pop(number, None) is not None):
            count_delay(self.delays, now - pull.asked, reward)
        if self.log is not None:
            self.seq += 1
            self.log.append(_new(Event, (self.seq, now, kind, number, arm, reward, None)))

    def abandon(self, number: int) -> None:
        """End a pending pull without a reward."""
        self._end(number, kinds.ABANDONED)

    def _end(self, number: int, kind: str) -> None:
        arm = self.pending[number].arm
        if arm == CONTROL:
            assert self.control is not None
            self.control.abandoned += 1
        elif number >= self.first_pull:
            abandon_pull(self.state, self.pending, number)
        del self.pending[number]
        self.held.pop(number, None)
        self.abandoned.add(number)
        self._note(kind, number, arm)

    def expire(self, number: int) -> None:
        """End the window of a pending pull."""
        missing = self.settings.missing
        if number in self.held:
            self.tell(number, self.held[number])
            return
        self.expired += 1
        if missing is None:
            self._end(number, kinds.EXPIRED)
        else:
            self.tell(number, missing, kinds.EXPIRED)

    def overdue(self, most: int | None = None) -> list[int]:
        """Return the pending pulls whose windows have ended (the oldest `most` of them)."""
        if self.window is None or not self.pending:
            return []
        end = self.now() - self.window
        ended = takewhile(lambda one: one[1].asked <= end, self.pending.items())
        return [number for number, _ in islice(ended, most)]

    def observe(self, arm: int, rewards: Iterable[float]) -> None:
        """Record observed rewards of an arm."""
        counts = self.counts.get(arm)
        if counts is None:
            counts = self.counts[arm] = ArmCounts()
            self.named.add(arm)
        for reward in rewards:
            self._remember(arm, reward)
            counts.observed += 1
            counts.total += reward
            self._note(kinds.OBSERVED, None, arm, reward)
        if self.changed is not None:
            self.changed.add(arm)

    def _remember(self, arm: int, reward: float) -> None:
        """Keep a reward until the policy chooses its arm; let the policy draw the arm next."""
        if not self._has_stock(arm):
            self.stock[arm] = deque()
        self.stock[arm].append(reward)
        self.unused += 1
        if self.counts[arm].season != self.season and arm not in self.retired:
            self.drawn_next[arm] = None

    # Arms

    def add(self, count: int) -> None:
        """Add arms; start the policy if there were none."""
        if self.n_all == 0:
            self.begin_with(count)
        else:
            self.seats.add(self.n_all, count)
            self.n_all += count
            arrive(self.state, count)
        self._note(kinds.ADDED, detail={"count": count})

    def begin_with(self, count: int) -> None:
        """Add the first arms of an experiment, and start the policy."""
        self.first_arms = self.n_all = count
        self.season = 0
        self._begin(self.settings.policy, self.settings.horizon, self.settings.seed)

    def retire(self, arm: int) -> None:
        """Retire an arm."""
        for number in self._pending_of(arm):
            abandon_pull(self.state, self.pending, number)
        self.retired.add(arm)
        self.drawn_next.pop(arm, None)
        known = self.counts.get(arm)
        unrewarded = known is None or known.known == 0
        if arm < self.first_arms and unrewarded and arm not in self.named:
            self.skipped += 1
        retire(self.state, self.seats.seat(arm))
        if self.changed is not None:
            self.changed.add(arm)
        self._note(kinds.RETIRED, None, arm)

    def _pending_of(self, arm: int) -> list[int]:
        """Return the pending pulls of an arm in this season.

        They are cached for all arms until the next pull, because many arms may retire at once.
        """
        counts = self.counts.get(arm)
        if counts is None or counts.asked == counts.told:
            return []
        if self._by_arm_at != self.next:
            self._by_arm, self._by_arm_at = {}, self.next
            for number, pull in self.pending.items():
                if number >= self.first_pull:
                    self._by_arm.setdefault(pull.arm, []).append(number)
        return [number for number in self._by_arm.get(arm, ()) if number in self.pending]

    def restore(self, arm: int) -> None:
        """Restore a retired arm; it is the next fresh arm that the policy draws."""
        self.retired.remove(arm)
        self.seats.move_to_new_seat(arm)
        arrive(self.state, 1)
        self.drawn_next[arm] = None
        if arm not in self.counts and arm not in self.named:
            self.named.add(arm)
            if arm < self.first_arms:  # it was counted as skipped, and is now counted as named
                self.skipped -= 1
        if self.changed is not None:
            self.changed.add(arm)
        self._note(kinds.RESTORED, None, arm)

    @property
    def known(self) -> int:
        """The number of known rewards, told or observed, without those of the control."""
        return sum([counts.told + counts.observed for counts in self.counts.values()])

    @property
    def n_arms(self) -> int:
        """The number of available arms, without retired ones."""
        return self.n_all - len(self.retired)

    @property
    def left(self) -> int | None:
        """The number of pulls left in this season; None without a horizon.

        Observed rewards that the policy got instead of pulls are subtracted, too.
        """
        if self.horizon is None or self.most_pulls is None:
            return None
        return min(self.horizon - self.turns, self.most_pulls - self.pulls)

    def check_can(self, function: Dispatched[..., Any]) -> None:
        """Raise unless the policy and the policies that it wraps implement this function."""
        check_can(self.policy, self.state, function)

    # Seasons

    def begin_season(self, policy: Policy, horizon: int | None, seed: int) -> None:
        """Start a policy that gets all known rewards; pending pulls stay pending.

        `horizon` is the number of pulls to come. The policy is given this number plus the number of
        known rewards.
        """
        detail = {"policy": described_policy(policy), "horizon": horizon, "seed": seed}
        for pull in self.pending.values():
            pull.generation = _NEVER
        self.unused = self.known
        self._begin(policy, None if horizon is None else horizon + self.unused, seed)
        if horizon is not None:
            self.most_pulls = self.pulls + horizon
        self._by_arm_at = -1
        for arm in sorted(self.retired):
            retire(self.state, arm)
        self.drawn_next = {
            arm: None
            for arm, counts in self.counts.items()
            if counts.told + counts.observed and arm not in self.retired
        }
        self._note(kinds.SEASON, detail=detail)
