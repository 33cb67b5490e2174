"""UCB1, UCB, KL-UCB and Thompson sampling, with a scan of all arms at every pull."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import count

from tests.reference.moss import Play, Shuffle, Slot, learn
from tests.reference.words import FRESH, TIES, SplitMix64, below, draw, stream, unit

ROUNDING, SAMPLES = 8, 11


@dataclass(frozen=True)
class UcbPlayer:
    """Each arm once, then the largest index."""

    def index(self, slot: Slot, t: int) -> float:
        """Return the index at pull t, counted from 1."""
        raise NotImplementedError

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        shuffle, ties = Shuffle(n, stream(key, FRESH)), stream(key, TIES)
        slots: list[Slot] = []
        for t in count(1):
            if t - 1 == horizon:
                return
            if shuffle.left > 0:
                slot = Slot(shuffle.next())
                slots.append(slot)
            else:
                # with different means, equal indices are due to rounding
                values = [(self.index(slot, t), slot.mean) for slot in slots]
                tied = [slot for slot, v in zip(slots, values, strict=True) if v == max(values)]
                slot = tied[below(ties.next(), len(tied))] if len(tied) > 1 else tied[0]
            learn(slot, (yield slot.arm))


@dataclass(frozen=True)
class Ucb1(UcbPlayer):
    exploration: float = 1.0

    def index(self, slot: Slot, t: int) -> float:
        made = t - 1
        return slot.mean + math.sqrt(2 * self.exploration * math.log(made) / slot.pulls)


@dataclass(frozen=True)
class Ucb(UcbPlayer):
    sigma: float = 0.5

    def index(self, slot: Slot, t: int) -> float:
        level = math.log(1 + t * math.log(t) ** 2)
        return slot.mean + self.sigma * math.sqrt(2 * level / slot.pulls)


def divergence(p: float, q: float) -> float:
    """Return kl(p, q) for 0 <= p < q < 1."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + (1 - p) * math.log((1 - p) / (1 - q))


@functools.cache
def highest(mean: float, bound: float) -> float:
    """Return the largest q with kl(mean, q) <= bound, by bisection."""
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
    def index(self, slot: Slot, t: int) -> float:
        return highest(slot.mean, math.log(t - 1) / slot.pulls)


def open_unit(word: int) -> float:
    return ((word >> 12) + 0.5) / 2**52


def beta(a: int, b: int, key: int) -> float:
    """Return a Beta(a, b) number, by its quantile or by Cheng's algorithm BB as published."""
    if b == 1:
        return math.pow(open_unit(draw(key, 0)), 1 / a)
    if a == 1:
        return 1 - math.pow(open_unit(draw(key, 0)), 1 / b)
    low, high = min(a, b), max(a, b)
    alpha = low + high
    beta = math.sqrt((alpha - 2) / (2 * low * high - alpha))
    gamma = low + 1 / beta
    for attempt in count():
        u1, u2 = open_unit(draw(key, 2 * attempt)), open_unit(draw(key, 2 * attempt + 1))
        v = beta * math.log(u1 / (1 - u1))
        w = low * math.exp(v)
        z = u1 * u1 * u2
        r = gamma * v - math.log(4)
        if low + r - w + 1 + math.log(5) >= 5 * z:
            break
        if r + alpha * math.log(alpha / (high + w)) >= math.log(z):
            break
    return w / (high + w) if a == low else high / (high + w)


def rounded(reward: float, words: SplitMix64) -> float:
    """Turn a reward into a success or a failure."""
    if reward <= 0 or reward >= 1:
        return float(reward >= 1)
    return float(unit(words.next()) < reward)


@dataclass(frozen=True)
class Thompson:
    def play(self, n: int, horizon: int | None, key: int) -> Play:
        shuffle, samples = Shuffle(n, stream(key, FRESH)), stream(key, SAMPLES)
        rounding = stream(key, ROUNDING)
        tried: list[Slot] = []
        while True:
            luck = samples.next()
            values = [
                beta(1 + int(slot.total), 1 + slot.pulls - int(slot.total), draw(luck, k))
                for k, slot in enumerate(tried, 1)
            ]
            others = n - len(tried)
            if others > 0 and open_unit(draw(luck, 0)) ** (1 / others) >= max(values, default=0):
                tried.append(Slot(shuffle.next()))
                slot = tried[-1]
            else:
                slot = tried[values.index(max(values))]
            learn(slot, rounded((yield slot.arm), rounding))
