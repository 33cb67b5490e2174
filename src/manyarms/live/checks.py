"""What a handle accepts: horizons, ranges of rewards, rewards."""

from __future__ import annotations

import math
from typing import Any

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError
from manyarms.protocol.policy import Policy

__all__ = ["check_horizon", "check_range", "check_reward"]

_MOST_PULLS = 1 << 40


def check_horizon(policy: Policy, horizon: Any) -> int | None:
    """Return the horizon; None is for anytime policies."""
    if horizon is None and policy.anytime:
        return None
    if horizon is None:
        raise ParameterError(
            f"`horizon` must be given to {policy.label}, got None. Pass the number of pulls "
            f"there will be, or use an anytime policy such as Doubling(...) or Quantile()."
        )
    return check_int("horizon", horizon, at_least=1, at_most=_MOST_PULLS)


def check_range(reward_range: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest reward; None for no limits."""
    if reward_range is None:
        return None
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        low = high = None
    if low is None or high is None:
        raise ParameterError(
            f"`reward_range` must be a pair (smallest, largest), or None, got {reward_range!r}."
        )
    low = check_number("reward_range", low)
    return low, check_number("reward_range", high, above=low)


def check_reward(reward: Any, limits: tuple[float, float] | None) -> float:
    """Return the reward as a float, or raise: then the pull still waits."""
    value = reward if type(reward) is float else _as_float(reward)
    if limits is not None:
        if limits[0] <= value <= limits[1]:
            return value
        if math.isfinite(value):
            raise ParameterError(
                f"Cannot tell reward {reward!r}: `reward_range` is {limits}. Scale rewards into "
                f"it, or start with another `reward_range`. The pull still waits."
            )
    if not math.isfinite(value):
        raise ParameterError(
            f"Cannot tell reward {reward!r}: it must be a finite number. The pull still waits."
        )
    return value


def _as_float(reward: Any) -> float:
    try:
        if not isinstance(reward, str | bytes) and getattr(reward, "ndim", 0) == 0:
            return float(reward)
    except (TypeError, ValueError, OverflowError):
        pass
    return math.nan
