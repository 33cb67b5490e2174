"""Thompson sampling and its satisficing form: the law, and rewards in any order."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.policies.field import SatisficingTS, Thompson


def plain_thompson(counts: list[list[int]], choice: random.Random) -> int:
    samples = [choice.betavariate(1 + s, 1 + f) for s, f in counts]
    return samples.index(max(samples))


def plain_satisficing(counts: list[list[int]], choice: random.Random) -> int:
    while True:
        for arm, (s, f) in enumerate(counts):
            fresh = s + f == 0
            if fresh or choice.betavariate(1 + s, 1 + f) >= 0.6:
                return arm


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "plain"),
    [(Thompson(), plain_thompson), (SatisficingTS(target=0.6), plain_satisficing)],
    ids=["thompson", "satisficing"],
)
def test_the_law_is_that_of_sampling_every_arm(
    policy: ma.Policy, plain: Callable[[list[list[int]], random.Random], int]
) -> None:
    """Pulls of the best arms, with every arm sampled by the standard library instead."""
    means, horizon, games = [0.8, 0.3, 0.5, 0.8, 0.2, 0.4], 40, 2500
    result = ma.simulate(
        policy, ma.instances.from_means(means), horizon=horizon, replications=games, workers=1
    )
    ours = [int(pulls) for pulls in result.best_pulls[0]]
    choice = random.Random(2)
    theirs = []
    for _ in range(games):
        order = choice.sample(means, len(means))
        counts = [[0, 0] for _ in means]
        best = 0
        for _ in range(horizon):
            arm = plain(counts, choice)
            counts[arm][int(choice.random() >= order[arm])] += 1
            best += order[arm] == 0.8
        theirs.append(best)

    def moments(values: list[int]) -> tuple[float, float]:
        mean = sum(values) / games
        return mean, sum((v - mean) ** 2 for v in values) / games / games

    (mean, variance), (other, other_variance) = moments(ours), moments(theirs)
    # false alarms: 6e-5
    assert abs(mean - other) < 4 * math.sqrt(variance + other_variance)


@pytest.mark.parametrize("policy", [Thompson(), SatisficingTS(target=0.7)], ids=lambda p: p.name)
def test_rewards_may_come_in_any_order(policy: ma.Policy) -> None:
    live = policy.live(n_arms=30, seed=4)
    choice = random.Random(1)
    flying: list[Any] = []
    for _ in range(60):
        flying += live.ask(5)
        choice.shuffle(flying)
        while len(flying) > 8:
            pull = flying.pop()
            live.tell(pull, 0.9 if pull.arm == 7 else 0.1)
    for pull in flying:
        live.abandon(pull)
    last = [pull.arm for pull in live.ask(40)]
    assert last.count(7) > 25


def test_a_batch_of_first_pulls_spreads() -> None:
    live = Thompson().live(n_arms=10**9, seed=1)
    assert len({pull.arm for pull in live.ask(200)}) == 200


def test_the_target_is_the_instances_best_mean_less_the_tolerance() -> None:
    policy = SatisficingTS(tolerance=0.25).with_best_mean(0.75)
    assert policy.target == 0.5
    assert SatisficingTS(target=0.3).with_best_mean(0.75).target == 0.3
    assert SatisficingTS().with_best_mean(4.0).target == 1.0
    assert SatisficingTS().with_best_mean(-4.0).target == 0.0
