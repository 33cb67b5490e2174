"""Parallel (Algorithm 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import PAPER, Game, Index, MossRun, power, subset_size
from tests.reference.words import EPOCHS, FRESH, TIES, stream, upper


@dataclass(frozen=True)
class Parallel:
    """Epochs go to the subroutine of lowest empirical regret."""

    best_mean: float
    index: Index = PAPER
    subset_factor: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        fresh, ties, epochs = (stream(key, purpose) for purpose in (FRESH, TIES, EPOCHS))
        q = max(1, int(Decimal(horizon).ln().to_integral_value(ROUND_CEILING)))
        shares = [self.subset_factor * power(horizon, Fraction(i, q)) for i in range(1, q + 1)]
        sizes = [subset_size(n, horizon, share) for share in shares]
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
