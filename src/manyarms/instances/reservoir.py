"""Infinitely many arms: the mean of each arm is drawn from a distribution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from manyarms.core.checks import check_number
from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance, make_instance
from manyarms.instances.rewards import AnyRewards, OwnRewards, check_law, check_rewards, named_law
from manyarms.instances.world import (
    BETA_MEANS,
    DISCRETE_MEANS,
    OWN_MEANS,
    UNIFORM_MEANS,
    draw_mean,
)
from manyarms.protocol.policy import MOST_ARMS


@dataclass(frozen=True)
class BetaMeans:
    """Means drawn from Beta(a, b), whose supremum is 1."""

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):  # smaller ones would underflow
            check_number(name, getattr(self, name), at_least=1e-3, at_most=1e9)

    @property
    def supremum(self) -> float:
        return 1.0

    @property
    def infimum(self) -> float:
        return 0.0

    def numbers(self) -> dict[str, Any]:
        return {"family": BETA_MEANS, "first": float(self.a), "second": float(self.b)}


@dataclass(frozen=True)
class UniformMeans:
    """Means drawn uniformly from [low, high]."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_number("low", self.low)
        check_number("high", self.high, above=self.low)

    @property
    def supremum(self) -> float:
        return float(self.high)

    @property
    def infimum(self) -> float:
        return float(self.low)

    def numbers(self) -> dict[str, Any]:
        return {"family": UNIFORM_MEANS, "first": float(self.low), "second": float(self.high)}


@dataclass(frozen=True)
class DiscreteMeans:
    """A few means, each with its probability.

    `DiscreteMeans([0.9, 0.5], [0.01, 0.99])` is the problem where an arm is best with
    probability 0.01.
    """

    values: Sequence[float]
    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        if not all(isinstance(part, Sequence) for part in (self.values, self.probabilities)):
            raise ParameterError(
                f"`values` and `probabilities` must be lists, got {self.values!r} and "
                f"{self.probabilities!r}."
            )
        if len(self.values) != len(self.probabilities) or len(self.values) == 0:
            raise ParameterError(
                f"`values` and `probabilities` must have the same length >= 1, got "
                f"{len(self.values)} and {len(self.probabilities)}."
            )
        for value in self.values:
            check_number("values", value)
        for probability in self.probabilities:
            check_number("probabilities", probability, above=0.0, at_most=1.0)
        total = math.fsum(self.probabilities)
        if abs(total - 1.0) > 1e-9:
            raise ParameterError(
                f"`probabilities` must add up to 1, got {total!r}.", parameter="probabilities"
            )

    @property
    def supremum(self) -> float:
        return float(max(self.values))

    @property
    def infimum(self) -> float:
        return float(min(self.values))

    def numbers(self) -> dict[str, Any]:
        weights = list(itertools.accumulate(self.probabilities))
        return {"family": DISCRETE_MEANS, "values": self.values, "weights": weights}


@dataclass(frozen=True, repr=False)
class OwnMeans:
    """A user-defined distribution of means; see `draw_mean`."""

    law: Any

    def __post_init__(self) -> None:
        try:
            low, high = map(float, self.law.mean_range)
        except (AttributeError, TypeError, ValueError):
            low, high = math.nan, math.nan
        if not -math.inf < low <= high < math.inf:
            raise ParameterError(
                f"`distribution` must have a property `mean_range`, two finite numbers with the "
                f"smaller one first, got {getattr(self.law, 'mean_range', None)!r} of "
                f"{self.law!r}. Regret is measured against the supremum of the means."
            )
        words = np.random.default_rng(0).integers(2**64, size=_DRAWS, dtype=np.uint64).tolist()
        for drawn in (draw_mean(self.law, word) for word in words):
            if not low <= drawn <= high:
                raise ParameterError(
                    f"`distribution` must have means in its `mean_range`, [{low:g}, {high:g}], but "
                    f"{self.law!r} drew {drawn!r}. Correct its `draw_mean` function, or the range."
                )

    @property
    def infimum(self) -> float:
        return float(self.law.mean_range[0])

    @property
    def supremum(self) -> float:
        return float(self.law.mean_range[1])

    def numbers(self) -> dict[str, Any]:
        return {"family": OWN_MEANS, "first": self.infimum, "mean_law": self.law}

    def __repr__(self) -> str:
        return repr(self.law)


Distribution: TypeAlias = BetaMeans | UniformMeans | DiscreteMeans | OwnMeans
AnyDistribution: TypeAlias = BetaMeans | UniformMeans | DiscreteMeans | tuple[Any, ...]
_DRAWS = 10_000  # draws from a user-defined distribution, when the instance is made


def _check_distribution(distribution: Any) -> Distribution:
    if type(distribution) in draw_mean.bodies:
        return OwnMeans(distribution)
    if not isinstance(distribution, BetaMeans | UniformMeans | DiscreteMeans):
        raise ParameterError(
            f"`distribution` must be BetaMeans, UniformMeans, DiscreteMeans or a distribution of "
            f"your own, registered with `draw_mean.register`, got {distribution!r}."
        )
    return distribution


def reservoir(
    distribution: AnyDistribution,
    *,
    epsilon: float | None = None,
    rewards: AnyRewards = None,
) -> Instance:
    """Make an instance of infinitely many arms, whose means are drawn for each replication.

    Parameters
    ----------
    distribution
        `BetaMeans(a, b)`, `UniformMeans(low, high)`, `DiscreteMeans(values, probabilities)`, or a
        distribution of your own; see `draw_mean`.
    epsilon
        An arm counts as best if its mean is within `epsilon` of the supremum (default:
        1/sqrt(horizon)).
    rewards
        The reward model (default: `Bernoulli()`).

    Notes
    -----
    There are 2^50 arms, which no run can distinguish from infinitely many. Regret is measured
    against the supremum of the means.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.instances.reservoir(ma.instances.BetaMeans(1, 2)).best_mean
    1.0
    """
    rewards, law = check_rewards(rewards), _check_distribution(distribution)
    if epsilon is not None:
        check_number("epsilon", epsilon, at_least=0.0)
    best = law.supremum
    if rewards.bounded and (best > 1.0 or law.infimum < 0.0):
        raise ParameterError(
            f"`distribution` must have means in [0, 1] for {type(rewards).__name__} rewards, got "
            f"{law!r}. Gaussian() takes any mean."
        )
    if isinstance(rewards, OwnRewards) and rewards.reward_range:
        low, high = rewards.reward_range
        fix = f"The rewards of {rewards!r} are in [{low:g}, {high:g}]."
        check_number("distribution", law.infimum, at_least=low, fix=fix)
        check_number("distribution", best, at_most=high, fix=fix)
    middle = 0.5 * (law.infimum + best)
    check_law(rewards, [(0, middle), (1, best)])
    return make_instance(
        label=f"reservoir({law!r}{named_law(rewards)})",
        n_arms=MOST_ARMS,
        best_mean=best,
        rewards=rewards,
        epsilon=epsilon,
        **law.numbers(),
    )
