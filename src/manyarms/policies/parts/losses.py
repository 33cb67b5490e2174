"""The losses of an arm, and their lower confidence bound, for CBT and empirical CBT."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from manyarms.core.jit import kernel
from manyarms.core.memory import Record, Records
from manyarms.protocol.parameters import number

Factor: TypeAlias = Annotated[float, number(at_least=1.0, at_most=1e6)]  # b = c


class Losses(Record):
    """The losses of an arm."""

    arm: int
    pulls: int  # N
    total: float  # the sum of losses
    squares: float  # the sum of their squares
    bound: float  # L
    late: int  # late pulls


@kernel
def confidence_factor(given: float, horizon: int) -> float:
    """Return b = c: log log T unless given, at least 1 so that L does not exceed the mean."""
    return given if given > 0.0 else max(1.0, math.log(math.log(max(3, horizon))))


@kernel
def count_loss(losses: Records[Losses], slot: int, loss: float, factor: float) -> float:
    r"""Count a loss; store and return the new bound.

    .. math:: L = \max\Big(\frac{\bar x}{b},\; \bar x - \frac{c\,\hat\sigma}{\sqrt N}\Big)
    """
    return count_losses(losses, slot, 1, loss, loss * loss, factor)


@kernel
def count_losses(
    losses: Records[Losses], slot: int, count: int, total: float, squares: float, factor: float
) -> float:
    """Count losses; store and return the new bound."""
    own = losses[slot]
    own.pulls += count
    own.total += total
    own.squares += squares
    mean = own.total / own.pulls
    variance = max(0.0, own.squares / own.pulls - mean * mean)
    own.bound = max(mean / factor, mean - factor * math.sqrt(variance / own.pulls))
    return own.bound
