"""Instances: families of means, and reward models."""

from manyarms.instances.captions import Contest, captions, contest_652, read_contest, stand_in_652
from manyarms.instances.contests import find_contest, local_contests
from manyarms.instances.instance import Instance
from manyarms.instances.means import from_means, grouped, lower_bound_instance, planted
from manyarms.instances.reservoir import BetaMeans, DiscreteMeans, UniformMeans, reservoir
from manyarms.instances.reward_table import from_rewards
from manyarms.instances.rewards import Bernoulli, BetaRewards, Gaussian, RewardModel, reward
from manyarms.instances.world import draw_mean

__all__ = [
    "Bernoulli",
    "BetaMeans",
    "BetaRewards",
    "Contest",
    "DiscreteMeans",
    "Gaussian",
    "Instance",
    "RewardModel",
    "UniformMeans",
    "captions",
    "contest_652",
    "draw_mean",
    "find_contest",
    "from_means",
    "from_rewards",
    "grouped",
    "local_contests",
    "lower_bound_instance",
    "planted",
    "read_contest",
    "reservoir",
    "reward",
    "stand_in_652",
]
