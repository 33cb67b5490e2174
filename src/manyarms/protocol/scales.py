"""The scale of rewards that a policy assumes."""

from __future__ import annotations

from manyarms.core.scale import Scale
from manyarms.protocol.policy import Policy, layers


def scale_of(policy: Policy, reward_range: tuple[float, float] | None) -> Scale:
    """Return the scale of rewards, with the policy's sigma for unbounded ones.

    >>> import manyarms as ma
    >>> scale_of(ma.MOSS(), (0.0, 100.0)), scale_of(ma.MOSS(sigma=2.0), None)
    (Scale(low=0.0, width=100.0, sigma=0.5), Scale(low=0.0, width=0.0, sigma=2.0))
    """
    low, high = (0.0, 0.0) if reward_range is None else reward_range
    return Scale(low, high - low, sigma_of(policy))


def sigma_of(policy: Policy) -> float:
    """Return the largest sigma that a policy, or one that it wraps, assumes."""
    *around, inner = (getattr(one, "sigma", None) for one in layers(policy))
    sigmas: list[float] = [sigma for sigma in around if sigma is not None]
    return max([0.5 if inner is None else inner, *sigmas])
