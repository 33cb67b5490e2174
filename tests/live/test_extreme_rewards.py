"""With all allowed rewards, however small, intervals are numbers and an arm is recommended."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manyarms as ma
from manyarms.core.scale import Scale, lower_confidence_bound
from manyarms.inference.confidence_sequences import evidence_below, shown_below, uniform_interval
from manyarms.live.checks import check_reward

TINY = 5e-324
RANGES = [
    *((0.0, 1.0), (-1.0, 1.0), (0.0, TINY), (1.0, 1.0 + 2**-52)),
    *((-1e100, 1e100), (0.0, 1e-300), (1e99, 1e100), None),
]
SCALES = [10.0**k for k in range(-323, 101, 7)] + [TINY, sys.float_info.min, 1e100]


def _between(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats of every size between two."""
    return st.one_of(
        st.floats(low, high, allow_nan=False),
        st.sampled_from([x for x in (0.0, -0.0, TINY, -TINY, low, high) if low <= x <= high]),
        st.sampled_from([s for x in SCALES for s in (x, -x) if low <= s <= high] or [low]),
    )


@st.composite
def _cases(draw: Any) -> tuple[tuple[float, float] | None, list[float]]:
    """A range of rewards, or None, and some rewards in it."""
    bounds = draw(st.sampled_from(RANGES))
    low, high = bounds or (-1e100, 1e100)
    return bounds, draw(st.lists(_between(low, high), min_size=1, max_size=6))


@given(_cases(), st.integers(1, 40))
@example(((0.0, 1.0), [5e-324]), 1)
@example(((0.0, 1.0), [-0.0]), 1)
@example((None, [1e100]), 40)
@settings(max_examples=400, deadline=None)
def test_interval_bounds_are_numbers(case: Any, times: int) -> None:
    bounds, rewards = case
    rewards = [check_reward(reward, bounds) for reward in rewards] * times
    count, total = len(rewards), math.fsum(rewards)
    for error in (0.05, 1e-3, 1e-18):
        low, high = (x.item() for x in uniform_interval(count, total, bounds=bounds, error=error))
        assert low <= high
        if bounds is not None:
            assert bounds[0] <= low
            assert high <= bounds[1]
        assert not math.isnan(evidence_below(count, total, low + 0.1, bounds=bounds).item())
        asked = shown_below([count], [total], high, bounds=bounds, error=error)
        assert asked.tolist() == [True]
    scale = Scale(0.0, 0.0, 0.5) if bounds is None else Scale(bounds[0], bounds[1] - bounds[0], 0.5)
    kept = lower_confidence_bound(count, total, scale, -math.inf)
    assert math.isfinite(kept)
    assert bounds is None or bounds[0] <= kept <= bounds[1]


@pytest.mark.parametrize("policy", ["prospector", "moss", "ucb1", "scout", "thompson"])
@pytest.mark.parametrize("reward", [TINY, -0.0, 0.0, 1e-310, 1e-300, 1.0])
def test_an_arm_is_recommended_after_any_rewards(policy: str, reward: float) -> None:
    reward = round(reward) if policy == "thompson" else reward
    live = ma.policy(policy).live(n_arms=300, horizon=900, seed=1)
    live.tell(live.ask(), reward)
    best = live.recommend()
    low, high = best.interval
    assert 0.0 <= low <= best.estimate <= high <= 1.0
    verdict = live.verdict()
    assert verdict.arm == best.arm
    assert not verdict.stop
    assert "nan" not in f"{live}{verdict}{live._repr_html_()}".replace("__nan", "")
