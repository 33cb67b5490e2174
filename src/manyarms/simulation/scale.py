"""Whether the scale of rewards fits what a policy takes it to be."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from manyarms.errors import ScaleWarning
from manyarms.instances.instance import Instance
from manyarms.instances.rewards import Gaussian, OwnRewards, reward
from manyarms.protocol.policy import Policy, layers

_TIMES = 2.0  # that a scale may be too large or too small
_DRAWS = 1000


def warn_of_scale(policy: Policy, instance: Instance) -> None:
    """Warn if rewards spread far more, or far less, than the policy's `sigma` or `bound` says."""
    spread = _spread(instance)
    if spread is None:
        return
    rewards, label = f"{instance.rewards!r} rewards", policy.label
    for one in layers(policy):
        bound = getattr(one, "bound", None)
        if bound == "kl" or (bound is None and one.unit_rewards):
            named = '`bound` is "kl", which is' if bound == "kl" else "it is made"
            text = (
                f"{label} plays on {rewards}, but {named} for rewards in [0, 1]. Rescale the "
                f"rewards, or take a policy with `sigma`."
            )
            break
        sigma = getattr(one, "sigma", None)
        if sigma is not None and not sigma / _TIMES <= spread <= _TIMES * sigma:
            text = (
                f"`sigma` of {label} is {sigma:g}, but {rewards} have a standard deviation of "
                f"about {spread:.2g}. Give it sigma={spread:.2g}."
            )
            break
    else:
        return
    warnings.warn(text, ScaleWarning, stacklevel=2)


@functools.lru_cache(maxsize=4)  # many policies play on one instance
def _spread(instance: Instance) -> float | None:
    """Return the standard deviation of rewards of which no range is known; None of others."""
    rewards: Any = instance.rewards
    if isinstance(rewards, Gaussian):
        return float(rewards.sigma)
    if not isinstance(rewards, OwnRewards) or rewards.reward_range is not None:
        return None  # `sigma` follows from the range
    words = np.random.default_rng(0).integers(2**64, size=_DRAWS, dtype=np.uint64).tolist()
    arms = {0, instance.n_arms // 2, instance.n_arms - 1}
    means = {arm: instance.mean(arm) for arm in arms}
    return max(
        float(np.std([reward(rewards.law, arm, mean, word) for word in words]))
        for arm, mean in means.items()
    )
