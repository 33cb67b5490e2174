"""An instance for compiled code: the mean of any arm, and its rewards.

All families share one layout and are distinguished by a number, not by a type, so the simulator's
loop is compiled only once for each policy. The test of this number costs nothing, because the
mean of an arm is looked up only at its first pull.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.jit import generic, kernel, rare
from manyarms.core.memory import Floats, Ints
from manyarms.core.rng import draw, unit
from manyarms.core.variates import beta_variate, normal_variate
from manyarms.instances.rewards import BERNOULLI, GAUSSIAN, OWN, NoLaw, reward

# where the means come from
TABLE = 0  # values[arm]
GROUPS = 1  # values[g] for the arms before ends[g]
BETA_MEANS = 2  # drawn from Beta(first, second), independently for each arm
UNIFORM_MEANS = 3  # drawn uniformly from [first, second]
DISCRETE_MEANS = 4  # values[g] with probability weights[g] - weights[g - 1]
OWN_MEANS = 5  # drawn by `mean_law`


class World(NamedTuple):
    """An instance as numbers."""

    family: int
    n_arms: int
    best_mean: float
    good_mean: float  # an arm of this mean or more counts as best
    ends: Ints
    values: Floats
    weights: Floats
    first: float
    second: float
    model: int
    noise: float
    law: Any  # a NamedTuple with a body of `reward`
    mean_law: Any  # a NamedTuple with a body of `draw_mean`


@generic
def draw_mean(law: Any, word: int) -> float:  # type: ignore[empty-body]
    """Return the mean of an arm, determined by `word`.

    A body is registered for each class of distributions: `@draw_mean.register(Pareto)`. The class
    must have a property `mean_range`, (infimum, supremum); regret is measured against the supremum.
    `word` is 64 random bits, different for each arm and replication. The inverse of a cumulative
    distribution function at `unit(word)` gives means with that distribution.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import manyarms as ma
    >>> from manyarms.instances import draw_mean
    >>> from manyarms.kit import unit
    >>> class Triangle(NamedTuple):
    ...     best: float
    ...     @property
    ...     def mean_range(self):
    ...         return 0.0, self.best
    >>> @draw_mean.register(Triangle)
    ... def triangle(law, word):
    ...     return law.best * (1.0 - (1.0 - unit(word)) ** 0.5)
    >>> arms = ma.instances.reservoir(Triangle(0.8))
    >>> arms.best_mean, arms.mean(0) != arms.mean(0, replication=1)
    (0.8, True)
    """


@draw_mean.register(NoLaw)
def mean_of_none(law: NoLaw, word: int) -> float:
    return 0.0


@rare
def mean_of(world: World, arm: int, key: int) -> float:
    """Return the mean of an arm; if means are drawn, `key` determines it."""
    if world.family == TABLE:
        return float(world.values[arm])
    if world.family == GROUPS:
        low, high = 0, len(world.ends) - 1
        while low < high:
            middle = (low + high) // 2
            if arm < world.ends[middle]:
                high = middle
            else:
                low = middle + 1
        return float(world.values[low])
    word = draw(key, arm)
    if world.family == BETA_MEANS:
        return beta_variate(world.first, world.second, word)
    if world.family == UNIFORM_MEANS:
        return world.first + (world.second - world.first) * unit(word)
    if world.family == OWN_MEANS:
        return float(draw_mean(world.mean_law, word))
    group = 0
    while unit(word) >= world.weights[group] and group < len(world.weights) - 1:
        group += 1
    return float(world.values[group])


@kernel
def reward_of(world: World, arm: int, mean: float, word: int) -> float:
    """Return the reward of an arm with the given mean, determined by `word`."""
    if world.model == BERNOULLI:
        return 1.0 if unit(word) < mean else 0.0
    if world.model == GAUSSIAN:
        return mean + world.noise * normal_variate(word)
    if world.model == OWN:
        return float(reward(world.law, arm, mean, word))
    if mean <= 0.0 or mean >= 1.0:
        return mean
    return beta_variate(mean * world.noise, (1.0 - mean) * world.noise, word)
