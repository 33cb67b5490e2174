"""The scale of rewards, and what policies assume about it."""

from __future__ import annotations

from manyarms.core.scale import Scale
from manyarms.protocol.policy import Policy, layers


def scale_of(
    policy: Policy, reward_range: tuple[float, float] | None, sigma: float | None = None
) -> Scale:
    """Return the scale of rewards: the range, or else the policy's sigma, or that of the rewards.

    If none of them is known, sigma is 1/2; then the policy needs none.

    >>> import manyarms as ma
    >>> scale_of(ma.MOSS(), (0.0, 100.0)), scale_of(ma.MOSS(sigma=2.0), None)
    (Scale(low=0.0, width=100.0, sigma=50.0), Scale(low=0.0, width=0.0, sigma=2.0))
    """
    if reward_range is not None:
        low, high = reward_range
        return Scale(low, high - low, half_width(reward_range))
    return Scale(0.0, 0.0, given_sigma(policy) or sigma or 0.5)


def given_sigma(policy: Policy) -> float | None:
    """Return the largest sigma that a policy, or one that it wraps, was given; None if none was.

    >>> import manyarms as ma
    >>> given_sigma(ma.Doubling(ma.MOSS(sigma=2.0))), given_sigma(ma.MOSS())
    (2.0, None)
    """
    sigmas = [getattr(one, "sigma", None) for one in layers(policy)]
    return max((sigma for sigma in sigmas if sigma is not None), default=None)


def half_width(reward_range: tuple[float, float]) -> float:
    """Return the sigma of rewards in a range, by Hoeffding's lemma.

    >>> half_width((0.0, 1.0)), half_width((-2.0, 4.0))
    (0.5, 3.0)
    """
    low, high = reward_range
    return (high - low) / 2.0
