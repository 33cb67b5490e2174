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


def test_a_sigma_of_one_half_can_be_asked_for() -> None:
    """As any other sigma it is kept on a wide range; without one, half the width is taken."""

    def arms(sigma: float | None) -> list[int]:
        live = ma.MOSS(sigma=sigma).live(n_arms=40, horizon=300, seed=3, reward_range=(0.0, SCALE))
        assert live.policy == ma.MOSS(sigma=sigma)  # as it was given
        return play_live(live, 300, lambda arm, count: SCALE * _coin(arm, count))

    assert arms(None) == arms(SCALE / 2) != arms(0.5)


def test_without_a_range_someone_must_give_a_sigma() -> None:
    with pytest.raises(ma.ParameterError, match="`sigma` must be given to moss if rewards"):
        field.SubSampled(ma.MOSS(), size=2).live(n_arms=3, horizon=9, reward_range=None)
    live = ma.MOSS(sigma=2.0).live(n_arms=3, horizon=9, reward_range=None)
    live.season(policy=ma.EmpMOSSPlusPlus(), horizon=20)
    assert live.ask().arm in range(3)
    with pytest.raises(ma.ParameterError, match="`sigma` must be 2 in every season.* got 3 for mo"):
        live.season(policy=ma.MOSS(sigma=3.0), horizon=20)


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
