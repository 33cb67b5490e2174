"""The MOSS index by hand."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import restart
from manyarms.policies.parts.moss_run import (
    MossIndex,
    begin,
    credit,
    moss_index,
    moss_run,
    open_slot,
)


def _indices(spread: float, rewards: list[float], *, members: int, horizon: int) -> list[float]:
    moss = moss_run(BOUNDED, members, slots=1, index=MossIndex(spread, spread))
    restart(moss.ties, 1)
    begin(moss, members, horizon)
    slot = open_slot(moss, 0)
    indices = []
    for reward in rewards:
        credit(moss, slot, reward)
        indices.append(moss_index(moss, slot, 0))
    return indices


def test_the_bonus_in_the_papers_setting() -> None:
    # H = 50000, K = 20000: sqrt(log 2.5), sqrt(log(1.25) / 2), 0
    bonuses = _indices(1.0, [0.0] * 3, members=20_000, horizon=50_000)
    assert bonuses == pytest.approx([0.957231, 0.334024, 0.0], abs=1e-6)


def test_the_mean_is_added() -> None:
    indices = _indices(1.0, [1.0, 0.0, 1.0], members=20_000, horizon=50_000)
    assert indices == pytest.approx([1.957231, 0.834024, 2 / 3], abs=1e-6)


def test_sigma_scales_the_bonus_and_exploration_its_square() -> None:
    default, wide = ma.MOSS(sigma=0.5).spread, ma.MOSS(sigma=1.0).spread
    assert (default, wide, ma.MOSS(sigma=0.5, exploration=0.5).spread) == (1.0, 4.0, 0.5)
    (narrow,) = _indices(default, [0.0], members=20_000, horizon=50_000)
    (doubled,) = _indices(wide, [0.0], members=20_000, horizon=50_000)
    assert doubled == pytest.approx(2 * narrow)


def test_mixture_arms_may_have_another_sigma() -> None:
    policy = ma.MOSSPlusPlus(sigma=0.5, mixture_sigma=1.5)
    assert (policy.spread, policy.mixture_spread) == (1.0, 9.0)
    assert ma.EmpMOSSPlusPlus(sigma=0.5).mixture_spread == 1.0
    index = MossIndex(policy.spread, policy.mixture_spread)
    moss = moss_run(BOUNDED, 20_000, slots=2, index=index)
    restart(moss.ties, 1)
    begin(moss, 20_000, 50_000)
    for member in (7, -1):  # an arm, and a mixture-arm
        credit(moss, open_slot(moss, member), 0.0)
    assert moss_index(moss, 1, 0) == pytest.approx(3 * moss_index(moss, 0, 0))


def test_logarithms_beyond_the_table() -> None:
    count = 5000  # the table ends at 4096
    last = _indices(1.0, [0.0] * count, members=1, horizon=10**6)[-1]
    assert last == pytest.approx((5.298317 / count) ** 0.5, rel=1e-6)  # log 200
