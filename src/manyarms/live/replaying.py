"""Replay a log: compute every choice again, and compare it with the recorded one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from manyarms.core.checks import check_int
from manyarms.errors import ParameterError, SavedFileError, TurnError, UnknownArmError
from manyarms.inference.facts import CONTROL
from manyarms.live import arm_calls, calls
from manyarms.live.arms import ArmNumbers, Arms
from manyarms.live.calls import Context
from manyarms.live.checks import check_observed, check_reward
from manyarms.live.experiment import Experiment, check_time
from manyarms.live.kinds import (
    ABANDONED,
    ADDED,
    ASKED,
    AT_RANDOM,
    EXPIRED,
    HELD,
    OBSERVED,
    RESTORED,
    RETIRED,
    SEASON,
    TOLD,
)
from manyarms.live.packing import MALFORMED_ERRORS
from manyarms.live.settings import recorded_policy
from manyarms.protocol.policy import Policy, arrive
from manyarms.store import Event


def replay(
    experiment: Experiment,
    arms: Arms,
    events: Iterable[Event],
    what: str,
    policy: Policy | None,
    *,
    from_season: int = 0,
) -> None:
    """Replay events on an experiment in the state before the first of them.

    `arms` has the names of all arms, including those that the events add. `what` names the store in
    errors. `policy` is used for seasons that need it. Events before the number `from_season` are
    for the ledger alone; the search begins with the season of that event. After an error, the
    experiment must not be used.
    """
    checked = _Checked(Context(experiment, arms), what, policy, from_season)
    with loaded_state_errors(experiment, what):
        for event in events:
            checked.apply(event)
            experiment.seq = event.seq


class _Checked:
    """Checks each event of a log against the state before it, and applies it."""

    def __init__(
        self, context: Context, what: str, policy: Policy | None, from_season: int
    ) -> None:
        self._context, self._what, self._policy = context, what, policy
        self._experiment, self._ledger = context.experiment, context.experiment.ledger
        self._from_season = from_season
        self._rules: dict[str, Callable[[Event], None]] = {
            ASKED: self._ask,
            TOLD: self._tell,
            HELD: self._hold,
            EXPIRED: self._expire,
            ABANDONED: self._abandon,
            OBSERVED: self._observe,
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
            if event[1] - event[1] != 0.0:
                check_time(event.at)
            rule(event)
        except (TurnError, ParameterError, UnknownArmError, TypeError, KeyError) as error:
            raise SavedFileError(
                f"{self._what} is inconsistent: event {event.seq} cannot follow those before it. "
                f"{error}"
            ) from error

    def _ask(self, event: Event) -> None:
        experiment, ledger, turns = self._experiment, self._ledger, self._experiment.turns
        if event.pull != ledger.next:
            raise TurnError(f"Pull {event.pull} was asked for; the next is {ledger.next}.")
        due = turns is not None and turns.is_control(ledger.next)
        if (event.arm == CONTROL) != due:
            raise TurnError(f"Pull {event.pull} must be the {'control' if due else 'policy'}'s.")
        if event.arm != CONTROL:
            if ledger.left is not None and ledger.left < 1:
                raise TurnError(f"All {ledger.promised} pulls of the season were made before.")
            if experiment.search is not None:
                self._compare(event)
            else:
                self._arm(event)
        experiment.apply(event)

    def _compare(self, event: Event) -> None:
        """Raise unless the search chooses the recorded arm, for the recorded reason."""
        search = self._experiment.search
        assert search is not None
        assert event.pull is not None
        why = (event.detail or {}).get("why", AT_RANDOM)
        arm, reason = search.choose(event.pull)
        if arm != event.arm or why != reason:
            because = "" if arm != event.arm else f" for another reason ({reason}, not {why})"
            raise SavedFileError(
                f"{self._what} says that pull {event.pull} was of arm {event.arm}, but "
                f"{search.policy} now chooses arm {arm}{because}: its code has changed since. "
                f"Install the version of manyarms (and of the policy) that recorded it, or begin "
                f"another experiment and observe the rewards there."
            )

    def _pending(self, event: Event) -> int:
        pull = self._ledger.pending.get(event.pull)  # type: ignore[arg-type]  # it may be anything
        if event.pull is None or pull is None:
            raise TurnError(f"Pull {event.pull} is not pending.")
        if pull.arm != event.arm:
            raise TurnError(f"Pull {event.pull} is of arm {pull.arm}, not of {event.arm}.")
        return event.pull

    def _check_reward(self, event: Event) -> float:
        return check_reward(event.reward, self._experiment.settings.reward_range)

    def _tell(self, event: Event) -> None:
        number, reward = self._pending(event), self._check_reward(event)
        held = self._ledger.held
        if held.get(number, reward) != reward:
            raise TurnError(f"The reward of pull {number} was {held[number]}, not {reward}.")
        self._experiment.apply(event)

    def _hold(self, event: Event) -> None:
        self._pending(event)
        self._check_reward(event)
        self._experiment.apply(event)

    def _expire(self, event: Event) -> None:
        number = self._pending(event)
        if event.reward != self._experiment.settings.missing or number in self._ledger.held:
            raise TurnError(f"The window of pull {number} cannot have ended with this reward.")
        self._experiment.apply(event)

    def _abandon(self, event: Event) -> None:
        self._pending(event)
        self._experiment.apply(event)

    def _observe(self, event: Event) -> None:
        limits = self._experiment.settings.reward_range
        if event.detail is None:
            self._arm(event)
            self._check_reward(event)
        else:
            for arm, *observed in event.detail["counts"]:
                self._arm(event._replace(arm=arm))
                check_observed(observed, limits)
        self._experiment.apply(event)

    def _add(self, event: Event) -> None:
        search = self._experiment.search
        closes = search is not None and search.more  # without arms, the end of a group
        count = check_int("count", (event.detail or {}).get("count"), at_least=0 if closes else 1)
        if self._ledger.n_all + count > self._context.arms.count:
            raise ParameterError(f"{count} arms were added, but fewer have names.")
        if self._ledger.n_all:
            arm_calls.check_can(self._experiment, arrive)
        self._experiment.apply(event)

    def _retire(self, event: Event) -> None:
        arm_calls.check_retire(self._numbered, self._arm(event))
        self._experiment.apply(event)

    def _restore(self, event: Event) -> None:
        arm_calls.check_restore(self._numbered, self._arm(event))
        self._experiment.apply(event)

    @property
    def _numbered(self) -> Context:
        """The experiment with its present arms, called by number."""
        return Context(self._experiment, ArmNumbers(self._ledger.n_all))

    def _arm(self, event: Event) -> int:
        arm = event.arm
        if type(arm) is not int or not 0 <= arm < self._ledger.n_all:
            raise UnknownArmError(f"Unknown arm {arm}. There are {self._ledger.n_all}.")
        return arm

    def _season(self, event: Event) -> None:
        experiment, detail = self._experiment, event.detail or {}
        if event.seq < self._from_season:
            if detail["horizon"] is not None:
                check_int("horizon", detail["horizon"], at_least=1)
            experiment.apply(event)
            return
        policy = recorded_policy(detail["policy"], self._policy, self._what)
        calls.check_season(self._context, policy, detail["horizon"], detail["seed"])
        for arm in detail.get("waiting", ()):
            if self._arm(event._replace(arm=arm)) in self._ledger.retired:
                raise ValueError(f"arm {arm} waits in a season, but is retired")
        experiment.apply_season(event, policy)


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
