"""UCB1, UCB, KL-UCB and Thompson sampling: late rewards, indices by hand, distributions."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.rng import draw
from manyarms.policies.field import KLUCB, UCB, UCB1, Thompson
from manyarms.policies.field.scans import posterior_sample


@pytest.mark.parametrize("policy", [UCB1(), UCB(), KLUCB()], ids=lambda p: p.name)
def test_a_batch_pulls_all_arms_before_any_is_repeated(policy: ma.Policy) -> None:
    live = policy.live(n_arms=10, seed=3)
    first = live.ask(10)
    assert {pull.arm for pull in first} == set(range(10))
    again = live.ask(10)
    assert {pull.arm for pull in again} == set(range(10))
    for pull in reversed(first + again):
        live.tell(pull, 1.0 if pull.arm == 4 else 0.0)
    assert [live.ask().arm for _ in range(3)] == [4, 4, 4]


def test_an_abandoned_first_pull_is_repeated() -> None:
    live = UCB1().live(n_arms=3, seed=1)
    lost, *others = live.ask(3)
    for pull in others:
        live.tell(pull, 1.0)
    live.abandon(lost)
    assert live.ask().arm == lost.arm


def test_the_index_by_hand() -> None:
    # after one pull each, t = 2: the bonus is the same, so the better mean wins; after that
    # 1/2 + sqrt(2 log 3 / 2) = 1.548 against 0 + sqrt(2 log 3) = 1.482
    live = UCB1().live(n_arms=2, seed=0)
    good = live.ask()
    live.tell(good, 1.0)
    live.tell(live.ask(), 0.0)
    third = live.ask()
    assert third.arm == good.arm
    live.tell(third, 0.0)
    assert math.sqrt(math.log(3)) + 0.5 > math.sqrt(2 * math.log(3))
    assert live.ask().arm == good.arm


def below(x: float, a: int, b: int) -> float:
    """Return P(Beta(a, b) < x): that of a or more successes in a + b - 1 coins of mean x."""
    n = a + b - 1
    return math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))


@pytest.mark.parametrize(("a", "b"), [(2, 2), (2, 30), (70, 3), (60, 15), (1, 5), (5, 1), (1, 1)])
def test_posterior_samples_have_their_distribution(a: int, b: int) -> None:
    """Kolmogorov: P(sqrt(n) D > 2.9) <= 2 exp(-2 * 2.9^2) < 1e-7."""
    n, key = 4000, draw(17, a)
    values = sorted(posterior_sample(float(a), float(b), draw(key, k)) for k in range(n))
    tails = [below(value, a, b) for value in values]
    distance = max(max(abs(v - k / n), abs(v - (k + 1) / n)) for k, v in enumerate(tails))
    assert math.sqrt(n) * distance < 2.9


def plain_thompson(counts: list[list[int]], choice: random.Random) -> int:
    samples = [choice.betavariate(1 + s, 1 + f) for s, f in counts]
    return samples.index(max(samples))


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
def test_thompson_equals_sampling_every_arm() -> None:
    """Compare pulls of the best arms with sampling every arm by the standard library."""
    means, horizon, runs = [0.8, 0.3, 0.5, 0.8, 0.2, 0.4], 40, 2500
    result = ma.simulate(
        Thompson(), ma.instances.from_means(means), horizon=horizon, replications=runs, workers=1
    )
    ours = [int(pulls) for pulls in result.best_pulls[0]]
    choice = random.Random(2)
    theirs = []
    for _ in range(runs):
        order = choice.sample(means, len(means))
        counts = [[0, 0] for _ in means]
        best = 0
        for _ in range(horizon):
            arm = plain_thompson(counts, choice)
            counts[arm][int(choice.random() >= order[arm])] += 1
            best += order[arm] == 0.8
        theirs.append(best)

    def moments(values: list[int]) -> tuple[float, float]:
        mean = sum(values) / runs
        return mean, sum((v - mean) ** 2 for v in values) / runs / runs

    (mean, variance), (other, other_variance) = moments(ours), moments(theirs)
    # false alarms: 6e-5
    assert abs(mean - other) < 4 * math.sqrt(variance + other_variance)


def test_rewards_of_thompson_may_come_in_any_order() -> None:
    live = Thompson().live(n_arms=30, seed=4)
    choice = random.Random(1)
    pending: list[Any] = []
    for _ in range(60):
        pending += live.ask(5)
        choice.shuffle(pending)
        while len(pending) > 8:
            pull = pending.pop()
            live.tell(pull, 0.9 if pull.arm == 7 else 0.1)
    for pull in pending:
        live.abandon(pull)
    last = [pull.arm for pull in live.ask(40)]
    assert last.count(7) > 25
