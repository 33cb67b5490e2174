"""Mean regrets against exact expectations that share no code with the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

import manyarms as ma

FALSE_ALARM_Z = 4.9  # two-sided 1e-6


def exact_moss_regret(means: Sequence[float], horizon: int) -> float:
    """Enumerate all orders of arms, all orders of the priorities drawn, and all rewards.

    The priority that a slot draws after pull t is the t-th of independent uniform numbers, so
    their relative order is a uniform permutation, and nothing else about them matters.
    """
    n = len(means)

    def index(total: float, pulls: int) -> float:
        return total / pulls + math.sqrt(max(0.0, math.log(horizon / (n * pulls))) / pulls)

    def expected(order: tuple[int, ...], priorities: tuple[int, ...]) -> float:
        def play(time: int, slots: tuple[tuple[int, float, int], ...]) -> float:
            if time == horizon:
                return 0.0
            if time < n:
                slot = time
                slots = (*slots, (0, 0.0, 0))
            else:
                slot = max(range(n), key=lambda s: (index(slots[s][1], slots[s][0]), slots[s][2]))
            mean = means[order[slot]]
            pulls, total, _ = slots[slot]
            value = max(means) - mean
            for reward, probability in ((1.0, mean), (0.0, 1.0 - mean)):
                if probability > 0.0:
                    after = list(slots)
                    after[slot] = (pulls + 1, total + reward, priorities[time])
                    value += probability * play(time + 1, tuple(after))
            return value

        return play(0, ())

    orders = list(permutations(range(n)))
    ranks = list(permutations(range(horizon)))
    return math.fsum(expected(o, r) for o in orders for r in ranks) / len(orders) / len(ranks)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("means", "horizon"), [((0.7, 0.2), 5), ((0.5, 0.4, 0.9), 5), ((0.3, 1.0), 6)]
)
def test_moss_on_tiny_problems(means: tuple[float, ...], horizon: int) -> None:
    """A z-test on 100000 replications, false alarm 1e-6."""
    result = ma.simulate(
        ma.MOSS(), ma.instances.from_means(means), horizon=horizon, replications=100_000
    )
    row = result.summary().policies[0]
    assert abs(row.mean - exact_moss_regret(means, horizon)) < FALSE_ALARM_Z * row.se


@pytest.mark.compiled
@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.MOSS()])
def test_the_first_arms_are_a_uniform_sample(policy: ma.Policy) -> None:
    """Pulls of k distinct arms lose k times the average gap: a z-test, false alarm 1e-6.

    In iteration 1 of MOSS++ and empMOSS++ K_1 = Delta T_1, so each arm is pulled once; MOSS tries
    every arm once before any arm twice.
    """
    n, m, horizon, k = 5000, 40, 4096, 128  # p = 6: K_1 = 2^7
    instance = ma.instances.planted(n=n, m=m)
    result = ma.simulate(
        policy, instance, horizon=horizon, replications=4000, checkpoints=[k], record_arms=False
    )
    regret = result.regret[0, :, 0]
    average_gap = sum(0.9 - instance.mean(arm) for arm in range(n)) / n
    error = regret.std(ddof=1) / math.sqrt(len(regret))
    assert abs(regret.mean() - k * average_gap) < FALSE_ALARM_Z * error
    # the sum of k of n gaps drawn without replacement has this variance
    gaps = np.array([0.9 - instance.mean(arm) for arm in range(n)])
    variance = k * gaps.var() * (n - k) / (n - 1)
    assert regret.var() == pytest.approx(variance, rel=FALSE_ALARM_Z * math.sqrt(2 / 4000))


@pytest.mark.compiled
@pytest.mark.parametrize("alpha", [0.3, 0.5])
def test_the_oracle_misses_as_often_as_its_set_does(alpha: float) -> None:
    """The number of runs without a best arm is binomial: a z-test, false alarm 1e-6."""
    n, horizon, replications = 3000, 1000, 4000
    m = 3
    result = ma.simulate(
        ma.MOSSOracle(alpha=alpha),
        ma.instances.planted(n=n, m=m),
        horizon=horizon,
        replications=replications,
    )
    size = min(math.ceil(2 * horizon**alpha * math.log(math.sqrt(horizon))), horizon)
    p = ma.miss_probability(n, m, size)
    missed = int((result.best_pulls == 0).sum())
    deviation = math.sqrt(replications * p * (1 - p))
    assert abs(missed - replications * p) < FALSE_ALARM_Z * deviation
