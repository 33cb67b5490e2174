"""The search of one season: a policy, the seats of the arms, and what the policy was told.

The search knows no windows, control, store or intervals. It is told rewards of its pulls, rewards
that are known from elsewhere, and which arms came and went; it answers with the next arm, and why
that arm was chosen.

Rewards of its pulls reach the policy at once. All other news waits until the next proposal
(`prepare`), so that arms that come between two proposals are one group, and known rewards of an arm
are one sum, whatever calls brought them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from manyarms.core.jit import Dispatched, check_bodies
from manyarms.core.memory import SPARSE
from manyarms.errors import ParameterError
from manyarms.live.arms import Seats
from manyarms.live.checks import MOST_HORIZON, check_can, exchangeable
from manyarms.live.kinds import AT_RANDOM, BY_NUMBER, NEW, RETURNED
from manyarms.protocol.keys import policy_key
from manyarms.protocol.pending import PendingRecord, abandon_pull, ask_pull, tell_pull
from manyarms.protocol.policy import (
    Policy,
    arrive,
    ask,
    credit_known,
    recommend,
    reset,
    retire,
    tell,
)

MOST_WAITING = 10_000  # newcomers that wait when a season begins; their numbers are in its event


class Search:
    """A policy at work for one season.

    Attributes
    ----------
    policy, horizon, seed
        The policy, the number of its pulls to come (None if unknown), and the seed of its choices.
    state
        The policy's state.
    credits
        Whether the policy can be told known rewards.
    first_arms, n_seated, n_arms
        The number of arms when the season began; the number of arms that have a seat; and the
        number of all arms. The arms from `n_seated` on are seated before the next proposal.
    seats
        By which numbers the policy knows arms.
    opened
        The arms that the policy has opened.
    pending, last
        The policy's own records of its pending pulls; and the number of its last pull.
    gone
        The arms that the policy was told to retire.
    leaving, returning, due
        News that waits: the arms to retire and the arms to seat again; and the known rewards of
        arms, as a list of place, count, sum and sum of squares. `due` is credited by place.
    earlier
        The arms of `returning` that came in an earlier season and were never tried.
    returned
        The arms that were seated again, until the policy opens them.
    has_news
        Whether something waits for the next proposal.
    more
        Whether the arms that came last are the first part of a group. They are not seated before
        the last part has come.
    """

    def __init__(
        self, policy: Policy, state: Any, *, n_arms: int, horizon: int | None, seed: int
    ) -> None:
        self.policy, self.horizon, self.seed = policy, horizon, seed
        self.state = state
        check_bodies(self.state, (reset, ask, tell))
        reset(self.state, policy_key(seed, 0), horizon or 0)
        self.credits = type(self.state) in credit_known.bodies
        self.first_arms = self.n_seated = self.n_arms = n_arms
        self.seats = Seats(n_arms)
        self.opened: set[int] = set()
        self.pending: Any = SPARSE.records(MOST_HORIZON, PendingRecord)
        self.last = -1
        self.gone: set[int] = set()
        self.leaving: dict[int, None] = {}
        self.returning: dict[int, None] = {}
        self.earlier: dict[int, None] = {}
        self.due: dict[int, list[Any]] = {}
        self.returned: dict[int, None] = {}
        self.has_news = self.more = False
        self._at_random = exchangeable(policy)
        self._newest = n_arms - 1  # all newer arms are opened, gone or returned
        self._work: Iterator[None] | None = None  # what `prepare` has begun

    # Proposals

    def choose(self, number: int) -> tuple[int, str]:
        """Let the policy choose the arm of a pull; return the arm, and why if it was fresh."""
        if self.has_news:
            self.prepare()
        pending, seats, last = self.pending, self.seats, self.last
        self.last = number
        seat = ask_pull(self.state, pending, number, last if last in pending else -1)
        if not 0 <= seat < seats.count:
            raise ParameterError(
                f"{self.policy} chose arm {seat!r}, but there are {self.n_seated} arms, numbered "
                f"from 0. Its `ask` must return (slot, arm), in this order."
            )
        arm, why = seats.arm(seat) if seats.arm_at else seat, AT_RANDOM
        if arm not in self.opened:
            arm, why = self._open(seat, arm)
            self.opened.add(arm)
        if arm != seat:
            pending[number].arm = arm
        return arm, why

    def _open(self, seat: int, arm: int) -> tuple[int, str]:
        """Return the arm that a fresh seat gets, and why. `arm` sits there now.

        Arms of known rewards have got seats before (`_credit`), and moved other arms to theirs. So
        an old arm may sit where a newcomer did. The seats of newcomers are for newcomers first,
        because the policy may try them at once; an old arm that moves is one drawn at random.
        """
        if not self._at_random:
            self.returned.pop(arm, None)
            return arm, BY_NUMBER
        if seat >= self.first_arms and not self._is_newcomer(arm):
            newcomer = self._waiting_newcomer()
            if newcomer is not None:
                self.seats.swap(arm, newcomer)
                arm = newcomer
        if arm in self.returned:
            del self.returned[arm]
            return arm, RETURNED
        return arm, NEW if arm >= self.first_arms else AT_RANDOM

    def _is_newcomer(self, arm: int) -> bool:
        return arm >= self.first_arms or arm in self.returned

    def _waiting_newcomer(self) -> int | None:
        """Return a newcomer that the policy has not opened, the newest one first."""
        while self._newest >= self.first_arms:
            arm = self._newest
            if not (arm in self.opened or arm in self.gone or arm in self.returned):
                return arm
            self._newest -= 1
        return next(iter(self.returned), None)

    # Rewards

    def tell(self, number: int, reward: float) -> bool:
        """Tell the policy the reward of a pull; return False if it is not a pull of this search."""
        pending = self.pending
        if number not in pending:
            return False
        tell_pull(self.state, pending, number, reward)
        del pending[number]
        return True

    def end(self, number: int) -> None:
        """End a pull without a reward."""
        if number in self.pending:
            abandon_pull(self.state, self.pending, number)
            del self.pending[number]

    def begin_with(self, known: Iterable[tuple[int, list[Any]]]) -> None:
        """Note all that is known when a season begins: rows as in `due`, by arm."""
        if self.credits:
            self.due = dict(known)
            self.has_news = True

    def hear(self, arm: int, place: int, count: int, total: float, squares: float) -> None:
        """Note known rewards of an arm. `place` is its place in the order of first pulls."""
        if not self.credits or (arm in self.gone and arm not in self.returning):
            return  # when the arm returns, all its rewards are known
        due = self.due.setdefault(arm, [place, 0, 0.0, 0.0])
        due[1] += count
        due[2] += total
        due[3] += squares
        self.has_news = True

    # Arms

    def add(self, count: int, *, more: bool = False) -> None:
        """Add arms; `more` says that other arms of the same group follow."""
        self.n_arms += count
        self.has_news, self.more = True, more

    def leave(self, arm: int) -> None:
        """Retire an arm."""
        if arm in self.returning:
            del self.returning[arm]
            if arm not in self.leaving:
                self.due.pop(arm, None)
        else:
            self.leaving[arm] = None
        self.has_news = True

    def come_back(self, arm: int, *, more: bool = False) -> bool:
        """Restore an arm; return whether its known rewards must be told.

        An arm that the policy has opened, and was not told to retire yet, keeps its seat and all
        that is known of it. An arm that it has not opened gets a new seat in any case.
        """
        self.has_news, self.more = True, more
        if arm in self.leaving and arm in self.opened:
            del self.leaving[arm]
            return False
        self.returning[arm] = None
        return arm not in self.leaving

    def check_can(self, function: Dispatched[..., Any]) -> None:
        """Raise unless the policy and the policies that it wraps implement this function."""
        check_can(self.policy, self.state, function)

    def waiting(self) -> list[int]:
        """Return the newcomers that the policy has not opened, at most the newest `MOST_WAITING`.

        A season that begins now treats them as newcomers, too.
        """
        since = max(self.first_arms, self.n_arms - MOST_WAITING)
        away = (self.gone | self.leaving.keys()) - self.returning.keys()
        arms = [*self.returned, *self.returning, *range(since, self.n_arms)]
        waiting = [arm for arm in dict.fromkeys(arms) if not (arm in self.opened or arm in away)]
        return waiting[-MOST_WAITING:]

    def wait(self, arms: Iterable[int]) -> None:
        """Let arms of an earlier season wait as newcomers, as a group that came before others."""
        for arm in arms:
            self.leave(arm)
            self.come_back(arm)
            self.earlier[arm] = None

    def restore_seats(self, seats: Seats, *, n_seated: int, n_arms: int) -> None:
        """Restore the seats of a snapshot."""
        self.seats, self.n_seated, self.n_arms = seats, n_seated, n_arms
        self._newest = n_seated - 1

    # News

    def prepare(self, most: int | None = None) -> bool:
        """Tell the policy the news, or the next `most` items; return whether it knows all.

        Nothing else may happen to the search before all is told and the next arm is chosen.
        """
        if self._work is None:
            self._work = self._tell_news()
        if sum(1 for _ in islice(self._work, most)) == most:
            return False
        self._work = None
        self.has_news = self.more
        return True

    def _tell_news(self) -> Iterator[None]:
        """Tell the policy what has happened; yield after each item.

        Known rewards of arms that have seats come first, so that they open old arms' seats.
        """
        due = sorted(self.due.items(), key=lambda item: item[1][0])
        seats = not self.more or self.n_seated - len(self.gone) <= len(self.leaving)
        waiting: dict[int, list[Any]] = {}  # of arms without a seat
        for arm, known in due:
            if arm >= self.n_seated or arm in self.returning:
                waiting[arm] = known
            elif arm not in self.leaving:
                self._credit(arm, *known[1:])
                yield
        if seats:
            self._seat()
        self._end_pulls()
        for arm in [arm for arm in self.leaving if arm < self.n_seated]:
            retire(self.state, self.seats.seat(arm))
            self.opened.discard(arm)
            self.returned.pop(arm, None)
            self.gone.add(arm)
            yield
        if seats:
            for arm, known in waiting.items():
                if arm not in self.leaving:
                    self._credit(arm, *known[1:])
                    yield
            waiting = {}
        self.leaving = {arm: None for arm in self.leaving if arm >= self.n_seated}
        self.due = waiting

    def _seat(self) -> None:
        """Give seats to the arms that came, as one group; those that still wait come before."""
        new, self.more = self.n_arms - self.n_seated, False
        earlier, self.earlier = [arm for arm in self.earlier if arm in self.returning], {}
        if earlier:
            self._seat_again(earlier)
        if new:
            self.seats.add(self.n_seated, new)
            self.n_seated, self._newest = self.n_arms, self.n_arms - 1
        if new or self.returning:
            self._seat_again([*self.returning], new)

    def _seat_again(self, arms: list[int], new: int = 0) -> None:
        """Give new seats to arms that have old ones, and let them arrive with `new` other arms."""
        left = [self.seats.seat(arm) for arm in arms if arm in self.leaving]
        for arm in arms:
            self.seats.move_to_new_seat(arm)
            self.gone.discard(arm)
            self.leaving.pop(arm, None)
            del self.returning[arm]
            self.returned[arm] = None
        arrive(self.state, new + len(arms))
        for seat in left:
            retire(self.state, seat)

    def _end_pulls(self) -> None:
        """End the pending pulls of the arms that leave."""
        leaving = self.leaving
        if leaving:
            for number in [n for n, pull in self.pending.items() if pull.arm in leaving]:
                self.end(number)

    def _credit(self, arm: int, count: int, total: float, squares: float) -> None:
        """Credit known rewards; if the arm is fresh, the policy opens the next seat for it."""
        if arm in self.opened:
            credit_known(self.state, self.seats.seat(arm), count, total, squares)
            return
        seat = credit_known(self.state, -1, count, total, squares)
        if seat < 0:
            return
        other = self.seats.arm(seat)
        if other != arm:
            self.seats.swap(arm, other)
        self.returned.pop(arm, None)
        self.opened.add(arm)

    # Queries

    @property
    def is_finder(self) -> bool:
        """Whether the policy recommends an arm itself, after its first reward."""
        return self._recommended_seat() >= 0

    @property
    def recommended(self) -> int | None:
        """The arm that the policy recommends; None if it recommends none, or has not all news."""
        seat = -1 if self.due else self._recommended_seat()
        return None if seat < 0 else self.seats.arm(seat)

    def _recommended_seat(self) -> int:
        seat = recommend(self.state)
        if seat != -1 and not 0 <= seat < self.seats.count:
            raise ParameterError(
                f"{self.policy} recommended arm {seat}, but there are {self.n_seated} arms, "
                f"numbered from 0. Its `recommend` must return the number of an arm with a reward, "
                f"or -1 to leave the choice to the common rule."
            )
        return seat

    @property
    def stage(self) -> str:
        """What the policy is doing, as text."""
        return self.policy.stage(self.state)
