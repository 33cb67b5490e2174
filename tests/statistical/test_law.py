"""The law of the regret: renumbered arms, and an independent simulation with NumPy's generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from tests.helpers import ALL_POLICIES, EVERY_POLICY, label

FALSE_ALARM_Z = 4.9  # two-sided 1e-6

pytestmark = pytest.mark.compiled


def _same_law(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """Means within z standard errors, distributions within Kolmogorov's distance (1e-6 each)."""
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    assert abs(a.mean() - b.mean()) <= FALSE_ALARM_Z * error
    points = np.concatenate([a, b])
    cdfs = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (a, b)]
    sizes = len(a) * len(b) / (len(a) + len(b))
    assert np.abs(cdfs[0] - cdfs[1]).max() <= math.sqrt(math.log(2 / 1e-6) / (2 * sizes))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_renumbering_the_arms_does_not_change_the_law(policy: ma.Policy) -> None:
    # best arms first, last, and scattered: a policy that broke ties by position would tell
    means = np.sort(np.r_[np.full(12, 0.9), np.tile([0.1, 0.2, 0.3, 0.4, 0.5], 78)])
    scattered = np.random.default_rng(1).permutation(means)
    regrets = []
    for seed, order in enumerate((means, means[::-1], scattered)):
        result = ma.simulate(
            policy, ma.instances.from_means(order), horizon=1500, replications=1500, seed=seed
        )
        regrets.append(result.regret[0, :, -1])
    _same_law(regrets[0], regrets[1])
    _same_law(regrets[0], regrets[2])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", [p for p in EVERY_POLICY if p.name != "best"], ids=label)
def test_nor_does_it_for_any_policy_with_a_name(policy: ma.Policy) -> None:
    # shorter, because there are many; `best` is told an arm by its number
    means = np.sort(np.r_[np.full(6, 0.9), np.tile([0.1, 0.2, 0.3, 0.4, 0.5], 39)])
    first, last = (
        ma.simulate(
            policy, ma.instances.from_means(order), horizon=400, replications=800, seed=seed
        ).regret[0, :, -1]
        for seed, order in enumerate((means, means[::-1]))
    )
    _same_law(first, last)


def _moss(pull: Callable[[int], float], members: list[int], horizon: int, pulls: int) -> list[int]:
    """Plain MOSS over `members`; return which were pulled. No ties with Gaussian rewards."""
    size = len(members)
    counts, totals, chosen = np.zeros(size), np.zeros(size), []
    for time in range(pulls):
        if time < size:
            best = time
        else:
            bonus = np.sqrt(np.maximum(0, np.log(horizon / (size * counts))) / counts)
            best = int(np.argmax(totals / counts + bonus))
        counts[best] += 1
        totals[best] += pull(members[best])
        chosen.append(members[best])
    return chosen


def _gaussian(rng: np.random.Generator, means: NDArray[np.float64], arm: int) -> float:
    return float(rng.normal(means[arm], 0.5))


def _plain_moss_plus_plus(means: NDArray[np.float64], horizon: int, seed: int) -> float:
    """MOSS++ with beta = 1/2, written for reading: NumPy's generator, no shared code."""
    rng = np.random.default_rng(seed)
    regret = 0.0
    records: list[list[int]] = []  # of each iteration: the members chosen

    def pull(member: int) -> float:
        nonlocal regret
        while member < 0:
            member = int(rng.choice(records[-member - 1]))
        regret += means.max() - means[member]
        return _gaussian(rng, means, member)

    p, left, i = math.ceil(math.log2(horizon) / 2), horizon, 1
    while left > 0:
        real = rng.choice(len(means), min(2 ** (p + 2 - i), len(means)), replace=False)
        members = [int(arm) for arm in real] + [-j for j in range(1, i)]
        rng.shuffle(members)
        length = min(2 ** (p + i), horizon)
        records.append(_moss(pull, members, length, min(length, left)))
        left -= length
        i += 1
    return regret


@pytest.mark.slow
def test_moss_plus_plus_against_a_plain_one() -> None:
    means = np.r_[np.full(5, 0.9), np.tile([0.1, 0.3, 0.5], 25)]
    instance = ma.instances.from_means(means, rewards=ma.instances.Gaussian(0.5))
    ours = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=600, replications=4000).regret[0, :, -1]
    plain = np.array([_plain_moss_plus_plus(means, 600, seed) for seed in range(250)])
    _same_law(ours, plain)


def test_moss_against_a_plain_one() -> None:
    means = np.r_[0.9, np.tile([0.1, 0.3, 0.5], 5)]
    instance = ma.instances.from_means(means, rewards=ma.instances.Gaussian(0.5))
    ours = ma.simulate(ma.MOSS(), instance, horizon=400, replications=4000).regret[0, :, -1]
    plain = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        members = [int(arm) for arm in rng.permutation(len(means))]
        chosen = _moss(partial(_gaussian, rng, means), members, 400, 400)
        plain.append(float((0.9 - means[chosen]).sum()))
    _same_law(ours, np.array(plain))
