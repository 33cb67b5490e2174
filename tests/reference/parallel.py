"""Parallel (Algorithm 3), and dynamic balancing over the same subroutines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import PAPER, Game, Index, MossRun, power, subset_size
from tests.reference.words import EPOCHS, FRESH, TIES, SplitMix64, below, stream, upper


def set_sizes(n: int, horizon: int, factor: int = 2) -> list[int]:
    """Return the sizes of the subroutines' sets."""
    q = max(1, int(Decimal(horizon).ln().to_integral_value(ROUND_CEILING)))
    shares = [factor * power(horizon, Fraction(i, q)) for i in range(1, q + 1)]
    return [subset_size(n, horizon, share) for share in shares]


@dataclass(frozen=True)
class Parallel:
    """Epochs go to the subroutine of lowest empirical regret."""

    best_mean: float
    index: Index = PAPER
    subset_factor: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        fresh, ties, epochs = (stream(key, purpose) for purpose in (FRESH, TIES, EPOCHS))
        sizes = set_sizes(n, horizon, self.subset_factor)
        q = len(sizes)
        runs = [MossRun(self.index, n, size, horizon, fresh, ties) for size in sizes]
        pulls = [0] * q
        rewards = [0.0] * q
        epoch = math.isqrt(horizon - 1) + 1  # ⌈√T⌉
        made = 0
        while True:
            epochs.next()  # stands for "none yet"
            words = [upper(epochs.next()) for _ in runs]
            regrets = [pulls[i] * self.best_mean - rewards[i] for i in range(q)]
            chosen = min(range(q), key=lambda i: (regrets[i], -words[i]))
            for _ in range(epoch):
                if made == horizon:
                    return
                slot = runs[chosen].choose()
                reward = yield slot.arm
                runs[chosen].learn(slot, reward)
                pulls[chosen] += 1
                rewards[chosen] += reward
                made += 1


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
        fresh, ties, epochs = (stream(key, purpose) for purpose in (FRESH, TIES, EPOCHS))
        sizes = set_sizes(n, horizon)
        runs = [MossRun(self.index, n, size, horizon, fresh, ties) for size in sizes]
        pulls, rewards = [0] * len(runs), [0.0] * len(runs)
        for _ in range(horizon):
            i = self.balance.next(pulls, rewards, sizes, horizon, epochs)
            slot = runs[i].choose()
            reward = yield slot.arm
            runs[i].learn(slot, reward)
            pulls[i] += 1
            rewards[i] += reward
