"""Computations on columns agree with loops over arms, after any sequence of events."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.inference.estimates import mean_text
from manyarms.inference.missing import highest
from manyarms.live.counts import ArmCounts
from tests.inference import by_loops

RANGES = [(0.0, 1.0), (-1.0, 2.0), None]


def _play(live: ma.Live, dice: random.Random, shape: str, turns: int) -> None:
    low, high = live._experiment.settings.reward_range or (-1.0, 1.0)
    for _ in range(turns):
        pull = live.ask()
        arm = live._experiment.ledger.pending[pull.id].arm
        mean = random.Random(arm).random()
        value = {
            "coins": float(dice.random() < mean),
            "all": min(1.0, max(0.0, dice.gauss(mean, 0.2))),
            "zeros": 0.0,
            "tiny": dice.choice([0.0, -0.0, 5e-324, 1e-310, 1e-30, 1.0]),
        }[shape]
        if dice.random() < 0.9:
            live.tell(pull, min(high, low + (high - low) * value))
        if dice.random() < 0.02:
            _change(live, dice)


def _change(live: ma.Live, dice: random.Random) -> None:
    arm, experiment = dice.randrange(live._experiment.ledger.n_all), live._experiment
    what = dice.choice(["observe", "retire", "restore", "add", "retire best"])
    if what == "observe":
        low, high = experiment.settings.reward_range or (-1.0, 1.0)
        live.observe(arm, [dice.choice([low, high]) for _ in range(dice.choice([1, 5, 40]))])
    elif what == "add":
        live.add_arms(2)
    elif what == "restore" and experiment.ledger.retired:
        live.restore(min(experiment.ledger.retired))
    elif what == "retire" and arm not in experiment.ledger.retired:
        live.retire(arm)
    elif what == "retire best" and by_loops.kept(experiment) >= 0:
        live.retire(by_loops.kept(experiment))


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("shape", ["coins", "all", "zeros", "tiny"])
def test_columns_agree_with_loops(limits: Any, shape: str) -> None:
    dice = random.Random(4)
    for n_arms, policy in ((5, ma.MOSS()), (400, ma.MOSS()), (170, ma.MOSSOracle(size=160))):
        scaled = policy.with_reward_range((0.0, 1.0))
        live = scaled.live(n_arms=n_arms, horizon=10**6, seed=1, reward_range=limits)
        experiment = live._experiment
        for turn in range(12):
            _play(live, dice, shape, dice.choice([1, 7, 60]))
            tried = live._tried_arms()
            assert tried.arm.tolist() == list(experiment.ledger.counts)
            known = [(counts.known, counts.total) for counts in experiment.ledger.counts.values()]
            assert list(zip(tried.told.tolist(), tried.total.tolist(), strict=True)) == known
            assert tried.retired.tolist() == [
                arm in experiment.ledger.retired for arm in experiment.ledger.counts
            ]
            assert tried.asked.tolist() == [one.asked for one in experiment.ledger.counts.values()]
            if by_loops.kept(experiment) < 0:
                assert tried.best(3) == []
                continue
            assert tried.arm[tried.best(20)].tolist() == by_loops.top(experiment, 20)
            asked = dice.choice([0.01, 0.2, 0.6]), dice.choice([0.0, 0.05, 0.3]), 0.95
            _check_verdict(live, asked, turn)


def _check_verdict(live: ma.Live, asked: tuple[float, float, float], turn: int) -> None:
    expected = by_loops.judged(live._experiment, *asked)
    epsilon, quantile, confidence = asked
    found = live.verdict(epsilon=epsilon, quantile=quantile, confidence=confidence)
    numbers = (found.arm, found.stop, found.tried, found.beaten, found.met, found.unsettled)
    assert numbers == (expected.arm, expected.stop, *expected[3:7]), turn
    assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-11, abs=1e-11)
    named = re.findall(r"(\d+) \(upper bound ([^,]+),", found.missing)
    if named:
        assert named == [(str(arm), mean_text(high, found.rate)) for arm, high in expected.highest]


@pytest.mark.parametrize("shape", ["coins", "all"])
def test_many_arms_are_judged_in_blocks(shape: str) -> None:
    """More than one block of arms, and more arms than have names at once."""
    luck, size = np.random.default_rng(1), 20_000
    live = ma.MOSS().live(n_arms=size, horizon=10**9, seed=1)
    told = luck.geometric(0.1, size)
    draws = luck.binomial(told, luck.beta(1, 3, size)) if shape == "coins" else luck.random(size)
    total = draws if shape == "coins" else told * draws
    for arm in luck.permutation(size).tolist():
        pulls = int(told[arm])
        live._experiment.ledger.counts[arm] = ArmCounts(0, pulls, pulls, 0, float(total[arm]))
    live._experiment.ledger.counts[7] = ArmCounts(0, 3000, 3000, 0, 2500.0)
    for asked in ((0.1, 0.05, 0.95), (0.1, 0.0, 0.95), (0.05, 0.6, 0.95)):
        _check_verdict(live, asked, 0)
        tried, bar = live._tried_arms(), 0.3
        places = np.flatnonzero(tried.intervals_at(np.arange(size), 0.05)[1] > bar)
        highs = tried.intervals_at(places, 0.05)[1]
        order = np.argsort(-highs, kind="stable")[:3]
        named = highest(tried, places, 0.05)
        assert [place for place, _ in named] == places[order].tolist()


def test_views_use_columns() -> None:
    live = ma.MOSS().live(n_arms=3000, horizon=4000, seed=1)
    dice = random.Random(4)
    _play(live, dice, "coins", 1500)
    tried = live._tried_arms()
    best = live.recommend()
    present = [a for a in live.arms() if a.told and not a.retired]
    rivals = sum(a.interval[1] > best.interval[0] for a in present) - 1
    assert tried.rivals(tried.best(1)[0]) == rivals
    for sort, key in (("pulls", "pulls"), ("told", "told"), ("estimate", "estimate")):
        order = [getattr(tried.at(int(p)), key) for p in tried.order(sort) if tried.told[p]]
        assert order == sorted(order, reverse=True)
