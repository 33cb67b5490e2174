"""What statistics need of a game of the service: columns of its arms, and facts."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from manyarms.core.gc_pause import gc_paused
from manyarms.inference.facts import ControlFacts, Facts
from manyarms.inference.tallies import Tallies
from manyarms.live.checks import exchangeable
from manyarms.live.game import LiveGame
from manyarms.protocol.policy import recommend
from manyarms.protocol.recommend import scale_of

_MANY = 50_000  # arms, whose rewards are added up with a rounding error


def tallies_of(game: LiveGame) -> Tallies:
    """Return the tallies of a game, brought up to date."""
    facts = facts_of(game)
    tallies: Tallies | None = game.columns
    if tallies is None:
        tallies = game.columns = Tallies(facts)
        game.changed = set()
        with gc_paused():
            _update(tallies, facts, game)
    else:
        _update(tallies, facts, game)
    return tallies


def _update(tallies: Tallies, facts: Facts, game: LiveGame) -> None:
    known = tallies.size
    arms = [arm for arm in game.changed if tallies.place(arm) is not None]
    arms += islice(game.tally, known, None)
    game.changed.clear()
    seen = [game.tally[arm] for arm in arms]
    told, total = (list(map(attrgetter(name), seen)) for name in ("told", "total"))
    asked = list(map(attrgetter("asked"), seen))
    columns = {
        "asked": asked,
        "missing": [pulls - rewards for pulls, rewards in zip(asked, told, strict=True)],
        "retired": [arm in game.retired for arm in arms],
    }
    if game.stock:
        for k, arm in enumerate(arms):
            if arm in game.stock:
                told[k], total[k] = game.known(arm)
    tallies.update(facts, arms, columns | {"told": told, "total": total})
    waiting = math.fsum(reward for some in game.stock.values() for reward in some)
    column = tallies.total
    total_now = float(column.sum()) if tallies.size > _MANY else math.fsum(column.tolist())
    tallies.facts = replace(facts, earned=total_now - waiting)


def facts_of(game: LiveGame) -> Facts:
    """Return what is known of a game beside its arms."""
    seat, control = recommend(game.state), game.control
    compared = None
    if control is not None:
        compared = ControlFacts(
            name=control.name,
            asked=control.asked,
            told=control.told,
            total=control.total,
            missing=len(control.flight) + len(control.abandoned),
        )
    return Facts(
        policy=str(game.policy),
        scale=scale_of(game.policy, game.reward_range),
        reward_range=game.reward_range,
        n_arms=game.n_arms,
        all_arms=game.arms.count,
        first_arms=game.first_arms,
        retired=game.retired,
        by_chance=exchangeable(game.policy),
        named=game.named,
        skipped=game.skipped,
        met=game.met,
        chosen=None if seat < 0 else game.seats.arm(seat),
        pulls=game.pulls,
        told=game.pulls - len(game.flight) - len(game.abandoned),
        earned=math.nan,
        pending=len(game.flight),
        abandoned=len(game.abandoned),
        horizon=game.horizon,
        recent=game.recent,
        observed=sum(map(len, game.stock.values())),
        reward=game.reward,
        epsilon=game.epsilon,
        control=compared,
        name_of=game.arms.name,
    )
