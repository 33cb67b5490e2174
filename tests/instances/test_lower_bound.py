"""The lower bound's instances: means, and that every policy can play them."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

import manyarms as ma
from manyarms.instances import lower_bound_instance
from manyarms.theory.lower_bound_family import LowerBoundFamily
from tests.helpers import ALL_POLICIES, label, unit_only

SMALL = LowerBoundFamily(horizon=64, alpha=0.5, alpha_prime=0.25, m=2, budget=10)


@pytest.mark.parametrize("hidden", [0, 1, 4, 7])
def test_means_group_by_group(hidden: int) -> None:
    # T^0.5 = 8 and T^0.25 = 2.83: K = 7 groups of 2 arms, and 6 arms in S_0
    gap = 7 / 32 / 10
    means = np.array([gap / 2] * 6 + [0.0] * 14)
    if hidden:
        means[6 + 2 * (hidden - 1) : 6 + 2 * hidden] = gap
    instance = lower_bound_instance(SMALL, hidden)
    assert [instance.mean(arm) for arm in range(instance.n_arms)] == pytest.approx(list(means))
    assert instance.n_arms == len(means)
    assert instance.n_best == (2 if hidden else 6)
    assert instance.best_mean == means.max()
    assert instance.rewards == ma.instances.Gaussian(0.5)
    assert instance.problem(64).alpha <= (0.5 if hidden else 0.25)


def test_a_hidden_group_must_exist() -> None:
    for hidden in (8, -1, 0.5):
        with pytest.raises(ma.ParameterError, match="K = 7 hidden groups; 0 hides none"):
            lower_bound_instance(SMALL, hidden)  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="`family` must be a LowerBoundFamily"):
        lower_bound_instance(3, 0)  # type: ignore[arg-type]


def test_any_size_in_constant_memory() -> None:
    family = LowerBoundFamily(horizon=2**20, alpha=0.5, budget=2000, m=2**35)
    instance = lower_bound_instance(family, 500)
    assert instance.n_arms == 2**35 * (1024 + 1023)
    assert len(instance.world(2**20).values) <= 4


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_every_policy_plays(policy: ma.Policy) -> None:
    if unit_only(policy):  # it needs an interval of the means, because rewards have no bounds
        policy = replace(policy, bottom=0.0, top=1.0)  # type: ignore[call-arg]
    for hidden in (0, 3):
        result = ma.simulate(
            policy, lower_bound_instance(SMALL, hidden), horizon=64, replications=2
        )
        assert result.regret.min() >= 0
        assert result.regret.max() <= 64 * SMALL.gap * (1 + 1e-9)


@pytest.mark.compiled
def test_hidden_groups_are_exchangeable() -> None:
    """Two groups cost the same: false alarm 1e-4 (normal distribution of two independent means).

    The tolerance is at most 4 % of the regret, so a policy that favours the first arms, and so
    group 1, would be detected.
    """
    family = LowerBoundFamily(horizon=4096, alpha=0.4, budget=28)
    first, last = (
        ma.simulate(
            ma.MOSSPlusPlus(beta=0.5),
            lower_bound_instance(family, hidden),
            horizon=4096,
            replications=400,
            first_replication=start,
            checkpoints=1,
        ).regret[0, :, -1]
        for hidden, start in ((1, 0), (family.hidden_groups, 1000))
    )
    error = math.sqrt(first.var(ddof=1) / len(first) + last.var(ddof=1) / len(last))
    bound = NormalDist().inv_cdf(1 - 1e-4 / 2) * error
    assert bound < 0.04 * first.mean()
    assert abs(first.mean() - last.mean()) < bound
