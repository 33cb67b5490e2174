"""Pass an experiment to `inference`: columns of its arms, and facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any

from manyarms.core.gc_pause import gc_paused
from manyarms.errors import ParameterError, UnknownArmError
from manyarms.inference.facts import CONTROL, NO_CONTROL, ControlFacts, Facts
from manyarms.inference.question import Question, asked, is_percentage
from manyarms.inference.tried_arms import TriedArms
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Context
from manyarms.live.experiment import Experiment
from manyarms.live.settings import Settings
from manyarms.protocol.policy import recommend
from manyarms.protocol.recommend import scale_of


def tried_arms_of(experiment: Experiment, name_of: Callable[[int], Any]) -> TriedArms:
    """Return the tried arms of an experiment, after an update."""
    facts = facts_of(experiment, name_of)
    tried: TriedArms | None = experiment.columns
    if tried is None:
        tried = experiment.columns = TriedArms(facts)
        experiment.changed = set()
        with gc_paused():
            _update(tried, facts, experiment)
    else:
        _update(tried, facts, experiment)
    return tried


def _update(tried: TriedArms, facts: Facts, experiment: Experiment) -> None:
    """Update the arms that have changed, and add new ones."""
    arms = [arm for arm in experiment.changed if tried.place(arm) is not None]
    arms += islice(experiment.counts, tried.size, None)
    experiment.changed.clear()
    seen, retired = [experiment.counts[arm] for arm in arms], experiment.retired
    columns = {
        "asked": map(attrgetter("asked"), seen),
        "told": [one.told + one.observed for one in seen],
        "total": map(attrgetter("total"), seen),
        "missing": [one.asked - one.told for one in seen],
        "retired": [arm in retired for arm in arms],
    }
    tried.update(facts, arms, columns)


def facts_of(experiment: Experiment, name_of: Callable[[int], Any]) -> Facts:
    """Return the facts of an experiment that do not concern single arms."""
    settings, control = experiment.settings, experiment.control
    seat = -1 if experiment.state is None else recommend(experiment.state)
    if seat != -1 and not 0 <= seat < experiment.seats.count:
        raise ParameterError(
            f"{experiment.policy} recommended arm {seat}, but there are {experiment.n_all} arms, "
            f"numbered from 0. Its `recommend` must return the number of an arm with a reward, or "
            f"-1 to leave the choice to the common rule."
        )
    pending, abandoned = len(experiment.pending), len(experiment.abandoned)
    compared = None
    if control is not None and settings.control is not None:
        missing = control.asked - control.told
        pending -= missing - control.abandoned
        abandoned -= control.abandoned
        compared = ControlFacts(
            name=settings.control,
            asked=control.asked,
            told=control.told,
            total=control.total,
            missing=missing,
        )
    left = experiment.left
    return Facts(
        policy=str(experiment.policy),
        scale=scale_of(settings.scaled(experiment.policy), settings.reward_range),
        reward_range=settings.reward_range,
        n_arms=experiment.n_arms,
        all_arms=experiment.n_all,
        first_arms=experiment.first_arms,
        retired=experiment.retired,
        by_chance=experiment.by_chance,
        named=experiment.named,
        skipped=experiment.skipped,
        finder=seat >= 0,
        chosen=None if seat < 0 or experiment.unused else experiment.seats.arm(seat),
        pulls=experiment.pulls,
        told=experiment.told,
        earned=experiment.earned,
        pending=pending,
        abandoned=abandoned,
        horizon=None if left is None else experiment.pulls + left,
        recent=experiment.recent,
        observed=experiment.unused,
        reward=settings.reward,
        epsilon=settings.epsilon,
        control=compared,
        delays=experiment.delays,
        hold=settings.hold,
        name_of=name_of,
    )


def default_target(settings: Settings, status: dict[str, Any]) -> float | str | None:
    """Return the target of verdicts: as it was set in the service, or the control if there is one.

    If the experiment has an `epsilon` and no target was set, verdicts compare with the best arm.
    """
    epsilon = status.get("epsilon", settings.epsilon)
    by_control = settings.control is not None and epsilon is None
    target: float | str | None = status.get("target", "control" if by_control else None)
    return target


def question_of(
    context: Context,
    facts: Facts,
    *,
    epsilon: Any = None,
    quantile: Any = None,
    target: Any = None,
    **others: Any,
) -> Question:
    """Return the question of a verdict.

    If neither `epsilon`, `quantile` nor `target` is given, the target of the experiment applies.
    """
    changed = context.experiment.status
    if epsilon is None and quantile is None and target is None:
        target = default_target(context.experiment.settings, changed)
    if "epsilon" in changed:  # it may be None, which restores the default
        facts = replace(facts, epsilon=changed["epsilon"])
    rival = _rival_of(context, target) if isinstance(target, str) else None
    return asked(facts, epsilon=epsilon, quantile=quantile, target=target, rival=rival, **others)


def _rival_of(context: Context, target: str) -> int:
    """Return the number of the arm that a target names (`CONTROL` for the control)."""
    arms, control = context.arms, context.experiment.settings.control
    if control is not None and target in ("control", str(control)):
        return CONTROL
    is_arm = isinstance(arms, ArmNames) and arms.known(target) is not None
    if target == "control" and not is_arm:
        raise ParameterError(f"`target` is {target!r}, but {NO_CONTROL}", parameter="target")
    if is_percentage(target) and not is_arm:
        raise ParameterError(
            f"`target` must be a number such as 0.7, or the name of an arm, got {target[:100]!r}. "
            f"To require a share above an arm, name the arm, and pass the share as `margin`."
        )
    number = _is_int(target) and not is_arm  # arms may have numbers, or integers as names
    try:
        return arms.number(int(target) if number else target)
    except UnknownArmError as error:
        others = 'an arm, or "control"' if control is not None else "an arm"
        raise UnknownArmError(f"{error} `target` is a number or names {others}.") from None


def _is_int(text: str) -> bool:
    return text.isdecimal() and len(text) < 20
