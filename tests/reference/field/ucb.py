"""UCB1, UCB, KL-UCB and IMOSS: a full argmax over all arms at every pull."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import count

from tests.reference.moss import Game, Shuffle, Slot, learn
from tests.reference.words import FRESH, TIES, below, stream


@dataclass(frozen=True)
class UcbPlayer:
    """Each arm once, or as many as `arms_wanted` says, then the largest index."""

    def index(self, slot: Slot, t: int, opened: int) -> float:
        """Return the index at pull t, counted from 1."""
        raise NotImplementedError

    def arms_wanted(self, t: int) -> float:
        """Return how many arms there should be at pull t."""
        return math.inf

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        shuffle, ties = Shuffle(n, stream(key, FRESH)), stream(key, TIES)
        slots: list[Slot] = []
        for t in count(1):
            if t - 1 == horizon:
                return
            if shuffle.left > 0 and len(slots) < self.arms_wanted(t):
                slot = Slot(shuffle.next())
                slots.append(slot)
            else:
                tied = self.leaders(slots, t)
                slot = tied[below(ties.next(), len(tied))] if len(tied) > 1 else tied[0]
            learn(slot, (yield slot.arm))

    def leaders(self, slots: list[Slot], t: int) -> list[Slot]:
        """Return all slots of largest index, fewest pulls first, else as they were opened."""
        # where the means differ an index is the same by rounding only
        values = [(self.index(slot, t, len(slots)), slot.mean) for slot in slots]
        tied = [slot for slot, v in zip(slots, values, strict=True) if v == max(values)]
        return sorted(tied, key=lambda slot: slot.pulls)


@dataclass(frozen=True)
class Ucb1(UcbPlayer):
    exploration: float = 1.0

    def index(self, slot: Slot, t: int, opened: int) -> float:
        made = t - 1
        return slot.mean + math.sqrt(2 * self.exploration * math.log(made) / slot.pulls)


@dataclass(frozen=True)
class Ucb(UcbPlayer):
    sigma: float = 0.5

    def index(self, slot: Slot, t: int, opened: int) -> float:
        level = math.log(1 + t * math.log(t) ** 2)
        return slot.mean + self.sigma * math.sqrt(2 * level / slot.pulls)


@dataclass(frozen=True)
class Imoss(UcbPlayer):
    a: float = 0.1
    b: float = 0.5

    def arms_wanted(self, t: int) -> float:
        return float(t**self.b)

    def index(self, slot: Slot, t: int, opened: int) -> float:
        share = math.log(max(1.0, t / (opened * slot.pulls)))
        return slot.mean + math.sqrt((1 + self.a) / 2 * share / slot.pulls)


def divergence(p: float, q: float) -> float:
    """Return kl(p, q) for 0 <= p < q < 1."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + (1 - p) * math.log((1 - p) / (1 - q))


@functools.cache
def highest(mean: float, bound: float) -> float:
    """Return the largest q with kl(mean, q) <= bound, by halving intervals."""
    p = min(max(mean, 0.0), 1.0)
    low, high = p, 1.0
    while low < (middle := (low + high) / 2) < high:
        if divergence(p, middle) <= bound:
            low = middle
        else:
            high = middle
    return low if p < 1 else 1.0


@dataclass(frozen=True)
class KlUcb(UcbPlayer):
    c: float = 0.0

    def index(self, slot: Slot, t: int, opened: int) -> float:
        made = t - 1
        level = math.log(made)
        if made >= 3:
            level += self.c * math.log(math.log(made))
        return highest(slot.mean, level / slot.pulls)
