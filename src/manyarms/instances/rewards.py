"""Reward models: the distribution of rewards, given an arm's mean.

A distribution of your own is a NamedTuple of numbers and a function that compiled code calls:

class Spend(NamedTuple):
    basket: float

@reward.register(Spend)
def spend(law: Spend, arm: int, mean: float, word: int) -> float: ...

`word` is 64 random bits, the same for all policies; `unit(word)` is a number in [0, 1), and
`draw(word, k)` are further words. Like a function on states, it must not allocate, raise or use
Python objects. The mean of its rewards must be the arm's mean, from which regret is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from manyarms.core.checks import check_number
from manyarms.core.jit import generic
from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError

# numbers by which compiled code distinguishes reward models
BERNOULLI = 0
GAUSSIAN = 1  # with standard deviation `noise`
BETA = 2  # Beta(mean * noise, (1 - mean) * noise): in [0, 1]
OWN = 3  # user-defined, by `law`


@generic
def reward(law: Any, arm: int, mean: float, word: int) -> float:  # type: ignore[empty-body]
    """Return the reward of an arm with the given mean, determined by `word`.

    A body is registered for each class of distributions: `@reward.register(Spend)`. If the class
    has a property `reward_range`, (smallest, largest), it sets the `sigma` of policies, and means
    are checked against it. If rewards have no bounds, a property `reward_sigma` may say for which
    sigma they are sigma-sub-Gaussian. Without both, policies with `sigma` must be given one.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import manyarms as ma
    >>> from manyarms.instances import reward
    >>> from manyarms.kit import unit
    >>> class Spend(NamedTuple):
    ...     basket: float
    ...     @property
    ...     def reward_range(self):
    ...         return 0.0, self.basket
    >>> @reward.register(Spend)
    ... def spend(law, arm, mean, word):
    ...     return law.basket if unit(word) < mean / law.basket else 0.0
    >>> shop = ma.instances.from_means([0.5, 2.0], rewards=Spend(20.0))
    >>> shop.rewards
    Spend(basket=20.0)
    """


class NoLaw(NamedTuple):
    """A placeholder for built-in models, which have no user-defined distribution."""

    unused: int


NO_LAW = NoLaw(0)


@reward.register(NoLaw)
def reward_of_none(law: NoLaw, arm: int, mean: float, word: int) -> float:
    return mean


@dataclass(frozen=True)
class Bernoulli:
    """Rewards that are 1 with the arm's mean as probability, else 0."""

    code: ClassVar[int] = BERNOULLI
    bounded: ClassVar[bool] = True
    noise: ClassVar[float] = 0.0
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    reward_sigma: ClassVar[float | None] = None  # the range implies it


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards. Policies take the same `sigma`, unless they were given one.

    Parameters
    ----------
    sigma
        The standard deviation; 1/2 gives the variance 1/4 of the paper's lower bound.
    """

    sigma: float = 0.5

    code: ClassVar[int] = GAUSSIAN
    bounded: ClassVar[bool] = False
    reward_range: ClassVar[tuple[float, float] | None] = None

    @property
    def reward_sigma(self) -> float | None:
        """The standard deviation."""
        return float(self.sigma)

    def __post_init__(self) -> None:
        check_number("sigma", self.sigma, above=0.0)

    @property
    def noise(self) -> float:
        """The standard deviation."""
        return float(self.sigma)


@dataclass(frozen=True)
class BetaRewards:
    """Rewards in [0, 1], drawn from Beta(mean * c, (1 - mean) * c).

    Parameters
    ----------
    concentration
        c; the larger it is, the closer rewards are to the mean.
    """

    concentration: float = 2.0

    code: ClassVar[int] = BETA
    bounded: ClassVar[bool] = True
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    reward_sigma: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        check_number("concentration", self.concentration, at_least=1e-3, at_most=1e9)

    @property
    def noise(self) -> float:
        """The concentration."""
        return float(self.concentration)


@dataclass(frozen=True, repr=False)
class OwnRewards:
    """A user-defined distribution of rewards; see `reward`."""

    law: Any

    code: ClassVar[int] = OWN
    noise: ClassVar[float] = 0.0

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest reward; None if unknown."""
        limits = getattr(self.law, "reward_range", None)
        return None if limits is None else (float(limits[0]), float(limits[1]))

    @property
    def reward_sigma(self) -> float | None:
        """The sigma for which rewards are sigma-sub-Gaussian; None if unknown."""
        sigma = getattr(self.law, "reward_sigma", None)
        return None if sigma is None else float(sigma)

    @property
    def bounded(self) -> bool:
        """Whether all rewards lie in [0, 1]."""
        low, high = self.reward_range or (-1.0, 1.0)
        return 0.0 <= low <= high <= 1.0

    def __repr__(self) -> str:
        return repr(self.law)


RewardModel: TypeAlias = Bernoulli | Gaussian | BetaRewards | OwnRewards
AnyRewards: TypeAlias = RewardModel | tuple[Any, ...] | None  # a user-defined one is a NamedTuple


def check_rewards(rewards: Any) -> RewardModel:
    """Return a reward model (default: Bernoulli), or raise."""
    if rewards is None:
        return Bernoulli()
    if type(rewards) in reward.bodies:
        law = OwnRewards(rewards)
        low, high = law.reward_range or (0.0, 1.0)
        if not low < high:
            raise ParameterError(
                f"`rewards` must have a `reward_range` of two numbers, the smaller one first, got "
                f"{(low, high)} of {rewards!r}. Widen it if all rewards are equal."
            )
        return law
    if not isinstance(rewards, RewardModel):
        raise ParameterError(
            f"`rewards` must be Bernoulli(), Gaussian(sigma), BetaRewards(concentration) or a "
            f"distribution of your own, registered with `reward.register`, got {rewards!r}."
        )
    return rewards


def named_law(rewards: RewardModel) -> str:
    """Return the part of a label about the rewards; empty for Bernoulli rewards."""
    return "" if rewards == Bernoulli() else f", {rewards!r}"


_OFTEN = 100  # draws on each side of the mean
_DRAWS = 10_000  # in all, from a user-defined distribution when an instance is made
_SURE = 1.0 - 1e-6  # a correct distribution is refused with probability 1e-6


def check_law(rewards: RewardModel, means: Sequence[tuple[int, float]]) -> None:
    """Refuse a user-defined distribution whose rewards do not have the arm's mean, by 10,000 draws.

    `means` are arms with their means. If rewards had other means, all regrets would be wrong.
    Without `reward_range`, this is checked only if many rewards are on both sides of the mean.
    """
    if not isinstance(rewards, OwnRewards):
        return
    words = np.random.default_rng(0).integers(2**64, size=_DRAWS // len(means), dtype=np.uint64)
    for arm, mean in means:
        drawn = np.array([reward(rewards.law, arm, mean, word) for word in words.tolist()])
        if rewards.reward_range is not None:
            _, low, high = mean_interval(drawn, bounds=rewards.reward_range, confidence=_SURE)
        elif min((drawn < mean).sum(), (drawn > mean).sum()) >= _OFTEN:
            half = 6.0 * float(drawn.std()) / math.sqrt(len(drawn))
            low, high = float(drawn.mean()) - half, float(drawn.mean()) + half
        else:
            continue
        slack = 1e-9 * (1.0 + abs(mean))  # rounding errors, if all rewards are equal
        if not low - slack <= mean <= high + slack:
            raise ParameterError(
                f"`rewards` must have the arm's mean, but {rewards!r} do not: for the mean "
                f"{mean:g}, {len(drawn)} draws had a mean of {drawn.mean():.4g} [{low:.4g}, "
                f"{high:.4g}]. Correct its `reward` function, or pass the means that it has."
            )
