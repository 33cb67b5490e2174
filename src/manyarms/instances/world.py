"""What compiled code sees of an instance: the mean of any arm, and its rewards.

All families share one layout and are told apart by a number, not by a type: the simulator's loop
is compiled once for each policy, whatever it is played on. The test costs nothing, because the
mean of an arm is looked up only at its first pull.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints
from manyarms.core.rng import draw, unit
from manyarms.core.variates import beta_variate, normal_variate
from manyarms.instances.rewards import BERNOULLI, GAUSSIAN, OWN, reward

# where the means come from
TABLE = 0  # values[arm]
GROUPS = 1  # values[g] for the arms before ends[g]
BETA_MEANS = 2  # drawn from Beta(first, second), for each arm anew
UNIFORM_MEANS = 3  # drawn evenly from [first, second]
DISCRETE_MEANS = 4  # values[g] with probability weights[g] - weights[g - 1]


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


@rare
def mean_of(world: World, arm: int, key: int) -> float:
    """Return the mean of an arm; `key` decides it where means are drawn."""
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
    group = 0
    while unit(word) >= world.weights[group] and group < len(world.weights) - 1:
        group += 1
    return float(world.values[group])


@kernel
def reward_of(world: World, arm: int, mean: float, word: int) -> float:
    """Return the reward that `word` decides, from an arm of the given mean."""
    if world.model == BERNOULLI:
        return 1.0 if unit(word) < mean else 0.0
    if world.model == GAUSSIAN:
        return mean + world.noise * normal_variate(word)
    if world.model == OWN:
        return float(reward(world.law, arm, mean, word))
    if mean <= 0.0 or mean >= 1.0:
        return mean
    return beta_variate(mean * world.noise, (1.0 - mean) * world.noise, word)
