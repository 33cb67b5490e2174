"""Proven bounds and measured comparisons of Patience.

Bounds are on expectations. So the upper end of Student's interval for a mean is compared with its
bound, at a one-sided level of 1e-6 divided by the number of comparisons. If a test passes, the
expectations are below their bounds with confidence 1 - 1e-6 (if means are normal). The measured
means are below half of their bounds, so the probability of a false alarm is far below 1e-6.

Differences between policies are paired by run. The lower end of Student's interval for their mean
must be above 0, at a one-sided level of 1e-3. Over 1000 runs the means of the differences were at
least 22 standard errors above 0. Over 80 runs 6.3 are expected and 3.2 needed, so the probability
of a false alarm is about 1e-3 for the closest of them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms.theory import patience_bound
from tests.helpers import state_of
from tests.student_t import student_quantile

FALSE_ALARM = 1e-6
RUNS = 12
PAIRED_RUNS, PAIRED_LEVEL = 80, 1e-3
OTHERS = (0.1, 0.2, 0.3, 0.4, 0.5)


def end_of_interval(values: NDArray[np.float64], level: float) -> float:
    """Return the upper end of a one-sided interval for the mean, or the lower end for -level."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    quantile = student_quantile(1 - abs(level), len(values) - 1)
    return float(values.mean()) + math.copysign(quantile, level) * error


@cache
def regrets(alpha: float) -> dict[str, NDArray[np.float64]]:
    instance = ma.instances.planted(n=20_000, alpha=alpha, horizon=50_000)
    policies = [ma.Patience(), ma.Parallel()]
    result = ma.simulate(
        policies, instance, horizon=50_000, replications=PAIRED_RUNS, seed=7, checkpoints=1
    )
    return dict(zip(result.policies, result.regret[:, :, -1], strict=True))


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.6])
def test_patience_loses_less_than_parallel(alpha: float) -> None:
    saved = regrets(alpha)["parallel"] - regrets(alpha)["patience"]
    assert end_of_interval(saved, -PAIRED_LEVEL) > 0


@pytest.mark.compiled
@pytest.mark.slow
def test_patience_stays_within_its_bound() -> None:
    problems = [
        (n, max(1, round(n / ratio)), horizon, gap)
        for horizon in (2, 2**8, 2**12, 2**16)
        for n, ratio in ((2, 2), (20, 20), (300, 3), (300, 30), (20_000, 200))
        for gap in (0.9, 0.5, 0.2, 0.05)
    ]
    biting = 0
    for seed, (n, m, horizon, gap) in enumerate(problems):
        instance = ma.instances.planted(n=n, m=m, best=0.5 + gap / 2, others=[0.5 - gap / 2])
        result = ma.simulate(
            ma.Patience(), instance, horizon=horizon, replications=100, seed=seed, checkpoints=1
        )
        regret, bound = result.regret[0, :, -1], patience_bound(n, m, horizon)
        biting += bound < gap * horizon
        assert end_of_interval(regret, FALSE_ALARM / len(problems)) <= bound, (n, m, horizon, gap)
        assert regret.mean() <= bound / 2 or horizon == 2
    assert biting >= 10


@pytest.mark.compiled
@pytest.mark.slow
def test_a_best_arm_is_seldom_discarded() -> None:
    # all arms are best: by the proof, a second visit begins with probability at most 1/T
    instance = ma.instances.from_means([0.5] * 2)
    result = ma.simulate(
        ma.Patience(), instance, horizon=100, replications=4000, record_arms=True, checkpoints=1
    )
    assert result.arms is not None
    left = (result.arms[0] != result.arms[0][:, :1]).any(axis=1).sum()
    # 1e-6: more than 40 + 4.8 sqrt(40) of 4000 runs would contradict 1/T
    assert left <= 40 + 4.8 * math.sqrt(40)


def test_a_late_reward_of_a_discarded_arm_is_ignored() -> None:
    live = ma.Patience(best_mean=1.0).live(n_arms=10**6, horizon=100, seed=1)
    pulls = live.ask(40)
    assert len({pull.arm for pull in pulls}) == 1
    for pull in pulls[:20]:
        live.tell(pull, 0.0)  # log 100 = 4.6: the fifth failure is one too many
    after = live.ask()
    assert after.arm != pulls[0].arm
    for pull in pulls[20:]:
        live.tell(pull, 1.0)
    assert state_of(live).current[0].pulls == 0
