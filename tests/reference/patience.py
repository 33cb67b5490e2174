"""Patience: pull one arm at a time, as long as it may be a best arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.reference.field.kl import divergence
from tests.reference.moss import Play, Shuffle, Slot
from tests.reference.words import FRESH, stream


@dataclass(frozen=True)
class Patience:
    """Pull arms in random order, each until its confidence bound is below the best mean."""

    best_mean: float
    sigma: float = 0.5
    kl: bool = False

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        words = stream(key, FRESH)
        order = Shuffle(n, words)
        slot = Slot(order.next())
        for _ in range(horizon):
            slot.total += yield slot.arm
            slot.pulls += 1
            if not self.keep(slot, horizon):
                if not order.left:
                    order = Shuffle(n, words)
                slot = Slot(order.next())

    def keep(self, slot: Slot, horizon: int) -> bool:
        level = math.log(horizon) / slot.pulls
        if self.kl:
            return slot.mean >= self.best_mean or divergence(slot.mean, self.best_mean) <= level
        return slot.mean + 2 * self.sigma * math.sqrt(level) >= self.best_mean
