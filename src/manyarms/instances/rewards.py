"""Reward models: how rewards spread around an arm's mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from manyarms.core.checks import check_number
from manyarms.errors import ParameterError
from manyarms.instances._world import BERNOULLI, BETA, GAUSSIAN

__all__ = ["Bernoulli", "BetaRewards", "Gaussian", "RewardModel", "check_rewards"]


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 1 with probability mean, else 0."""

    code: ClassVar[int] = BERNOULLI
    bounded: ClassVar[bool] = True
    noise: ClassVar[float] = 0.0


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards. Policies play well with the same `sigma`: `MOSS(sigma=...)`.

    Parameters
    ----------
    sigma
        The standard deviation; 1/2 gives the variance 1/4 of the paper's lower bound.
    """

    sigma: float = 0.5

    code: ClassVar[int] = GAUSSIAN
    bounded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number("sigma", self.sigma, above=0.0)

    @property
    def noise(self) -> float:
        """The standard deviation."""
        return float(self.sigma)


@dataclass(frozen=True)
class BetaRewards:
    """Rewards in [0, 1] of the law Beta(mean * c, (1 - mean) * c).

    Parameters
    ----------
    concentration
        c: the larger, the closer rewards lie to the mean.
    """

    concentration: float = 2.0

    code: ClassVar[int] = BETA
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("concentration", self.concentration, at_least=1e-3, at_most=1e9)

    @property
    def noise(self) -> float:
        """The concentration."""
        return float(self.concentration)


RewardModel: TypeAlias = Bernoulli | Gaussian | BetaRewards


def check_rewards(rewards: Any) -> RewardModel:
    """Return a reward model, Bernoulli's if none was given, or raise."""
    if rewards is None:
        return Bernoulli()
    if not isinstance(rewards, RewardModel):
        raise ParameterError(
            f"`rewards` must be Bernoulli(), Gaussian(sigma) or BetaRewards(concentration), got "
            f"{rewards!r}."
        )
    return rewards
