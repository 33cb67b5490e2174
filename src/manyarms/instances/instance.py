"""An instance: a name, the best mean, and its means and rewards for compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyarms.core.checks import check_int
from manyarms.core.rng import draw
from manyarms.core.tabular import Tabular
from manyarms.errors import ParameterError
from manyarms.instances.rewards import NO_LAW, OwnRewards, RewardModel
from manyarms.instances.tape import MEANS
from manyarms.instances.world import BETA_MEANS, DISCRETE_MEANS, GROUPS, TABLE, World, mean_of
from manyarms.protocol.keys import tape_key
from manyarms.theory.hardness import Problem, good_mean


@dataclass(frozen=True, eq=False)
class Instance(Tabular):
    """Arms for simulations. Made by `planted`, `grouped`, `from_means` or `reservoir`.

    Attributes
    ----------
    label
        A short description.
    n_arms
        The number of arms; 2^50 means infinitely many.
    best_mean
        μ*: the largest mean, or the supremum if means are drawn.
    rewards
        The reward model.
    n_best
        The number of best arms, or None if means are drawn.
    epsilon
        An arm counts as best if its mean is within `epsilon` of the best mean; None means
        1/sqrt(horizon).
    is_stand_in
        Whether synthetic means replace data that are not available.
    """

    label: str
    n_arms: int
    best_mean: float
    rewards: RewardModel
    n_best: int | None
    epsilon: float | None
    _world: World = field(repr=False, compare=False)
    is_stand_in: bool = False

    def _columns(self) -> dict[str, list[Any]]:
        facts = {
            "instance": self.label,
            "n_arms": self.n_arms,
            "n_best": self.n_best,
            "best_mean": self.best_mean,
            "largest_gap": self.largest_gap,
            "rewards": str(self.rewards),
            "is_stand_in": self.is_stand_in,
        }
        return {name: [value] for name, value in facts.items()}

    def world(self, horizon: int) -> World:
        """Return the instance as numbers; the horizon may set what counts as best."""
        slack = 1.0 / math.sqrt(horizon) if self.epsilon is None else self.epsilon
        return self._world._replace(good_mean=good_mean(self.best_mean, slack))

    @property
    def largest_gap(self) -> float:
        """The largest possible regret of a pull: the best mean minus the infimum of the means.

        >>> import manyarms as ma
        >>> ma.instances.grouped(sizes=[1, 9], means=[0.75, 0.5]).largest_gap
        0.25
        """
        world = self._world
        if world.family in (TABLE, GROUPS, DISCRETE_MEANS):
            return self.best_mean - float(np.min(world.values))
        return self.best_mean - (0.0 if world.family == BETA_MEANS else world.first)

    def mean(self, arm: int, *, seed: int = 0, replication: int = 0) -> float:
        """Return the mean of an arm, in this replication of a run with this seed if it is drawn.

        >>> import manyarms as ma
        >>> ma.instances.planted(n=10, m=1).mean(0)
        0.9
        """
        arm = check_int("arm", arm, at_most=self.n_arms - 1)
        key = tape_key(seed, replication)
        return float(mean_of(self._world, arm, draw(key, MEANS)))

    def problem(self, horizon: int) -> Problem:
        """Return the problem's size, from which its hardness follows.

        >>> import manyarms as ma
        >>> round(ma.instances.planted(n=20_000, m=132).problem(50_000).alpha, 2)
        0.4
        """
        if self.n_best is None:
            raise ParameterError(
                f"The hardness of {self.label} needs its number of best arms, which is unknown "
                f"because means are drawn. Use Problem.infinite(probability=..., horizon=...)."
            )
        return Problem(n=self.n_arms, m=self.n_best, horizon=horizon)


def make_instance(
    family: int,
    label: str,
    *,
    n_arms: int,
    best_mean: float,
    rewards: RewardModel,
    n_best: int | None = None,
    epsilon: float | None = 0.0,
    ends: Any = (),
    values: Any = (),
    weights: Any = (),
    first: float = 0.0,
    second: float = 0.0,
    mean_law: Any = NO_LAW,
) -> Instance:
    """Make an instance of any family, with read-only arrays."""
    arrays = (np.array(ends, np.int64), np.array(values, np.float64), np.array(weights, np.float64))
    for array in arrays:
        array.flags.writeable = False
    world = World(
        family,
        n_arms,
        best_mean,
        best_mean,
        *arrays,  # type: ignore[arg-type]  # arrays serve as sequences
        first,
        second,
        rewards.code,
        rewards.noise,
        rewards.law if isinstance(rewards, OwnRewards) else NO_LAW,
        mean_law,
    )
    return Instance(label, n_arms, best_mean, rewards, n_best, epsilon, world)
