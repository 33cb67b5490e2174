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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from manyarms.core.checks import check_choice, check_int, shown
from manyarms.core.jit import Dispatched
from manyarms.errors import ParameterError, TurnError
from manyarms.inference.facts import CONTROL
from manyarms.live.arms import ArmNames, Arms
from manyarms.live.checks import check_can as check_can_change
from manyarms.live.checks import check_first_draws, check_observed, check_reward
from manyarms.live.experiment import Experiment
from manyarms.live.ledger import Ledger
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import Policy, arrive
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
    if experiment.ledger.n_all == 0:
        check_has_arms(experiment)
    if k is None:
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
    _, _, _, number, arm, _, _ = event
    name = arms.name(arm) if arm != CONTROL else experiment.settings.control
    return _new(Pull, (name, number))


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


def check_can(experiment: Experiment, function: Dispatched[..., Any]) -> None:
    """Raise unless the policy of the present season implements this function."""
    if experiment.search is not None:
        experiment.search.check_can(function)


def add_arms(context: Context, arms: Any, *, more: bool = False) -> Change[Sequence[Any]]:
    """Return a change that adds arms and returns their names; `more` as for `restore`."""
    experiment, names = context.experiment, context.arms.fresh(arms)
    _check_can_add(experiment, len(names))
    return partial(_add, context, names, more)


def _check_can_add(experiment: Experiment, count: int) -> None:
    """Raise unless `count` arms can be added."""
    if experiment.ledger.n_all == 0:
        settings = experiment.settings
        check_first_draws(settings.policy, max(1, count), settings.horizon)
    else:
        check_can(experiment, arrive)


def _add(context: Context, names: Any, more: bool = False) -> Any:
    if len(names) > 0:
        context.experiment.add(len(names), more=more)
        context.arms.add(names)
    return names


def retire(context: Context, arms: Any) -> Change[None]:
    """Return a change that retires one or several arms; if one is refused, none is retired."""
    return partial(_each, context.experiment.retire, check_retire(context, arms))


def check_retire(context: Context, arms: Any) -> list[int]:
    """Return the numbers of arms that can be retired, or raise."""
    experiment = context.experiment
    check_can(experiment, retire_arm)
    if isinstance(arms, str):
        _refuse_control(context, arms)
    chosen = _numbers(context, arms)
    for number in chosen:
        if number in experiment.ledger.retired:
            name = context.arms.name(number)
            message = f"Cannot retire arm {name!r}: it is already retired."
            raise TurnError(message, reason="retired", arm=name)
    if experiment.ledger.n_arms <= len(chosen):
        what = f"{len(chosen)} arms: none would be left"
        if len(chosen) == 1:
            what = f"arm {context.arms.name(chosen[0])!r}: it is the last one"
        raise TurnError(f"Cannot retire {what}. Add others first.", reason="last arm")
    return chosen


def _refuse_control(context: Context, arm: Any) -> None:
    """Raise if an arm is the control, which is not one of the arms."""
    is_arm = isinstance(context.arms, ArmNames) and context.arms.known(arm) is not None
    if arm == context.experiment.settings.control and not is_arm:
        raise ParameterError(
            f"`arm` must be one of the arms, got {arm!r}, which is the control. To stop showing "
            f"it, begin an experiment without `control`."
        )


def restore(context: Context, arms: Any, *, more: bool = False) -> Change[None]:
    """Return a change that restores one or several arms; if one is refused, none is restored.

    `more` says that other arms of the same group follow.
    """
    return partial(_restore, context.experiment, check_restore(context, arms), more=more)


def check_restore(context: Context, arms: Any) -> list[int]:
    """Return the numbers of arms that can be restored, or raise."""
    experiment = context.experiment
    check_can(experiment, arrive)
    chosen = _numbers(context, arms)
    for number in chosen:
        if number not in experiment.ledger.retired:
            name = context.arms.name(number)
            message = f"Cannot restore arm {name!r}: it is not retired."
            raise TurnError(message, reason="not retired", arm=name)
    return chosen


def _restore(experiment: Experiment, chosen: list[int], *, more: bool) -> None:
    for number in chosen:
        experiment.restore(number, more=more)


class SyncPlan(NamedTuple):
    """The names of the arms to add, and the numbers of the arms to restore and to retire."""

    new: list[Any]
    back: list[int]
    gone: list[int]


def plan_sync(context: Context, arms: Any) -> SyncPlan:
    """Return what must be done to make exactly these arms available, or raise."""
    experiment, names = context
    if not isinstance(names, ArmNames):
        raise ParameterError(
            "sync_arms needs arms with names, but these are called by number. Begin an experiment "
            "with names, or use add_arms, retire and restore."
        )
    wanted = names.listed(arms)
    if not wanted:
        raise ParameterError("`arms` must hold at least one name, got none.")
    numbers = {name: names.known(name) for name in wanted}
    new = [name for name, number in numbers.items() if number is None]
    there = {number for number in numbers.values() if number is not None}
    back = sorted(there & experiment.ledger.retired)
    ledger = experiment.ledger
    gone = [arm for arm in range(ledger.n_all) if arm not in there and arm not in ledger.retired]
    if new or back:
        _check_can_add(experiment, len(new))
    if gone:
        check_can(experiment, retire_arm)
    return SyncPlan(new, back, gone)


def sync_arms(context: Context, arms: Any) -> Change[SyncedArms]:
    """Return a change that makes exactly these arms available, and returns what it did.

    Arms are added first and retired last, so that the experiment always has an arm.
    """
    return partial(_sync, context, plan_sync(context, arms))


def _sync(context: Context, plan: SyncPlan) -> SyncedArms:
    experiment, called = context.experiment, context.arms.name
    _add(context, plan.new)
    _restore(experiment, plan.back, more=False)
    _each(experiment.retire, plan.gone)
    back, gone = [*map(called, plan.back)], [*map(called, plan.gone)]
    return SyncedArms(plan.new, back, gone, experiment.ledger.n_arms)


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
        check_can_change(policy, state, retire_arm)
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


def _each(change: Callable[[int], None], chosen: Iterable[int]) -> None:
    for number in chosen:
        change(number)


def _numbers(context: Context, arms: Any) -> list[int]:
    """Return the numbers of one arm or of several, each once."""
    many = isinstance(arms, Iterable) and not isinstance(arms, str | bytes)
    return list(dict.fromkeys(map(context.arms.number, arms if many else [arms])))


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
