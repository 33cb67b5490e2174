"""Reward laws of one's own: a NamedTuple of numbers, and a function that compiled code calls.

class Spend(NamedTuple):
    basket: float

@reward.register(Spend)
def spend(law: Spend, arm: int, mean: float, word: int) -> float: ...

`word` is 64 random bits, the same for all policies; `unit(word)` is a number in [0, 1), and
`draw(word, k)` are further words. The function keeps the rules of those on states: no allocation,
no exceptions, no Python objects. Its rewards must have the arm's mean, from which regret is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.jit import generic
from manyarms.core.memory import Floats, Ints
from manyarms.core.rng import below

__all__ = ["NoLaw", "TableLaw", "reward"]


@generic
def reward(law: Any, arm: int, mean: float, word: int) -> float:  # type: ignore[empty-body]
    """Return the reward of an arm of the given mean that `word` decides.

    Bodies are registered for classes of laws: `@reward.register(Spend)`. By its property
    `reward_range`, (smallest, largest), if it has one, policies set `sigma`, and means are checked.

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
    """Stands where the reward model is one of ours."""

    unused: int


@reward.register(NoLaw)
def reward_of_none(law: NoLaw, arm: int, mean: float, word: int) -> float:
    return mean


class TableLaw(NamedTuple):
    """Rewards seen before, arm after arm: one of an arm's own is drawn, each as likely."""

    ends: Ints  # by arm: where its rewards end
    rewards: Floats
    low: float
    high: float

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward, or 0 and 1 where all are between."""
        return (0.0, 1.0) if 0.0 <= self.low <= self.high <= 1.0 else (self.low, self.high)

    def __repr__(self) -> str:
        return f"{len(self.rewards)} rewards"


@reward.register(TableLaw)
def reward_of_table(law: TableLaw, arm: int, mean: float, word: int) -> float:
    start = int(law.ends[arm - 1]) if arm > 0 else 0
    return float(law.rewards[start + below(word, int(law.ends[arm]) - start)])
