"""Views: what the API and the pages show of an experiment.

A view is a function of a `ViewData` and of the caller's parameters. It reads memory only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from manyarms.errors import (
    ManyarmsError,
    ParameterError,
    StoreDamagedError,
    TurnError,
    UnknownArmError,
)
from manyarms.inference.delays import DELAYS
from manyarms.inference.estimates import ArmEstimate
from manyarms.inference.question import CONFIDENCE
from manyarms.inference.reported import late_rewards_warning
from manyarms.inference.uplift import check_confidence
from manyarms.live.answers import default_target
from manyarms.live.arms import ArmNames
from manyarms.live.settings import Settings, settings_from
from manyarms.serve import clock
from manyarms.serve import messages as m
from manyarms.serve.view_data import ViewData
from manyarms.store import ExperimentRecord

SORTS = ("low", "estimate", "pulls", "told", "arm")  # orders of arms


def spec_of(settings: Settings, status: dict[str, Any]) -> m.Spec:
    """Return the settings of an experiment as the API shows them."""
    known = {
        name: getattr(settings, name)
        for name in m.Spec.__struct_fields__
        if name not in ("policy", "target", "n_arms")
    }
    known["policy"] = str(settings.policy)
    known["n_arms"] = settings.n_arms if settings.names is None else None
    known["target"] = default_target(settings, status)
    if "epsilon" in status:
        known["epsilon"] = status["epsilon"]
    return m.Spec(**known)


def unloaded(record: ExperimentRecord, trouble: str) -> m.ExperimentSummary:
    """Return the summary of an experiment that is not loaded."""
    state = record.state.get("state", "running")
    try:
        if record.damage:
            raise StoreDamagedError(record.damage)
        settings = settings_from(record.spec, None, record.name)
    except ManyarmsError as error:
        return m.ExperimentSummary(
            name=record.name, state=state, policy="unknown", spec=m.Spec(), alarm=str(error)
        )
    return m.ExperimentSummary(
        name=record.name,
        state=state,
        policy=str(settings.policy),
        spec=spec_of(settings, record.state),
        named=settings.names is not None,
        alarm=trouble,
    )


def summary(data: ViewData) -> m.ExperimentSummary:
    """Return a summary of an experiment."""
    one, experiment = data.one, data.experiment
    about: dict[str, Any] = {
        "name": one.name,
        "state": one.phase,
        "policy": str(experiment.policy),
        "spec": spec_of(experiment.settings, one.status),
        "named": one.named,
        "seq": experiment.seq,
        "season": experiment.ledger.season,
        "held": len(experiment.ledger.held),
    }
    if experiment.ledger.n_all == 0:
        return m.ExperimentSummary(**about)
    how, tried, verdict = data.progress(), data.tried, data.verdict()
    best = data.best(1)
    shown = m.ExperimentSummary.__struct_fields__
    known = {name: value for name, value in dataclasses.asdict(how).items() if name in shown}
    means = {name: number_or_none(getattr(how, name)) for name in ("mean_reward", "control_mean")}
    return m.ExperimentSummary(
        **about | known | means,
        recommended=_seen(data, best)[0] if best else None,
        rivals=tried.rivals(best[0]) if best else 0,
        untried=how.n_arms - int((~tried.retired).sum()),
        may_stop=verdict.stop,
        outcome=verdict.outcome,
        headline=verdict.headline,
        advice=f"{verdict.reasons} {verdict.warning}".strip(),
    )


def leaders(data: ViewData, k: int = 20) -> m.Leaders:
    """Return the best arms."""
    return m.Leaders(_seen(data, data.best(k)), data.experiment.seq)


def verdict(data: ViewData, **question: Any) -> m.VerdictView:
    """Return whether the recommended arm is good enough to stop, as `Live.verdict`."""
    if data.experiment.ledger.n_all == 0:
        raise TurnError("There are no arms yet. Add some first.", reason="no arms")
    said = data.judged(**question)
    words: dict[str, Any] = {"headline": said.headline, "why": said.why, "seq": data.experiment.seq}
    words["lower_bound"] = number_or_none(said.lower_bound)
    return m.VerdictView(**dataclasses.asdict(said) | words)


def uplift(data: ViewData, confidence: float = CONFIDENCE) -> m.UpliftView:
    """Return how much better the recommended arm is than the control, as `Live.uplift`."""
    said = data.uplift(check_confidence(confidence))
    known = {
        name: getattr(said, name)
        for name in m.UpliftView.__struct_fields__
        if hasattr(said, name) and name not in ("low", "high")
    }
    for name in ("mean", "control_mean", "difference", "ratio"):
        known[name] = number_or_none(known[name])
    for end, plain, ratio in zip(("low", "high"), said.interval, said.ratio_interval, strict=True):
        known |= {end: number_or_none(plain), f"ratio_{end}": number_or_none(ratio)}
    return m.UpliftView(**known, text=str(said), seq=data.experiment.seq)


def arms(
    data: ViewData, search: str = "", sort: str = "low", cursor: str = "", limit: int = 50
) -> m.ArmPage:
    """Return a page of arms.

    Sorted by `low`, `estimate`, `pulls` or `told`, it has the arms that were tried, the largest
    first. Sorted by `arm`, it has all arms, in the order in which they were added.
    """
    begin, end = _place_of(cursor), _place_of(cursor) + limit
    if sort == "arm":
        numbers: Any = data.found(search) if search else range(data.experiment.ledger.n_all)
        page = [_view(data, number, data.of_arm(number)) for number in numbers[begin:end]]
        total = len(numbers)
    else:
        ordered = data.ordered(sort)
        if search:
            ordered = ordered[np.isin(data.tried.arm[ordered], data.found(search))]
        page, total = _seen(data, ordered[begin:end]), len(ordered)
    return m.ArmPage(page, str(end) if end < total else None, total, data.experiment.seq)


def _place_of(cursor: str) -> int:
    if cursor and not (cursor.isdecimal() and len(cursor) < 19):
        raise ParameterError(f"`cursor` must be from an earlier answer, got {cursor[:100]!r}.")
    return int(cursor or 0)


def number_of(data: ViewData, name: str) -> int:
    """Return the number of the arm that a path or a body names, or raise."""
    arms = data.one.context.arms
    try:
        return arms.number(name)
    except UnknownArmError:
        has_text = isinstance(arms, ArmNames) and arms.kind == "text"
        if has_text or not name.isdecimal() or len(name) > 18:
            raise
        return arms.number(int(name))


def arm(data: ViewData, arm: str) -> m.ArmView:
    """Return one arm."""
    number = number_of(data, arm)
    return _view(data, number, data.of_arm(number))


def course(data: ViewData) -> m.Course:
    """Return pulls and rewards over time."""
    course = data.experiment.ledger.course
    points = [
        m.Point(float(course.step * at), int(asked), int(told), float(reward), int(fresh))
        for at, (asked, told, reward, fresh) in sorted(course.points.items())
    ]
    return m.Course(points, course.step, data.experiment.seq)


def pending(data: ViewData, limit: int = 20) -> m.PendingView:
    """Return the pending pulls, and how long rewards took."""
    experiment, now, name = data.experiment, clock.now(), data.one.context.name
    ages = [0] * (len(DELAYS) + 1)
    for pull in experiment.ledger.pending.values():
        ages[sum(now - pull.asked >= end for end in DELAYS)] += 1
    ends = [0.0, *DELAYS, None]
    bins = [m.DelayBin(ends[k] or 0.0, ends[k + 1], count, None) for k, count in enumerate(ages)]
    delays = [
        m.DelayBin(ends[k] or 0.0, ends[k + 1], int(count), total / count if count else None)
        for k, (count, total, _) in enumerate(experiment.ledger.delays.bins)
    ]
    return m.PendingView(
        count=len(experiment.ledger.pending),
        held=len(experiment.ledger.held),
        ages=bins,
        delays=delays,
        expired=experiment.ledger.expired,
        oldest=[
            m.PendingPull(number, name(pull.arm), now - pull.asked)
            for number, pull in islice(experiment.ledger.pending.items(), limit)
        ],
        alarm=late_rewards_warning(
            experiment.ledger.delays,
            hold=experiment.settings.hold,
            reward_range=experiment.settings.reward_range,
        ),
        uneven=[m.UnevenLoss(name(loss.arm), *loss[1:]) for loss in data.losses()],
        seq=experiment.seq,
    )


def _seen(data: ViewData, places: Iterable[int]) -> list[m.ArmView]:
    tried = data.tried
    return [_view(data, int(tried.arm[place]), tried.at(place)) for place in places]


def _view(data: ViewData, number: int, known: ArmEstimate) -> m.ArmView:
    recent = data.recent()
    return m.ArmView(
        arm=known.arm,
        number=number,
        pulls=known.pulls,
        told=known.told,
        estimate=number_or_none(known.estimate),
        low=number_or_none(known.interval[0]),
        high=number_or_none(known.interval[1]),
        retired=known.retired,
        recent=recent[number] / max(1, recent.total()),
        rate=known.rate,
    )


def number_or_none(value: float) -> float | None:
    """Return a number; None if it is infinite or NaN, which JSON cannot express."""
    return value if math.isfinite(value) else None


VIEWS = {
    view.__name__: view for view in (summary, leaders, verdict, uplift, arms, arm, course, pending)
}
