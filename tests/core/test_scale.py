"""The recommended arm, live and in simulations."""

from __future__ import annotations

import math

import pytest

import manyarms as ma
from manyarms.core.scale import Scale, lower_confidence_bound
from manyarms.inference.confidence_sequences import uniform_half_width, uniform_interval
from manyarms.instances import from_means
from tests.helpers import play_live
from tests.reference.rewards import bernoulli, counted

MEANS = [0.02, 0.3, 0.5, 0.6, 0.65, 0.1] * 20


@pytest.mark.parametrize("count", [1, 2, 7, 100, 10_000])
def test_the_lower_bound_is_that_of_the_intervals(count: int) -> None:
    unit, wide, open_ended = Scale(0.0, 1.0, 0.5), Scale(-1.0, 4.0, 0.5), Scale(0.0, 0.0, 2.0)
    for share in (0.0, 0.01, 0.4, 1.0):
        total = share * count
        expected = float(uniform_interval([count], [total], error=0.001)[0][0])
        assert lower_confidence_bound(count, total, unit, -math.inf) == pytest.approx(
            expected, abs=1e-9
        )
        scaled = lower_confidence_bound(count, 4.0 * total - count, wide, -math.inf)
        assert scaled == pytest.approx(4.0 * expected - 1.0, abs=1e-9)
        half = float(uniform_half_width(count, 2.0, error=0.001))
        assert lower_confidence_bound(count, total, open_ended, -math.inf) == pytest.approx(
            share - half
        )
        if expected > 0.0:  # values below a bound are not computed
            assert lower_confidence_bound(count, total, unit, expected - 1e-6) == pytest.approx(
                expected
            )
            assert lower_confidence_bound(count, total, unit, expected + 1e-6) == -math.inf


@pytest.mark.parametrize("policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Prospector()])
@pytest.mark.parametrize("batch", [1, 16])
def test_handles_and_simulations_recommend_the_same_arm(policy: ma.Policy, batch: int) -> None:
    seeds = range(6)
    for seed in seeds:
        result = ma.simulate(
            policy, from_means(MEANS), horizon=250, replications=1, seed=seed, batch=batch
        )
        live = policy.live(n_arms=len(MEANS), horizon=250, seed=seed)
        pull = counted(bernoulli(MEANS, seed, 0))
        for first in range(0, 250, batch):
            asked = live.ask(min(batch, 250 - first))
            live.tell_many([(each, pull(each.arm)) for each in asked])
        kept = live.recommend().arm
        assert kept == result.recommended[0, 0]
        assert result.recommended_mean[0, 0] == MEANS[kept]


def test_arms_with_one_success_are_not_recommended() -> None:
    live = ma.MOSS().live(n_arms=40, horizon=10_000)
    # arm 0 pays in 3 % of 4000 pulls; other arms had one pull, some with a reward of 1
    play_live(live, 10_000, lambda arm, k: float(k % 33 == 0) if arm == 0 else float(k == arm % 3))
    assert live.recommend().arm == 0
    assert live.top(1) == [live.recommend()]
