"""The rules of each call of a handle: a check that may refuse, and then a change.

Each function checks its arguments, and raises if it refuses them. It changes nothing: it returns
the change, a function to call next, or None if there is nothing to do. So an error before the
change is a refusal, and an error in the change leaves the experiment half changed.

    change = calls.tell(context, pull, 1.0)  # may refuse
    if change is not None:
        change()  # events are in `context.experiment.log`

Refusals are `TurnError`, whose `reason` is for programs, `UnknownArmError` and `ParameterError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from manyarms.core.checks import check_choice, check_int, shown
from manyarms.errors import ParameterError, TurnError
from manyarms.inference.facts import CONTROL
from manyarms.live.arms import Arms
from manyarms.live.checks import check_can, check_first_draws, check_observed, check_reward
from manyarms.live.experiment import Experiment
from manyarms.live.ledger import Ledger
from manyarms.live.pulls import Pull
from manyarms.protocol.policy import Policy
from manyarms.protocol.policy import retire as retire_arm
from manyarms.protocol.registry import described_policy

T = TypeVar("T")
Change: TypeAlias = Callable[[], T]

MOST_PULLS = 1_000_000  # of one ask; about 300 bytes each
_new = tuple.__new__


class Context(NamedTuple):
    """An experiment, and the names of its arms."""

    experiment: Experiment
    arms: Arms

    def name(self, arm: int) -> Any:
        """Return the name of an arm, or of the control."""
        return self.experiment.settings.control if arm == CONTROL else self.arms.name(arm)


def ask(context: Context, k: Any = None) -> Change[Any]:
    """Return a change that returns the next pull, or a list of the next `k`."""
    experiment = context.experiment
    if experiment.status:
        check_running(experiment)
    if experiment.search is None:
        check_has_arms(experiment)
    if k is None:
        if experiment.ledger.promised is not None:
            _check_left(experiment, 1)
        return partial(_ask_one, context)
    fix = "Pass the number of pulls, or nothing for a single one."
    if isinstance(k, int) and k > MOST_PULLS:
        fix = "For more pulls, call ask again: each takes memory until its reward is told."
    count = check_int("k", k, at_least=1, at_most=MOST_PULLS, fix=fix)
    _check_left(experiment, count)
    return partial(_ask_some, context, count)


def _ask_one(context: Context) -> Pull:
    experiment, arms = context
    event: Any = experiment.ask()
    arm = event[4]
    name = arms.name(arm) if arm != CONTROL else experiment.settings.control
    return _new(Pull, (name, event[3]))


def _ask_some(context: Context, count: int) -> list[Pull]:
    return [_ask_one(context) for _ in range(count)]


def check_running(experiment: Experiment) -> None:
    """Raise if the experiment was paused or stopped in the service."""
    state = experiment.status.get("state", "running")
    if state == "paused":
        raise TurnError(
            "Cannot ask: the experiment was paused. Call resume() first.",
            reason="paused",
        )
    if state == "stopped":
        raise TurnError(
            "Cannot ask: the experiment was stopped, and cannot be resumed. Deploy the recommended "
            "arm, or begin another experiment.",
            reason="stopped",
        )


def check_has_arms(experiment: Experiment) -> None:
    if experiment.ledger.n_all == 0:
        raise TurnError("There are no arms yet. Add some first.", reason="no arms")


def _check_left(experiment: Experiment, count: int) -> None:
    """Raise if fewer than `count` pulls of the horizon are left."""
    left = experiment.ledger.left
    if left is None or count <= left:
        return
    pulls = experiment.ledger.pulls
    message = (
        f"Cannot ask: all {pulls} pulls of the horizon are made. For more pulls, "
        f"begin a season, which keeps the estimates; the policy prospector needs no horizon."
    )
    if left > 0:
        message = (
            f"Cannot ask for {count} pulls: {left} of {pulls + left} are left. Ask for {left}."
        )
    raise TurnError(message, reason="horizon", left=left)


def tell(context: Context, pull: Any, reward: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that tells a reward; None if its pull has ended and `again` is "ignore"."""
    experiment = context.experiment
    value = check_reward(reward, experiment.settings.reward_range)
    number = _pending(context, pull, again, "tell")
    return None if number is None else partial(experiment.take, number, value)


def tell_many(context: Context, rewards: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that tells several rewards; if one is refused, none is told."""
    check_choice("again", again, ("refuse", "ignore"))
    values: dict[int, float] = {}
    for place, (pull, reward) in enumerate(pairs_of(rewards)):
        try:
            value = check_reward(reward, context.experiment.settings.reward_range)
            number = _pending(context, pull, again, "tell")
            if number in values and again == "refuse":
                raise TurnError(f"Cannot tell pull {number} twice.", reason="twice", pull=number)
        except (ParameterError, TurnError) as error:
            raise error.framed(f"{in_list(place, pull)}: ", " Nothing was told.") from None
        if number is not None:
            values.setdefault(number, value)
    return partial(_tell_all, context.experiment, values) if values else None


def _tell_all(experiment: Experiment, values: dict[int, float]) -> None:
    for number, value in values.items():
        experiment.take(number, value)


def abandon(context: Context, pull: Any, again: str = "refuse") -> Change[None] | None:
    """Return a change that abandons a pull; None if it has ended and `again` is "ignore"."""
    number = _pending(context, pull, again, "abandon")
    return None if number is None else partial(context.experiment.abandon, number)


def observe(context: Context, arm: Any, rewards: Any) -> Change[None] | None:
    """Return a change that records observed rewards of an arm; None if there are none."""
    limits = context.experiment.settings.reward_range
    several = rewards if isinstance(rewards, Iterable) else [rewards]
    values = [check_reward(reward, limits, "observe") for reward in several]
    number = context.arms.number(arm)
    return partial(context.experiment.observe, number, values) if values else None


def observe_counts(context: Context, counts: Any) -> Change[None] | None:
    """Return a change that records numbers and sums of observed rewards of several arms."""
    limits = context.experiment.settings.reward_range
    if not isinstance(counts, Mapping):
        raise ParameterError(
            f"`counts` must be a dict from arms to a number of rewards and their sum, such as "
            f"{{'bold': (120, 7)}}, got {shown(counts, 100)}."
        )
    observed = [
        (context.arms.number(arm), *check_observed(given, limits, arm))
        for arm, given in counts.items()
    ]
    return partial(context.experiment.observe_counts, observed) if observed else None


def season(context: Context, policy: Any, horizon: Any, seed: Any) -> Change[None]:
    """Return a change that begins a season."""
    given = check_season(context, policy, horizon, seed)
    return partial(context.experiment.begin_season, *given)


def check_season(
    context: Context, policy: Any, horizon: Any, seed: Any
) -> tuple[Policy, int | None, int]:
    """Return the policy, the horizon and the seed of a season, or raise."""
    experiment = context.experiment
    check_has_arms(experiment)
    if policy is not None and not isinstance(policy, Policy):
        raise ParameterError(f"`policy` must be a policy such as moss, got {policy!r}.")
    settings, n_all = experiment.settings, experiment.ledger.n_all
    chosen = experiment.policy if policy is None else policy
    described_policy(chosen)  # it must be storable
    word = experiment.seed if seed is None else check_int("seed", seed, at_most=2**64 - 1)
    if horizon is not None:
        horizon = check_int("horizon", horizon, at_least=1)
    check_first_draws(chosen, n_all, horizon)
    state = settings.new_state(chosen, n_all, horizon)
    if experiment.ledger.retired:
        _check_can_retire(chosen, state)
    return chosen, horizon, word


def _check_can_retire(policy: Policy, state: Any) -> None:
    try:
        check_can(policy, state, retire_arm)
    except ParameterError as error:
        raise ParameterError(f"`policy` must support retired arms. {error}") from None


def resume(context: Context, keep: Callable[[dict[str, Any]], None]) -> Change[None] | None:
    """Return a change that ends a pause; None if there is none. `keep` stores the new status."""
    if context.experiment.status.get("state", "running") == "running":
        return None
    if context.experiment.status["state"] == "stopped":
        check_running(context.experiment)
    return partial(_resume, context.experiment.status, keep)


def _resume(status: dict[str, Any], keep: Callable[[dict[str, Any]], None]) -> None:
    keep(status | {"state": "running"})
    status["state"] = "running"


def _pending(context: Context, pull: Any, again: str, verb: str) -> int | None:
    """Return the number of a pending pull; None if it has ended and that may be ignored."""
    if again != "refuse":
        check_choice("again", again, ("refuse", "ignore"))
    whole = type(pull) is Pull  # otherwise only its id is known
    number = pull.id if whole else pull
    if type(number) is not int:
        fix = "Pass a pull that was asked for, or its id."
        if isinstance(number, list | tuple):
            fix = "For several pulls, use tell_many."
        number = check_int("pull", number, fix=fix)
    ledger = context.experiment.ledger
    open_pull = ledger.pending.get(number)
    if open_pull is None or (verb == "tell" and number in ledger.held):
        _check_ended(ledger, number, again, verb)
        return None
    if whole and pull.arm != (arm := context.name(open_pull.arm)):
        raise TurnError(
            f"Cannot {verb} pull {number} of arm {pull.arm!r}: pull {number} of this experiment is "
            f"of arm {arm!r}. Use the experiment that returned the pull.",
            reason="other arm",
            pull=number,
            arm=arm,
        )
    return number


def _check_ended(ledger: Ledger, number: int, again: str, verb: str) -> None:
    """Raise unless a pull that is not pending has ended, and `again` allows that."""
    also = ""
    if not 0 <= number < ledger.next:
        last = f"The last pull is {ledger.next - 1}." if ledger.next else "There are no pulls yet."
        raise TurnError(
            f"Cannot {verb} pull {number}: it was not asked for. {last}",
            reason="unknown pull",
            pull=number,
        )
    if again == "refuse":
        gone = number in ledger.abandoned
        if ledger.window is not None and number not in ledger.held:
            also = f", or its window of {ledger.window:g} s has ended"
        elif ledger.n_abandoned > len(ledger.abandoned) and number < next(iter(ledger.abandoned)):
            also = ", or it was abandoned"  # this is not remembered for ever
        raise already_ended(verb, number, gone=gone, also=also)


OR_EXPIRED = ", or its window has ended"  # in the service's messages, and so in its client's


def already_ended(verb: str, number: int, *, gone: bool, also: str = "") -> TurnError:
    """Return the error for a pull that was already told, or was abandoned (`gone`)."""
    done = "it was abandoned" if gone else "its reward has already been told"
    return TurnError(
        f"Cannot {verb} pull {number}: {done}{also}. Pass again='ignore' if you retry.",
        reason="abandoned" if gone else "told",
        pull=number,
    )


def nothing_to_recommend() -> TurnError:
    """Return the error for a recommendation before the first reward."""
    return TurnError("Cannot recommend an arm: no available arm has a reward yet.")


def in_list(place: int, pull: Any) -> str:
    """Return the name of an entry of a list of rewards, for messages."""
    return f"rewards[{place}], of pull {pull.id if isinstance(pull, Pull) else shown(pull)}"


def pairs_of(rewards: Any) -> list[tuple[Any, Any]]:
    """Return the pairs that `tell_many` was given, or raise.

    >>> pairs_of([1.0])
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `rewards` must be pairs of a pull and its reward, such as
    [(pull, 1.0)], got [1.0]. Nothing was told.
    """
    listed: Any = list(rewards) if isinstance(rewards, Iterable) else rewards
    try:
        return [(pull, reward) for pull, reward in listed]
    except (TypeError, ValueError):
        raise ParameterError(
            f"`rewards` must be pairs of a pull and its reward, such as [(pull, 1.0)], got "
            f"{shown(listed)}. Nothing was told."
        ) from None
