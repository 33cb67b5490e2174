"""The calls that change which arms there are; the rules of `calls` hold here, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from manyarms.core.jit import Dispatched
from manyarms.errors import ParameterError, TurnError
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Change, Context
from manyarms.live.checks import check_first_draws
from manyarms.live.experiment import Experiment
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import arrive
from manyarms.protocol.policy import retire as retire_arm


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
    return partial(_retire, context.experiment, check_retire(context, arms))


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


def _retire(experiment: Experiment, chosen: list[int]) -> None:
    for number in chosen:
        experiment.retire(number)


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
    _retire(experiment, plan.gone)
    back, gone = [*map(called, plan.back)], [*map(called, plan.gone)]
    return SyncedArms(plan.new, back, gone, experiment.ledger.n_arms)


def _numbers(context: Context, arms: Any) -> list[int]:
    """Return the numbers of one arm or of several, each once."""
    many = isinstance(arms, Iterable) and not isinstance(arms, str | bytes)
    return list(dict.fromkeys(map(context.arms.number, arms if many else [arms])))
