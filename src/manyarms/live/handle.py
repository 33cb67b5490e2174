"""The handle users hold: ask for arms, pull them, tell the rewards when they come."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, cast, overload

from manyarms.core.checks import check_choice, check_int
from manyarms.core.jit import check_bodies
from manyarms.core.memory import ENDLESS
from manyarms.errors import ParameterError, TurnError
from manyarms.live.arms import Tally, arms_of
from manyarms.live.checks import check_horizon, check_range, check_reward
from manyarms.live.pull import Observer, Pull
from manyarms.live.saving import Saving
from manyarms.protocol.in_flight import InFlight, land, launch, lose
from manyarms.protocol.keys import policy_key
from manyarms.protocol.policy import Policy, ask, reset, tell

__all__ = ["ROOM", "Live"]

ROOM = 1 << 40  # for the pulls of a game without a horizon


class Live(Saving):
    """A policy at work on real arms. Made by `policy.live(...)`.

    Parameters
    ----------
    policy
        The policy to use.
    n_arms
        The number of arms, called 0, 1, 2, ….
    arms
        Names of the arms, strings or integers, instead of `n_arms`.
    horizon
        The number of pulls there will be; None only for anytime policies.
    seed
        Decides all random choices.
    reward_range
        The smallest and the largest reward there can be; None accepts every finite number.

    Notes
    -----
    Everything the handle does follows from the policy, the seed and the sequence of asks and
    tells. Rewards may come late, in any order, or never (`abandon`); if ten or more pulls are in
    flight at a time, give the policy `count_late=True`. It takes microseconds, needs no compiler,
    and its memory grows with the arms touched, not with `n_arms`. Handles may be shared between
    threads: each call is atomic among them.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.EmpMOSSPlusPlus(beta=0.5).live(n_arms=1_000_000, horizon=20_000, seed=7)
    >>> first, second = live.ask(2)
    >>> live.tell(second, reward=1.0)  # in any order
    >>> live.tell(first.id, reward=0.0)
    >>> live.pulls
    2
    """

    def __init__(
        self,
        policy: Policy,
        *,
        n_arms: int | None = None,
        arms: Iterable[str | int] | None = None,
        horizon: int | None = None,
        seed: int = 0,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
    ) -> None:
        self.policy = policy
        self.horizon = check_horizon(policy, horizon)
        self.seed = check_int("seed", seed, at_most=2**64 - 1)
        self.reward_range = check_range(reward_range)
        self._arms = arms_of(n_arms, arms)
        self._first_arms = self._arms.count
        self._retired: set[int] = set()
        self._tally: dict[int, Tally] = {}  # by arm, in order of the first pull
        self._flight = cast("dict[int, InFlight]", ENDLESS.records(ROOM, InFlight))
        self._pulls = 0
        self._lost: set[int] = set()  # pulls that were abandoned
        self._observer: Observer | None = None
        self._lock = threading.RLock()
        room = self.horizon or ROOM
        self._state = policy.new_state(ENDLESS, n_arms=self._first_arms, pulls=room)
        check_bodies(self._state, (reset, ask, tell))
        reset(self._state, policy_key(seed, 0), self.horizon or 0)

    @overload
    def ask(self) -> Pull: ...
    @overload
    def ask(self, k: int) -> list[Pull]: ...

    def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`.

        Parameters
        ----------
        k
            How many; one pull, not in a list, unless given.
        """
        with self._lock:
            if k is not None:
                k = check_int("k", k, at_least=1)
            if self.horizon is not None and self._pulls + (k or 1) > self.horizon:
                raise TurnError(self._past_the_horizon(k or 1))
            return self._ask() if k is None else [self._ask() for _ in range(k)]

    def _ask(self) -> Pull:
        if self._observer is not None:
            self._observer.begin()
        number, flight = self._pulls, cast(Any, self._flight)
        before = number - 1 if number - 1 in flight else -1
        arm = launch(self._state, flight, number, before)
        if not 0 <= arm < self._arms.count:
            del flight[number]
            raise ParameterError(
                f"{self.policy.label} chose arm {arm!r}, and there are {self._arms.count}, "
                f"numbered from 0. Its `ask` must return (slot, arm), in this order."
            )
        self._pulls = number + 1
        try:
            self._tally[arm].asked += 1
        except KeyError:
            self._tally[arm] = Tally(asked=1)
        if self._observer is not None:
            self._observer.asked(number, arm)
        return Pull(self._arms.name(arm), number)

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        reward
            A finite number within `reward_range`.
        again
            What to do if the pull was told or abandoned before: "refuse" raises, "ignore" does
            nothing, for callers that retry.
        """
        value = check_reward(reward, self.reward_range)
        with self._lock:
            number = self._due(pull, again, "tell")
            if number is not None:
                self._tell(number, value)

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards: all of them, or, if one is refused, none.

        Parameters
        ----------
        rewards
            Pairs of a pull (or its id) and its reward.
        again
            As for `tell`.
        """
        pairs = [(pull, check_reward(reward, self.reward_range)) for pull, reward in rewards]
        with self._lock:
            due: dict[int, float] = {}
            for pull, value in pairs:
                number = self._due(pull, again, "tell")
                if number in due and again == "refuse":
                    raise TurnError(f"Cannot tell pull {number} twice. Nothing was told.")
                if number is not None:
                    due.setdefault(number, value)
            for number, value in due.items():
                self._tell(number, value)

    def _tell(self, number: int, reward: float) -> None:
        if self._observer is not None:
            self._observer.told(number, reward)
        flight = cast(Any, self._flight)
        arm = flight[number].arm
        land(self._state, flight, number, reward)
        del flight[number]
        tally = self._tally[arm]
        tally.told += 1
        tally.total += reward
        if self._observer is not None:
            self._observer.done()

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Go on without the reward of a pull: it will never come.

        The pull was made, so it counts in the horizon and in the clock of the policy's iteration;
        it teaches nothing. An arm that was never observed comes up again.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        again
            As for `tell`: its reward may come at this moment, from another thread.
        """
        with self._lock:
            number = self._due(pull, again, "abandon")
            if number is not None:
                self._abandon(number)

    def _abandon(self, number: int) -> None:
        if self._observer is not None:
            self._observer.abandoned(number)
        lose(self._state, cast(Any, self._flight), number)
        del self._flight[number]
        self._lost.add(number)
        if self._observer is not None:
            self._observer.done()

    def _due(self, pull: Any, again: str, verb: str) -> int | None:
        """Return the number of a pull in flight; None if it is done with and may be ignored."""
        check_choice("again", again, ("refuse", "ignore"))
        number = pull.id if isinstance(pull, Pull) else pull
        if type(number) is not int:
            number = check_int("pull", number, fix="Pass what ask() returned, or its id.")
        if number not in self._flight:
            self._refuse(number, again, verb)
            return None
        arm = self._arms.name(self._flight[number].arm)
        if isinstance(pull, Pull) and pull.arm != arm:
            raise TurnError(
                f"Cannot {verb} pull {number} of arm {pull.arm!r}: this handle's pull {number} is "
                f"of arm {arm!r}. Was it asked of another handle?"
            )
        return number

    def _refuse(self, number: int, again: str, verb: str) -> None:
        if not 0 <= number < self._pulls:
            raise TurnError(
                f"Cannot {verb} pull {number}: it was not asked for. The last one is "
                f"{self._pulls - 1}."
            )
        if again == "refuse":
            done = "it was abandoned" if number in self._lost else "its reward was told already"
            fix = "Pass again='ignore' if you retry."
            raise TurnError(f"Cannot {verb} pull {number}: {done}. {fix}")

    def _past_the_horizon(self, k: int) -> str:
        left = cast(int, self.horizon) - self._pulls
        if left > 0:
            return f"Cannot ask for {k} pulls: {left} of {self.horizon} are left. Ask for {left}."
        return (
            f"Cannot ask: all {self.horizon} pulls of the horizon are made. Start with a longer "
            f"horizon, or with an anytime policy such as Doubling(...)."
        )
