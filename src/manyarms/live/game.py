"""A policy's game: what it is, what happened so far, and what each event changes.

Events change it without looking: `commands` checks what a caller wants, and a replay checks all
events at once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

from manyarms.core.checks import check_int
from manyarms.core.jit import Dispatched, check_bodies
from manyarms.core.memory import SPARSE
from manyarms.errors import ParameterError
from manyarms.inference.facts import RECENT
from manyarms.live.arms import Arms, Seats
from manyarms.live.checks import ROOM, check_can, check_horizon, check_range, exchangeable
from manyarms.live.control import ARM, OF_CONTROL, Control
from manyarms.live.pulls import Pull
from manyarms.live.store import Event, EventKind
from manyarms.protocol.in_flight import InFlight, land, launch, lose
from manyarms.protocol.keys import policy_key
from manyarms.protocol.policy import Policy, arrive, ask, reset, retire, tell

_new = tuple.__new__  # makes a NamedTuple in half the time of its class
_ASKED = EventKind.ASKED  # looked up once


class ArmTally:
    """The pulls of one arm: how many were asked for and told, and the sum of the rewards."""

    __slots__ = ("asked", "told", "total")

    def __init__(self, asked: int = 0, told: int = 0, total: float = 0.0) -> None:
        self.asked = asked
        self.told = told
        self.total = total


class LiveGame:
    """Everything a handle knows. Events are appended to `log`, unless it is None."""

    def __init__(
        self, policy: Policy, arms: Arms, horizon: Any, seed: Any, reward_range: Any
    ) -> None:
        self.policy = policy
        self.horizon = check_horizon(policy, horizon)
        self.seed = check_int("seed", seed, at_most=2**64 - 1)
        self.reward_range = check_range(reward_range)
        self.arms = arms
        self.first_arms = arms.count
        self.seats = Seats(arms.count)  # where the policy has which arm
        self.stock: dict[int, deque[float]] = {}  # rewards observed that answered no pull, by arm
        self.drawn_next: dict[int, None] = {}  # arms that the next draws of fresh arms return
        self.named: set[int] = set()  # arms that were not met by chance
        self.met: dict[int, None] = {}  # arms that earlier seasons drew, if some have no reward
        self.skipped = 0  # of the first arms: retired before anything was known of them
        self.retired: set[int] = set()
        self.tally: dict[int, ArmTally] = {}  # by arm, in order of the first pull
        self.pulls = 0
        self.recent: deque[int] = deque(maxlen=RECENT)  # the arms of the last pulls; not saved
        self.epsilon: float | str | None = None  # what verdicts ask, unless one asks for another
        self.flight: Any = SPARSE.records(ROOM, InFlight)  # a dict, by the number of the pull
        self.abandoned: set[int] = set()  # pulls: some 65 bytes each
        self._by_arm: dict[int, list[int]] = {}  # pulls that were in flight after ...
        self._by_arm_at = -1  # ... so many pulls
        self.control: Control | None = None
        self.reward = ""  # what rewards are called: clicks
        self.log: list[Event] | None = None
        self.columns: Any = None  # what `live.columns` has made of it
        self.changed: Any = None  # a set of arms, for `columns`; None as long as there are none
        self.from_file = False  # whether its state came from one
        self.seed_drawn = False  # the user gave none, so any other will do
        self.state = policy.new_state(SPARSE, n_arms=arms.count, pulls=self.horizon or ROOM)
        check_bodies(self.state, (reset, ask, tell))
        reset(self.state, policy_key(self.seed, 0), self.horizon or 0)

    def ask(self) -> Pull:
        """Choose the next arm."""
        number, flight, arms = self.pulls, self.flight, self.arms
        before = number - 1 if number - 1 in flight else -1
        arm = launch(self.state, flight, number, before)
        if not 0 <= arm < self.seats.count:
            raise ParameterError(
                f"{self.policy} chose arm {arm!r}, and there are {arms.count}, "
                f"numbered from 0. Its `ask` must return (slot, arm), in this order."
            )
        if self.drawn_next or self.seats.arm_at:
            arm = flight[number].arm = self._seated(arm)
        self.pulls = number + 1
        if self.control is not None:
            self.control.turns += 1
        self.recent.append(arm)
        try:
            self.tally[arm].asked += 1
        except KeyError:
            self.tally[arm] = ArmTally(asked=1)
        if self.changed is not None:
            self.changed.add(arm)
        if self.log is not None:
            self.log.append(_new(Event, (_ASKED, number, arm, 0.0, ())))
        return _new(Pull, (arms.name(arm), number))

    def _seated(self, seat: int) -> int:
        """Return the arm of a seat; where that arm is fresh, the first of `drawn_next` takes it."""
        arm = self.seats.arm(seat)
        if self.drawn_next and (arm in self.drawn_next or arm not in self.tally):
            first = arm if not exchangeable(self.policy) else next(iter(self.drawn_next))
            self.drawn_next.pop(first, None)
            if first != arm:
                self.seats.swap(first, arm)
            return first
        return arm

    def ask_for(self, count: int, most: int = 0) -> list[Pull]:
        """Return `count` pulls to be made, after answering those whose reward was observed.

        If `most` is given, and so many were answered before the first of them, return none: who
        asks again goes on from there.
        """
        pulls: list[Pull] = []
        answered = 0
        while len(pulls) < count:
            if self.control is not None and self.control.due:
                pulls.append(self.ask_control())
                continue
            pull = self.ask()
            more = count - len(pulls)
            room = self.horizon is None or self.pulls + more <= self.horizon
            if self.stock and room and self.flight[pull.id].arm in self.stock:
                self.answer(pull.id)
                answered += 1
                if answered == most and not pulls:
                    break
            else:
                pulls.append(pull)
        return pulls

    def ask_control(self) -> Pull:
        """Give the next pull to the control."""
        assert self.control is not None
        number = self.control.ask()
        if self.log is not None:
            self.log.append(Event(_ASKED, number, ARM))
        return Pull(self.control.name, number)

    def flying(self, number: int) -> int | None:
        """Return the arm of a pull in flight; None if it is not in flight."""
        if number >= OF_CONTROL:
            return ARM if self.control is not None and number in self.control.flight else None
        pull = self.flight.get(number)
        return None if pull is None else pull.arm

    def called(self, arm: int) -> Any:
        """Return what the user calls an arm, or the control."""
        return self.control.name if arm == ARM and self.control else self.arms.name(arm)

    def answer(self, number: int) -> float:
        """Answer a pull in flight with the next observed reward of its arm."""
        if self.control is not None:
            self.control.turns -= 1  # it does not leave
        arm = self.flight[number].arm
        left = self.stock[arm]
        reward = left.popleft()
        if not left:
            del self.stock[arm]
        self.tell(number, reward, EventKind.ANSWERED)
        return reward

    def tell(self, number: int, reward: float, kind: EventKind = EventKind.TOLD) -> None:
        """Credit the reward of a pull in flight."""
        if number >= OF_CONTROL:
            self._end_of_control(number, reward)
            return
        flight = self.flight
        arm = flight[number].arm
        land(self.state, flight, number, reward)
        del flight[number]
        tally = self.tally[arm]
        tally.told += 1
        tally.total += reward
        if self.changed is not None:
            self.changed.add(arm)
        if self.log is not None:
            self.log.append(_new(Event, (kind, number, arm, reward, ())))

    def abandon(self, number: int) -> None:
        """Go on without the reward of a pull in flight."""
        if number >= OF_CONTROL:
            self._end_of_control(number, None)
            return
        lose(self.state, self.flight, number)
        arm = self.flight.pop(number).arm
        self.abandoned.add(number)
        if self.log is not None:
            self.log.append(Event(EventKind.ABANDONED, number, arm))

    def _end_of_control(self, number: int, reward: float | None) -> None:
        assert self.control is not None
        if reward is None:
            self.control.abandon(number)
            ended = Event(EventKind.ABANDONED, number, ARM)
        else:
            self.control.tell(number, reward)
            ended = Event(EventKind.TOLD, number, ARM, reward)
        if self.log is not None:
            self.log.append(ended)

    def arrive(self, names: Any) -> None:
        """Add the arms that `arms.fresh` returned."""
        self.seats.add(self.arms.count, len(names))
        self.arms.add(names)
        arrive(self.state, len(names))
        if self.log is not None:
            kept = () if isinstance(names, range) else tuple(names)
            self.log.append(Event(EventKind.ADDED, -1, len(names), names=kept))

    def retire(self, arm: int) -> None:
        """Never choose an arm again."""
        for number in self._flying_of(arm):
            lose(self.state, self.flight, number)
        self.retired.add(arm)
        self.drawn_next.pop(arm, None)
        if arm < self.first_arms and self.known(arm)[0] == 0:
            self.skipped += 1
        retire(self.state, self.seats.seat(arm))
        if self.changed is not None:
            self.changed.add(arm)
        if self.log is not None:
            self.log.append(Event(EventKind.RETIRED, -1, arm))

    def _flying_of(self, arm: int) -> list[int]:
        """Return the pulls of an arm that are in flight.

        Many arms may go at once, so pulls are sorted by arm; that holds until the next pull.
        """
        tally = self.tally.get(arm)
        if tally is None or tally.asked == tally.told:
            return []
        if self._by_arm_at != self.pulls:
            self._by_arm, self._by_arm_at = {}, self.pulls
            for number, pull in self.flight.items():
                self._by_arm.setdefault(pull.arm, []).append(number)
        return [number for number in self._by_arm.get(arm, ()) if number in self.flight]

    def restore(self, arm: int) -> None:
        """Bring a retired arm back: the policy draws it next, as a fresh arm."""
        self.retired.remove(arm)
        self.seats.come_back(arm)
        arrive(self.state, 1)
        self._draw_next(arm)
        if self.changed is not None:
            self.changed.add(arm)
        if self.log is not None:
            self.log.append(Event(EventKind.RESTORED, -1, arm))

    def observe(self, arm: int, rewards: Iterable[float]) -> None:
        """Store rewards of an arm that no pull earned; they answer its next pulls."""
        fresh = arm not in self.tally
        for reward in rewards:
            self.stock.setdefault(arm, deque()).append(reward)
            if self.log is not None:
                self.log.append(Event(EventKind.OBSERVED, -1, arm, reward))
        if fresh and arm in self.stock:
            if arm not in self.retired:
                self._draw_next(arm)
            self._name(arm)
            self.tally[arm] = ArmTally()
        if self.changed is not None:
            self.changed.add(arm)

    def _draw_next(self, arm: int) -> None:
        self.drawn_next[arm] = None
        if arm not in self.tally:
            self._name(arm)

    def _name(self, arm: int) -> None:
        if arm not in self.met:
            self.named.add(arm)

    def known(self, arm: int) -> tuple[int, float]:
        """Return the number and the sum of an arm's rewards, told or observed."""
        tally, left = self.tally.get(arm), self.stock.get(arm, ())
        told, total = (0, 0.0) if tally is None else (tally.told, tally.total)
        return told + len(left), math.fsum((total, *left)) if left else total

    @property
    def n_arms(self) -> int:
        """The number of arms, without retired ones."""
        return self.arms.count - len(self.retired)

    def check_can(self, function: Dispatched[..., Any]) -> None:
        """Raise unless the policy, and the one that it wraps, can do this."""
        check_can(self.policy, self.state, function)
