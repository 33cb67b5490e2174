"""Columns say the same as a handle's own estimates, however events come."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import estimates
from manyarms.serve.tallies import Tallies
from tests.remote.same import plain

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("limits", [(0.0, 1.0), None])
def test_columns_are_the_estimates(limits: Any) -> None:
    dice = random.Random(4)
    live = ma.MOSS().live(n_arms=3000, horizon=4000, seed=1, reward_range=limits)
    game = live._game
    tallies, changed = Tallies(game), set()
    for turn in range(1500):
        pull = live.ask()
        changed.add(pull.arm)
        if dice.random() < 0.8:
            live.tell(pull, dice.choice([0.0, 0.25, 1.0]))
        if turn in (700, 701, 1300):
            live.retire(live.recommend().arm)
        if turn % 97 == 0 or turn == 1499:
            tallies.refresh(changed)
            changed.clear()
            ours = [tallies.at(place) for place in range(tallies.size)]
            assert repr(plain(ours)) == repr(plain(estimates.known_arms(game)))
            top = [tallies.at(place) for place in tallies.best(20)]
            assert plain(top) == plain(estimates.top(game, 20))
    best = live.recommend()
    present = [a for a in live.arms() if a.told and not a.retired]
    rivals = sum(a.interval[1] > best.interval[0] for a in present) - 1
    assert tallies.rivals(tallies.best(1)[0]) == rivals
    assert sum(tallies.histogram()) == tallies.size
    assert tallies.reward == live.progress().reward
    for sort, key in (("pulls", "pulls"), ("told", "told"), ("estimate", "estimate")):
        order = [getattr(tallies.at(p), key) for p in tallies.order(sort) if tallies.told[p]]
        assert order == sorted(order, reverse=True)
