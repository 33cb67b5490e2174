"""Published regrets are reproduced within both standard errors.

Jedor, Louëdec & Perchet, "Be greedy in multi-armed bandits" (2021): the notebook on many-armed
bandits in their public repository mjedor/greedy-bandits prints means over 10 runs, with K = 2000
arms, T = 5000, ⌈K / T^0.4⌉ best arms of mean 0.9 and the others evenly over 0.1, ..., 0.5. Their
MOSS has our default index and breaks ties at random at every step.

A mean of 10 runs may be far from normal: sub-sampled MOSS sometimes misses all best arms. So each
published mean is compared with means of 10 runs drawn from many of ours. It must lie between
quantiles that exclude 1e-3 of them in total, which is the false-alarm probability of a test, up to
the error of the quantiles.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms.policies.field import Greedy, SubSampled

ARMS, HORIZON, ALPHA = 2000, 5000, 0.4
FALSE_ALARM = 1e-3
RUNS, THEIR_RUNS, MEANS = 1000, 10, 40_000

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

SUBSET = math.ceil(HORIZON**ALPHA * math.log(math.sqrt(HORIZON)))
GREEDY_SUBSET = math.ceil((1 - 2 * ALPHA) * HORIZON ** (2 * ALPHA) * math.log(HORIZON) / 4)
PUBLISHED: dict[ma.Policy, float] = {
    ma.MOSS(): 2450.23,
    SubSampled(ma.MOSS(), size=SUBSET): 470.74,
    Greedy(): 1634.34,
    SubSampled(Greedy(), size=GREEDY_SUBSET): 318.03,
}


@cache
def regret(policy: ma.Policy) -> NDArray[np.float64]:
    instance = ma.instances.planted(n=ARMS, m=math.ceil(ARMS / HORIZON**ALPHA))
    result = ma.simulate(policy, instance, horizon=HORIZON, replications=RUNS, checkpoints=1)
    return result.regret[0, :, -1]


def is_ordinary(published: float, runs: NDArray[np.float64]) -> bool:
    """Return whether a mean of 10 of these runs lies between the quantiles."""
    chosen = np.random.default_rng(1).integers(len(runs), size=(MEANS, THEIR_RUNS))
    low, high = np.quantile(runs[chosen].mean(axis=1), [FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    return bool(low <= published <= high)


@pytest.mark.long
@pytest.mark.parametrize("policy", PUBLISHED, ids=lambda policy: policy.name)
def test_published_regret(policy: ma.Policy) -> None:
    assert is_ordinary(PUBLISHED[policy], regret(policy)), regret(policy).mean()


@pytest.mark.long
def test_a_wrong_constant_or_size_is_detected() -> None:
    assert not is_ordinary(2450.23, regret(ma.MOSS(exploration=4.0)))
    assert not is_ordinary(2450.23, regret(ma.MOSS(exploration=0.5)))
    assert not is_ordinary(1634.34, regret(SubSampled(Greedy(), size=GREEDY_SUBSET)))
    assert not is_ordinary(318.03, regret(SubSampled(Greedy(), size=600)))
