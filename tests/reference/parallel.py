"""Parallel (Algorithm 3): docs/learn/parallel.py."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import (
    PAPER,
    Index,
    Play,
    Words,
    learned,
    numbered,
    options,
    power,
    subset_size,
)
from tests.reference.words import EPOCHS, stream, upper


def set_sizes(n: int, horizon: int, factor: int = 2) -> list[int]:
    """Return the sizes of the subroutines' sets."""
    q = max(1, int(Decimal(horizon).ln().to_integral_value(ROUND_CEILING)))
    shares = [factor * power(horizon, Fraction(i, q)) for i in range(1, q + 1)]
    return [subset_size(n, horizon, share) for share in shares]


class EpochWords(Words):
    """Words that also choose the subroutine of an epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.epochs = stream(self.key, EPOCHS)

    def lowest(self, regrets: dict[int, float]) -> int:
        self.epochs.next()  # stands for "none yet"
        words = {i: upper(self.epochs.next()) for i in regrets}
        return min(regrets, key=lambda i: (regrets[i], -words[i]))


@dataclass(frozen=True)
class Parallel:
    """Epochs go to the subroutine with the lowest empirical regret."""

    best_mean: float
    index: Index = PAPER
    subset_factor: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        play, how = learned("parallel").parallel, options(self.index)
        luck, factor = EpochWords(key), self.subset_factor
        return numbered(play(n, horizon, self.best_mean, luck, factor=factor, **how))
