"""Make answers: pass the ledger and the settings of an experiment to `inference`.

Two values come from the search, for display and for the choice of the recommended arm: the arm that
a finder recommends, and what the policy is doing. No bound depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any

from manyarms.core.gc_pause import gc_paused
from manyarms.errors import ParameterError, UnknownArmError
from manyarms.inference.estimates import count
from manyarms.inference.facts import CONTROL, NO_CONTROL, ControlFacts, Facts
from manyarms.inference.question import Question, asked, is_percentage
from manyarms.inference.tried_arms import TriedArms
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Context
from manyarms.live.checks import exchangeable
from manyarms.live.experiment import Experiment
from manyarms.live.ledger import Ledger
from manyarms.live.settings import Settings

_INTEGER = re.compile(r"-?[0-9]{1,640}")  # as long as the name of an arm may be


def tried_arms_of(experiment: Experiment, name_of: Callable[[int], Any]) -> TriedArms:
    """Return the tried arms of an experiment, after an update."""
    facts, ledger = facts_of(experiment, name_of), experiment.ledger
    tried: TriedArms | None = experiment.columns
    if tried is None:
        tried = experiment.columns = TriedArms(facts)
        ledger.changed = set()
        with gc_paused():
            _update(tried, facts, ledger, ledger.changed)
    else:
        _update(tried, facts, ledger, ledger.changed or set())
    return tried


def _update(tried: TriedArms, facts: Facts, ledger: Ledger, changed: set[int]) -> None:
    """Update the arms that have changed, and add new ones."""
    arms = [arm for arm in changed if tried.place(arm) is not None]
    arms += islice(ledger.counts, tried.size, None)
    changed.clear()
    seen, retired = [ledger.counts[arm] for arm in arms], ledger.retired
    columns = {
        "asked": map(attrgetter("asked"), seen),
        "told": [one.told + one.observed for one in seen],
        "total": map(attrgetter("total"), seen),
        "missing": [one.asked - one.told for one in seen],
        "retired": [arm in retired for arm in arms],
    }
    tried.update(facts, arms, columns)


def facts_of(experiment: Experiment, name_of: Callable[[int], Any]) -> Facts:
    """Return the facts of an experiment: what its ledger, its settings and its search say."""
    ledger, settings, search = experiment.ledger, experiment.settings, experiment.search
    return Facts(
        policy=str(experiment.policy),
        finder=search is not None and search.is_finder,
        chosen=None if search is None else search.recommended,
        **_settled(settings),
        **_counted(ledger),
        control=_control(ledger, settings.control),
        retired=ledger.retired,
        named=ledger.named,
        missed=len(ledger.missed),
        recent=ledger.recent,
        delays=ledger.delays,
        name_of=name_of,
    )


def _settled(settings: Settings) -> dict[str, Any]:
    """Return the facts that follow from the settings."""
    return {
        "scale": settings.scale,
        "reward_range": settings.reward_range,
        "by_chance": exchangeable(settings.policy),
        "reward": settings.reward,
        "epsilon": settings.epsilon,
        "hold": settings.hold,
    }


def _counted(ledger: Ledger) -> dict[str, Any]:
    """Return numbers from the ledger. Those of pulls are without the control."""
    control, left = ledger.control, ledger.left
    pending, abandoned = len(ledger.pending), ledger.n_abandoned
    held = sum(ledger.pending[number].arm != CONTROL for number in ledger.held)
    if control is not None:
        pending -= control.asked - control.told - control.abandoned
        abandoned -= control.abandoned
    return {
        "n_arms": ledger.n_arms,
        "all_arms": ledger.n_all,
        "first_arms": ledger.first_arms,
        "pulls": ledger.pulls,
        "told": ledger.told,
        "earned": ledger.earned,
        "observed": ledger.observed,
        "zero_or_one": ledger.fractional == 0.0,
        "pending": pending,
        "held": held,
        "abandoned": abandoned,
        "horizon": None if left is None else ledger.pulls + left,
    }


def _control(ledger: Ledger, name: str | int | None) -> ControlFacts | None:
    control = ledger.control
    if control is None or name is None:
        return None
    return ControlFacts(
        name=name,
        asked=control.asked,
        told=control.told,
        total=control.total,
        missing=control.asked - control.told,
    )


def stage_of(experiment: Experiment) -> str:
    """Return what the search does now, as text; empty before there are arms."""
    search, ledger = experiment.search, experiment.ledger
    if search is None:
        return ""
    unused = 0 if search.credits else ledger.known - (ledger.told if ledger.season == 1 else 0)
    without = f"{count(unused, 'earlier reward')} not used" if unused else ""
    return ", ".join(filter(None, (search.stage, without)))


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
    return _INTEGER.fullmatch(text) is not None
