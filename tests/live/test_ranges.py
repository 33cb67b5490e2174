"""Rewards on other scales: the range sets the scale of the policy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import manyarms as ma
from manyarms.policies import field
from tests.helpers import play_live

SCALE = 64.0  # a power of two: scaling changes no digit


def _coin(arm: int, count: int) -> float:
    return float((arm * 7 + count * 3) % 5 == 0)


def _order(arm: int, count: int) -> float:
    return _coin(arm, count) * (1 + (arm + count) % 7) / 64


@pytest.mark.parametrize(
    ("policy", "unit"),
    [
        (ma.MOSS(), ma.MOSS()),
        (ma.EmpMOSSPlusPlus(), ma.EmpMOSSPlusPlus()),
        (ma.Doubling(ma.MOSSPlusPlus()), ma.Doubling(ma.MOSSPlusPlus())),
        (field.SubSampled(field.UCB(), size=9), field.SubSampled(field.UCB(), size=9)),
        (ma.Prospector(), ma.Prospector()),
        (ma.Prospector(bound="mean", sigma=0.5 * SCALE, top=SCALE), ma.Prospector(bound="mean")),
        (ma.Guarded(ma.MOSS()), ma.Guarded(ma.MOSS())),
    ],
    ids=lambda policy: str(policy),
)
def test_arms_do_not_depend_on_the_unit(policy: ma.Policy, unit: ma.Policy) -> None:
    wide = policy.live(n_arms=50, horizon=400, seed=3, reward_range=(0.0, SCALE))
    arms = play_live(wide, 400, lambda arm, count: SCALE * _coin(arm, count))
    assert arms == play_live(unit.live(n_arms=50, horizon=400, seed=3), 400, _coin)


@pytest.mark.parametrize("reward", [_coin, _order], ids=["clicks", "revenue"])
@pytest.mark.parametrize("n", [50, 5])  # with 5 arms, upper bounds are used
@pytest.mark.parametrize("policy", [ma.Prospector(), ma.Guarded(ma.MOSS())], ids=str)
@pytest.mark.parametrize("limits", [(0.0, SCALE), (-SCALE, SCALE), (48.0, 80.0)], ids=str)
def test_arms_do_not_depend_on_the_range(
    policy: ma.Policy, limits: tuple[float, float], n: int, reward: Callable[[int, int], float]
) -> None:
    low, high = limits
    wide = policy.live(n_arms=n, horizon=400, seed=3, reward_range=limits)
    arms = play_live(wide, 400, lambda arm, count: low + (high - low) * reward(arm, count))
    assert arms == play_live(policy.live(n_arms=n, horizon=400, seed=3), 400, reward)


def test_a_given_sigma_is_kept() -> None:
    def sigma(given: float, limits: tuple[float, float] | None) -> float:
        live = ma.MOSS(sigma=given).live(n_arms=3, horizon=9, reward_range=limits)
        assert isinstance(live.policy, ma.MOSS)
        return live.policy.sigma

    assert [sigma(0.5, limits) for limits in [(0, 100), (-1, 1), (0, 0.5)]] == [50.0, 1.0, 0.25]
    assert [sigma(0.5, limits) for limits in [(0, 1), (3, 4), None]] == [0.5] * 3
    assert sigma(2.0, (0, 100)) == 2.0


@pytest.mark.parametrize(
    "policy",
    [
        ma.MOSS(index="kl"),
        field.Thompson(),
        field.UCB1(),
        ma.Patience(best_mean=0.5, bound="kl"),
    ],
)
def test_policies_for_the_unit_interval_say_how_to_scale(policy: ma.Policy) -> None:
    message = r"`reward_range` must lie in \[0, 1\] for .*Tell \(reward - -20\) / 120 instead"
    for one in (policy, field.SubSampled(policy, size=2)):
        with pytest.raises(ma.ParameterError, match=message):
            one.live(n_arms=3, horizon=9, reward_range=(-20, 100))
