"""Mean regrets against exact expectations that share no code with the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import permutations

import numpy as np
import pytest

import manyarms as ma

FALSE_ALARM_Z = 4.9  # two-sided 1e-6


def exact_moss_regret(means: Sequence[float], horizon: int) -> float:
    """Enumerate all orders of arms, all choices between ties, and all rewards."""
    n = len(means)

    def index(total: float, pulls: int) -> float:
        return total / pulls + math.sqrt(max(0.0, math.log(horizon / (n * pulls))) / pulls)

    def expected(order: tuple[int, ...]) -> float:
        @cache
        def play(time: int, slots: tuple[tuple[int, float], ...]) -> float:
            if time == horizon:
                return 0.0
            if time < n:
                return pull(time, (*slots, (0, 0.0)), time)
            values = [index(total, pulls) for pulls, total in slots]
            tied = [slot for slot in range(n) if values[slot] == max(values)]
            return math.fsum(pull(time, slots, slot) for slot in tied) / len(tied)

        def pull(time: int, slots: tuple[tuple[int, float], ...], slot: int) -> float:
            mean = means[order[slot]]
            pulls, total = slots[slot]
            value = max(means) - mean
            for reward, probability in ((1.0, mean), (0.0, 1.0 - mean)):
                if probability > 0.0:
                    after = (*slots[:slot], (pulls + 1, total + reward), *slots[slot + 1 :])
                    value += probability * play(time + 1, after)
            return value

        return play(0, ())

    orders = list(permutations(range(n)))
    return math.fsum(expected(order) for order in orders) / len(orders)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("means", "horizon"), [((0.7, 0.2), 5), ((0.5, 0.4, 0.9), 9), ((0.3, 1.0, 0.8, 0.9), 12)]
)
def test_moss_on_tiny_problems(means: tuple[float, ...], horizon: int) -> None:
    """By a z-test on 100000 replications, false alarm 1e-6."""
    result = ma.simulate(
        ma.MOSS(), ma.instances.from_means(means), horizon=horizon, replications=100_000
    )
    row = result.summary().policies[0]
    assert abs(row.mean - exact_moss_regret(means, horizon)) < FALSE_ALARM_Z * row.se


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.MOSS()])
def test_the_first_arms_are_a_uniform_sample(policy: ma.Policy) -> None:
    """Pulls of k distinct arms lose k times the average gap (z-test, false alarm 1e-6).

    In iteration 1 of MOSS++ and empMOSS++, K_1 = Delta T_1, so each arm is pulled once. MOSS pulls
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
def test_moss_oracle_misses_as_often_as_its_set(alpha: float) -> None:
    """The number of runs without a best arm is binomial (z-test, false alarm 1e-6)."""
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
