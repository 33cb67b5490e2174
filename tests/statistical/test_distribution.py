"""The distribution of regret does not depend on the numbering of the arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from tests.helpers import ALL_POLICIES, EVERY_POLICY, label

FALSE_ALARM_Z = 4.9  # two-sided 1e-6

pytestmark = pytest.mark.compiled


def same_distribution(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """Compare means (z-test) and distributions (Kolmogorov's distance), 1e-6 each."""
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    assert abs(a.mean() - b.mean()) <= FALSE_ALARM_Z * error
    points = np.concatenate([a, b])
    cdfs = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (a, b)]
    sizes = len(a) * len(b) / (len(a) + len(b))
    assert np.abs(cdfs[0] - cdfs[1]).max() <= math.sqrt(math.log(2 / 1e-6) / (2 * sizes))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_renumbering_the_arms_does_not_change_the_distribution(policy: ma.Policy) -> None:
    # best arms first, last, and scattered, which matters if ties were broken by position
    means = np.sort(np.r_[np.full(12, 0.9), np.tile([0.1, 0.2, 0.3, 0.4, 0.5], 78)])
    scattered = np.random.default_rng(1).permutation(means)
    regrets = []
    for seed, order in enumerate((means, means[::-1], scattered)):
        result = ma.simulate(
            policy, ma.instances.from_means(order), horizon=1500, replications=1500, seed=seed
        )
        regrets.append(result.regret[0, :, -1])
    same_distribution(regrets[0], regrets[1])
    same_distribution(regrets[0], regrets[2])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_renumbering_the_arms_for_every_registered_policy(policy: ma.Policy) -> None:
    # shorter, because there are many policies
    means = np.sort(np.r_[np.full(6, 0.9), np.tile([0.1, 0.2, 0.3, 0.4, 0.5], 39)])
    first, last = (
        ma.simulate(
            policy, ma.instances.from_means(order), horizon=400, replications=800, seed=seed
        ).regret[0, :, -1]
        for seed, order in enumerate((means, means[::-1]))
    )
    same_distribution(first, last)
