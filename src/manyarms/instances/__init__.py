"""Instances: what is played on. Means by family, rewards by model."""

from manyarms.instances.instance import Instance
from manyarms.instances.means import from_means, grouped, planted
from manyarms.instances.reservoir import BetaMeans, DiscreteMeans, UniformMeans, reservoir
from manyarms.instances.rewards import Bernoulli, BetaRewards, Gaussian, RewardModel

__all__ = [
    "Bernoulli",
    "BetaMeans",
    "BetaRewards",
    "DiscreteMeans",
    "Gaussian",
    "Instance",
    "RewardModel",
    "UniformMeans",
    "from_means",
    "grouped",
    "planted",
    "reservoir",
]
