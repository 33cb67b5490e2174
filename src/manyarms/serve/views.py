"""What panels and pages show: plain answers from an experiment.

A view is a function of a `Look` and of what the asker chose.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from itertools import islice
from typing import Any

import numpy as np

from manyarms.inference.estimates import ArmEstimate
from manyarms.serve import clock
from manyarms.serve import messages as m
from manyarms.serve.game import DELAYS
from manyarms.serve.look import Look, place_of
from manyarms.serve.uplift import number_or_none, uplift

SORTS = ("low", "estimate", "pulls", "told", "arm")  # of arms
_POINTS = 300  # of a series, at most
_MOST_FOUND = 2000  # arms of a search that is sorted by what is known of them


def summary(look: Look) -> m.ExperimentSummary:
    """Return an experiment at a glance."""
    game = look.game
    about: dict[str, Any] = {
        "name": game.name,
        "state": game.phase,
        "policy": look.policy,
        "spec": game.spec,
        "keyed": game.keyed,
        "head": game.head,
        "held": len(game.held),
        "horizon": game.spec.horizon,
    }
    if game.live is None:
        return m.ExperimentSummary(**about)
    how, tallies = look.progress(), look.tallies
    assert tallies is not None
    best = look.best(1)
    kept = tallies.at(best[0]) if best else None
    verdict = look.verdict()
    told, reward = look.last_hour()
    shown = m.ExperimentSummary.__struct_fields__
    known = {name: value for name, value in dataclasses.asdict(how).items() if name in shown}
    means = {name: number_or_none(getattr(how, name)) for name in ("mean_reward", "control_mean")}
    return m.ExperimentSummary(
        **about | known | means,
        recommended=None if kept is None else _seen(look, [kept])[0],
        rivals=tallies.rivals(best[0]) if best else 0,
        untried=how.n_arms - int((~tallies.retired).sum()),
        may_stop=None if verdict is None else verdict.stop,
        outcome="" if verdict is None else verdict.outcome,
        headline="" if verdict is None else verdict.headline,
        advice="" if verdict is None else f"{verdict.reasons} {verdict.warning}".strip(),
        last_hour=reward / told if told else None,
    )


def leaders(look: Look, k: int = 20) -> m.Leaders:
    """Return the best arms."""
    tallies = look.tallies
    best = [] if tallies is None else [tallies.at(place) for place in look.best(k)]
    return m.Leaders(_seen(look, best), look.game.head)


def verdict(look: Look, **question: Any) -> m.VerdictView | None:
    """Return whether the recommended arm is good enough, as `Live.verdict`; None without arms."""
    said = look.judged(**question)
    if said is None:
        return None
    words = {"headline": said.headline, "why": said.why, "head": look.game.head}
    return m.VerdictView(**dataclasses.asdict(said) | {"limit": number_or_none(said.limit)} | words)


def arms(
    look: Look,
    search: str = "",
    sort: str = "low",
    cursor: str = "",
    limit: int = 50,
) -> m.ArmPage:
    """Return a page of arms.

    By `low`, `estimate`, `pulls` or `told`, the largest first, only arms that were tried; by `arm`
    all of them, in the order of their keys or numbers.
    """
    game = look.game
    if game.live is None:
        return m.ArmPage([], None, 0, game.head)
    if sort == "arm":
        numbers, after = look.listed(search, cursor, limit)
        shown = [look.of_arm(number) for number in numbers]
        total = None if search else game.live.n_arms
        return m.ArmPage(_seen(look, shown), after, total, game.head)
    tallies, ordered = look.tallies, look.ordered(sort)
    assert tallies is not None
    if search:
        among = look.listed(search, "", _MOST_FOUND)[0]
        ordered = ordered[np.isin(tallies.arm[ordered], among)]
    begin = place_of(cursor)
    page = [tallies.at(place) for place in ordered[begin : begin + limit]]
    after = str(begin + limit) if begin + limit < len(ordered) else None
    return m.ArmPage(_seen(look, page), after, len(ordered), game.head)


def arm(look: Look, key: str) -> m.ArmView | None:
    """Return one arm; None if there is none of this key."""
    number = look.number(key)
    if number is None or look.game.live is None:
        return None
    return _seen(look, [look.of_arm(number)])[0]


def minutes(look: Look) -> m.Minutes:
    """Return what happened when, in 300 points at most."""
    step, rows = look.minutes(_POINTS)
    shown = [
        m.Minute(60.0 * step * at, int(a), int(t), int(gone), float(reward), int(fresh))
        for at, a, t, gone, reward, fresh in rows
    ]
    return m.Minutes(shown, step, look.game.head)


def pending(look: Look, limit: int = 20) -> m.PendingView:
    """Return the pending pulls, and how long rewards took."""
    game, now = look.game, clock.now()
    ages = [0] * (len(DELAYS) + 1)
    for at in game.flying.values():
        ages[sum(now - at >= end for end in DELAYS)] += 1
    ends = [0.0, *DELAYS, None]
    bins = [m.DelayBin(ends[k] or 0.0, ends[k + 1], count, None) for k, count in enumerate(ages)]
    delays = [
        m.DelayBin(ends[k] or 0.0, ends[k + 1], int(count), total / count if count else None)
        for k, (count, total, _) in enumerate(game.delays)
    ]
    oldest = list(islice(game.flying.items(), limit))
    live = game.live
    found = ((pull, None if live is None else live.flying(pull)) for pull, _ in oldest)
    numbers = {pull: arm for pull, arm in found if arm is not None}
    losses = look.losses()
    names = look.names([*numbers.values(), *(loss.arm for loss in losses)])
    shown = [
        m.PendingPull(pull, names[numbers[pull]], now - at)
        for pull, at in oldest
        if pull in numbers
    ]
    return m.PendingView(
        len(game.flying), len(game.held), bins, delays, game.expired, shown,
        _delay_alarm(game.delays), game.head,
        [m.UnevenLoss(names[one.arm], *one[1:]) for one in losses],
    )  # fmt: skip


def _delay_alarm(delays: list[list[float]]) -> str:
    """Say so if rewards that come early differ from those that come late, beyond chance."""
    seen = [(count, total, squares) for count, total, squares in delays if count >= 30]
    if len(seen) < 2:
        return ""
    count = sum(s[0] for s in seen)
    mean = sum(s[1] for s in seen) / count
    spread = sum(s[2] for s in seen) / count - mean * mean
    if spread <= 0:
        return ""
    between = sum(s[0] * (s[1] / s[0] - mean) ** 2 for s in seen) / spread
    degrees = len(seen) - 1
    # the chance of a chi-square as large, by Wilson and Hilferty; looked at often, so a small one
    z = ((between / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    if z < 4.0:
        return ""
    return (
        "The mean reward differs by delay: arms look better or worse while their late rewards are "
        "missing. Set a window, with early: hold."
    )


def _seen(look: Look, some: list[ArmEstimate]) -> list[m.ArmView]:
    names = look.names([a.arm for a in some])
    recent = Counter(look.game.recent)
    of = max(1, len(look.game.recent))
    return [
        m.ArmView(
            arm=names[a.arm],
            number=a.arm,
            pulls=a.pulls,
            told=a.told,
            estimate=number_or_none(a.estimate),
            low=number_or_none(a.interval[0]),
            high=number_or_none(a.interval[1]),
            retired=a.retired,
            recent=recent[a.arm] / of,
            rate=a.rate,
        )
        for a in some
    ]


VIEWS = {
    view.__name__: view for view in (summary, leaders, verdict, uplift, arms, arm, minutes, pending)
}
