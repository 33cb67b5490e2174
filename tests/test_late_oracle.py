"""With rewards late, in any order, or never, the package picks the arms of the slow references."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

import manyarms as ma
from manyarms.policies.parts.index import IndexPolicy
from tests.reference.late import (
    LateEmpMossPlusPlus,
    LateGame,
    LateMoss,
    LateMossPlusPlus,
    LateParallel,
    LateQuantile,
)
from tests.reference.words import policy_key
from tests.reference.world import Rewards, bernoulli, counted, eighths
from tests.test_oracle import MEANS, check_same, seed_for

WORLDS = ("spread", "one best", "eighths")

Make = Callable[[int, int, int, bool], LateGame]  # (n, horizon, key, count_late) -> a game


# name: the package's policy, the reference; both are also tried with `count_late`
PAIRS: dict[str, tuple[IndexPolicy, Make]] = {
    "moss": (
        ma.MOSS(),
        lambda n, horizon, key, late: LateMoss(n, n, horizon, key, count_late=late),
    ),
    "oracle": (
        ma.MOSSOracle(size=11),
        lambda n, horizon, key, late: LateMoss(n, 11, horizon, key, count_late=late),
    ),
    "quantile": (
        ma.Quantile(),
        lambda n, horizon, key, late: LateQuantile(n, horizon, key, count_late=late),
    ),
    "parallel": (
        ma.Parallel(best_mean=0.75),
        lambda n, horizon, key, late: LateParallel(n, 0.75, horizon, key, count_late=late),
    ),
    "moss++": (
        ma.MOSSPlusPlus(),
        lambda n, horizon, key, late: LateMossPlusPlus(n, "0.5", horizon, key, count_late=late),
    ),
    "moss++-0.75": (
        ma.MOSSPlusPlus(beta=0.75),
        lambda n, horizon, key, late: LateMossPlusPlus(n, "0.75", horizon, key, count_late=late),
    ),
    "empmoss++": (
        ma.EmpMOSSPlusPlus(),
        lambda n, horizon, key, late: LateEmpMossPlusPlus(n, "0.5", horizon, key, count_late=late),
    ),
    "empmoss++-0.75": (
        ma.EmpMOSSPlusPlus(beta=0.75),
        lambda n, horizon, key, late: LateEmpMossPlusPlus(n, "0.75", horizon, key, count_late=late),
    ),
}

# name: chances of asking on while pulls are in flight, of abandoning where one is settled, and
# whether it is the oldest one
TRAFFIC = {
    "now and then late": (0.2, 0.02, False),
    "late": (0.5, 0.1, False),
    "in order": (0.6, 0.0, True),
    "in order, some lost": (0.6, 0.3, True),
    "flood": (0.9, 0.1, False),
    "many lost": (0.5, 0.6, False),
}


def play_both(
    live: ma.live.Live, game: LateGame, horizon: int, rewards: Rewards, traffic: str, seed: int
) -> tuple[list[int], list[int]]:
    """Do the same to both, at random; return the arms of each."""
    chance, pull = random.Random(seed), counted(rewards)
    on, lost, oldest = TRAFFIC[traffic]
    picked: list[int] = []
    expected: list[int] = []
    due: dict[int, float] = {}
    while len(picked) < horizon:
        if not due or chance.random() < on:
            asked = live.ask()
            picked.append(asked.arm)
            expected.append(game.ask())
            due[asked.id] = pull(asked.arm)
            continue
        number = min(due) if oldest else chance.choice(list(due))
        reward = due.pop(number)
        if chance.random() < lost:
            live.abandon(number)
            game.abandon(number)
        else:
            live.tell(number, reward)
            game.tell(number, reward)
    return picked, expected


def check_games(name: str, traffic: str, count_late: bool) -> None:
    policy, make = PAIRS[name]
    policy = replace(policy, count_late=count_late)
    for n, horizon, world in product((1, 2, 7, 40), (1, 7, 50, 200), WORLDS):
        seed = seed_for(name, traffic, count_late, n, horizon, world)
        rewards = eighths(seed) if world == "eighths" else bernoulli(MEANS[world](n), seed, 0)
        live = policy.live(n_arms=n, horizon=horizon, seed=seed)
        game = make(n, horizon, policy_key(seed, 0), count_late)
        picked, expected = play_both(live, game, horizon, rewards, traffic, seed)
        check_same(picked, expected, f"{policy!r}, n={n}, T={horizon}, {world}, {seed=}")


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("name", PAIRS)
def test_late_games(name: str, traffic: str) -> None:
    check_games(name, traffic, count_late=False)


@pytest.mark.parametrize("traffic", ["in order", "in order, some lost"])
@pytest.mark.parametrize("name", PAIRS)
def test_late_pulls_count_in_the_bonus(name: str, traffic: str) -> None:
    check_games(name, traffic, count_late=True)


@pytest.mark.parametrize("name", PAIRS)
def test_late_pulls_count_in_the_bonus_in_any_order(name: str) -> None:
    check_games(name, "late", count_late=True)
