"""Parallel (Algorithm 3): docs/learn/parallel.py; dynamic balancing over the same subroutines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import (
    PAPER,
    Game,
    Index,
    Words,
    learned,
    moss_run,
    numbered,
    options,
    power,
    subset_size,
)
from tests.reference.words import EPOCHS, SplitMix64, below, stream, upper


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
    """Epochs go to the subroutine of lowest empirical regret."""

    best_mean: float
    index: Index = PAPER
    subset_factor: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        play, how = learned("parallel").parallel, options(self.index)
        luck, factor = EpochWords(key), self.subset_factor
        return numbered(play(n, horizon, self.best_mean, luck, factor=factor, **how))


@dataclass(frozen=True)
class Balance:
    """Who is next by dynamic balancing, from what each subroutine was told so far."""

    c: float = 1.0
    regret_factor: float = 1.0

    def next(
        self, pulls: list[int], rewards: list[float], sizes: list[int], t: int, ties: SplitMix64
    ) -> int:
        q = len(sizes)
        allowed = [self.regret_factor * math.sqrt(k * n) for k, n in zip(sizes, pulls, strict=True)]
        above, below_it = [math.inf] * q, [-math.inf] * q
        for i, n in enumerate(pulls):
            if n > 0:
                level = math.log(q) + math.log(t) / 2 + math.log(max(1.0, math.log(n)))
                width = self.c * math.sqrt(level / n)
                above[i] = rewards[i] / n + width + allowed[i] / n
                below_it[i] = rewards[i] / n - width
        active = [i for i in range(q) if above[i] >= max(below_it)]
        least = math.inf
        for i in active:
            if allowed[i] < least:
                chosen, least, tied = i, allowed[i], 1
            elif allowed[i] == least:
                tied += 1
                if below(ties.next(), tied) == 0:
                    chosen = i
        return chosen


@dataclass(frozen=True)
class DynamicBalancing:
    """Every pull goes to the active subroutine of lowest candidate bound."""

    balance: Balance = Balance()
    index: Index = PAPER

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        luck, epochs = Words(key), stream(key, EPOCHS)
        sizes = set_sizes(n, horizon)
        runs = [moss_run(self.index, n, size, horizon, luck) for size in sizes]
        pulls, rewards = [0] * len(runs), [0.0] * len(runs)
        for _ in range(horizon):
            i = self.balance.next(pulls, rewards, sizes, horizon, epochs)
            arm = runs[i].choose()
            reward = yield arm.number()
            runs[i].learn(arm, reward)
            pulls[i] += 1
            rewards[i] += reward
