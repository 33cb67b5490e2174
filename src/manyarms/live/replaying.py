"""Replay a log: compute every choice again, and compare it with the recorded one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from manyarms.core.checks import check_int
from manyarms.errors import ParameterError, SavedFileError, TurnError, UnknownArmError
from manyarms.inference.facts import CONTROL
from manyarms.live import calls
from manyarms.live.arms import ArmNumbers, Arms
from manyarms.live.calls import Context
from manyarms.live.checks import check_reward
from manyarms.live.experiment import Experiment
from manyarms.live.kinds import (
    ABANDONED,
    ADDED,
    ASKED,
    EXPIRED,
    HELD,
    OBSERVED,
    RESTORED,
    RETIRED,
    SEASON,
    TOLD,
    USED,
)
from manyarms.live.packing import MALFORMED_ERRORS
from manyarms.live.settings import recorded_policy
from manyarms.protocol.policy import Policy, arrive
from manyarms.store import Event


def replay(
    experiment: Experiment, arms: Arms, events: Iterable[Event], what: str, policy: Policy | None
) -> None:
    """Replay events on an experiment in the state before the first of them.

    `arms` has the names of all arms, including those that the events add. `what` names the store in
    errors. `policy` is used for seasons that need it. After an error, the experiment must not be
    used.
    """
    now, at = experiment.now, 0.0
    experiment.now = lambda: at
    replayed = _Replay(Context(experiment, arms), what, policy)
    try:
        with loaded_state_errors(experiment, what):
            for event in events:
                at = event.at
                replayed.apply(event)
                experiment.seq = event.seq
    finally:
        experiment.now = now


class _Replay:
    def __init__(self, context: Context, what: str, policy: Policy | None) -> None:
        self._context, self._what, self._policy = context, what, policy
        self._experiment = context.experiment
        self._rules: dict[str, Callable[[Event], None]] = {
            ASKED: self._ask,
            TOLD: self._tell,
            HELD: self._hold,
            EXPIRED: self._expire,
            ABANDONED: self._abandon,
            OBSERVED: self._observe,
            USED: self._use,
            ADDED: self._add,
            RETIRED: self._retire,
            RESTORED: self._restore,
            SEASON: self._season,
        }

    def apply(self, event: Event) -> None:
        try:
            rule = self._rules.get(event.kind)
            if rule is None:
                raise ParameterError(f"Events of the kind {event.kind[:40]!r} are unknown.")
            rule(event)
        except (TurnError, ParameterError, UnknownArmError, TypeError, KeyError) as error:
            raise SavedFileError(
                f"{self._what} is inconsistent: event {event.seq} cannot follow those before it. "
                f"{error}"
            ) from error

    def _ask(self, event: Event) -> None:
        experiment, control = self._experiment, self._experiment.control
        if event.pull != experiment.next:
            raise TurnError(f"Pull {event.pull} was asked for; the next is {experiment.next}.")
        due = control is not None and control.due
        if (event.arm == CONTROL) != due:
            raise TurnError(f"Pull {event.pull} must be the {'control' if due else 'policy'}'s.")
        if event.arm == CONTROL:
            experiment.ask_control()
            return
        used = check_int("used", (event.detail or {}).get("used", 0))
        self._check_left(used + 1)
        experiment.ask(exactly=used)
        chosen = experiment.pending[event.pull].arm
        if chosen != event.arm:
            raise SavedFileError(
                f"{self._what} says that pull {event.pull} was of arm {event.arm}, but "
                f"{experiment.policy} now chooses arm {chosen}: its code has changed since. "
                f"Install the version of manyarms (and of the policy) that recorded it, or begin "
                f"another experiment and observe the rewards there."
            )

    def _check_left(self, choices: int) -> None:
        horizon, turns = self._experiment.horizon, self._experiment.turns
        if horizon is not None and turns + choices > horizon:
            raise TurnError(
                f"The policy chose {turns + choices} times, more than the horizon, {horizon}."
            )

    def _pending(self, event: Event) -> int:
        found = self._experiment.pending.get(event.pull)
        if event.pull is None or found is None:
            raise TurnError(f"Pull {event.pull} is not pending.")
        if found.arm != event.arm:
            raise TurnError(f"Pull {event.pull} is of arm {found.arm}, not of {event.arm}.")
        return event.pull

    def _reward(self, event: Event) -> float:
        limits = self._experiment.settings.reward_range
        return check_reward(event.reward, limits)

    def _tell(self, event: Event) -> None:
        number, reward = self._pending(event), self._reward(event)
        held = self._experiment.held
        if held.get(number, reward) != reward:
            raise TurnError(f"The reward of pull {number} was {held[number]}, not {reward}.")
        self._experiment.tell(number, reward)

    def _hold(self, event: Event) -> None:
        self._experiment.hold(self._pending(event), self._reward(event))

    def _expire(self, event: Event) -> None:
        number = self._pending(event)
        if event.reward != self._experiment.settings.missing or number in self._experiment.held:
            raise TurnError(f"The window of pull {number} cannot have ended with this reward.")
        self._experiment.expire(number)

    def _abandon(self, event: Event) -> None:
        self._experiment.abandon(self._pending(event))

    def _observe(self, event: Event) -> None:
        self._experiment.observe(self._arm(event), [self._reward(event)])

    def _use(self, event: Event) -> None:
        count = check_int("count", (event.detail or {}).get("count"), at_least=1)
        self._check_left(count)
        self._experiment.use(count)

    def _add(self, event: Event) -> None:
        count = check_int("count", (event.detail or {}).get("count"), at_least=1)
        if self._experiment.n_all + count > self._context.arms.count:
            raise ParameterError(f"{count} arms were added, but fewer have names.")
        if self._experiment.n_all:
            self._experiment.check_can(arrive)
        self._experiment.add(count)

    def _retire(self, event: Event) -> None:
        self._arm(event)
        calls.retire(self._numbered, event.arm)()

    def _restore(self, event: Event) -> None:
        self._arm(event)
        calls.restore(self._numbered, event.arm)()

    @property
    def _numbered(self) -> Context:
        """The experiment with its present arms, called by number."""
        return Context(self._experiment, ArmNumbers(self._experiment.n_all))

    def _arm(self, event: Event) -> int:
        if event.arm is None or not 0 <= event.arm < self._experiment.n_all:
            raise UnknownArmError(f"Unknown arm {event.arm}. There are {self._experiment.n_all}.")
        return event.arm

    def _season(self, event: Event) -> None:
        detail: dict[str, Any] = event.detail or {}
        policy = recorded_policy(detail["policy"], self._policy, self._what)
        calls.season(self._context, policy, detail["horizon"], detail["seed"])()


@contextlib.contextmanager
def loaded_state_errors(experiment: Experiment, what: str) -> Iterator[None]:
    """Turn errors of a policy whose state was loaded from a snapshot into `SavedFileError`.

    Loading checks the format of the state, not its consistency, so errors may come later.
    """
    try:
        yield
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        if not experiment.from_file:
            raise
        raise SavedFileError(
            f"{what} was interrupted by {error!r}: {experiment.policy} cannot continue from the "
            f"loaded state. Either the file was not written by manyarms, or the policy has a bug. "
            f"Use another copy of the file."
        ) from error
