"""MOSS, its index, and MOSS on a random set (MOSS Oracle, the subroutine SR)."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Protocol, TypeAlias

from tests.reference.leaders import Leaders
from tests.reference.words import FRESH, TIES, SplitMix64, below, stream

Game: TypeAlias = Generator[int, float, None]  # yields arms, is sent their rewards


class Player(Protocol):
    """A policy: makes games."""

    def play(self, n: int, horizon: int | None, key: int) -> Game: ...


@dataclass(eq=False)
class Slot:
    """What is known of an arm, or of mixture-arm number `mixture`."""

    arm: int = -1
    mixture: int = 0  # 0 for real arms
    pulls: int = 0
    total: float = 0.0
    value: float = -math.inf  # its index, once it has one

    @property
    def mean(self) -> float:
        return self.total / self.pulls


@dataclass(frozen=True, kw_only=True)
class Index:
    """The MOSS index."""

    sigma: float = 0.5
    exploration: float = 1.0

    def value(self, slot: Slot, horizon: int, size: int) -> float:
        scale = 4 * self.sigma**2 * self.exploration
        excess = max(0.0, math.log(horizon / size) - math.log(slot.pulls))
        return slot.total / slot.pulls + math.sqrt(scale * excess / slot.pulls)


PAPER = Index()


def learn(slot: Slot, reward: float) -> None:
    """Credit a reward."""
    slot.pulls += 1
    slot.total += reward


class Shuffle:
    """A Fisher-Yates shuffle of 0, 1, ..., n - 1, one arm at a time."""

    def __init__(self, n: int, words: SplitMix64) -> None:
        self.places = list(range(n))
        self.drawn = 0
        self.words = words

    @property
    def left(self) -> int:
        return len(self.places) - self.drawn

    def next(self) -> int:
        k = self.drawn
        j = k + below(self.words.next(), self.left)
        self.places[j], self.places[k] = self.places[k], self.places[j]
        self.drawn += 1
        return self.places[k]


class MossRun:
    """MOSS on `size` random arms, to be resumed at will."""

    def __init__(
        self, index: Index, n: int, size: int, horizon: int, fresh: SplitMix64, ties: SplitMix64
    ) -> None:
        self.index, self.size, self.horizon = index, size, horizon
        self.leaders: Leaders[Slot] = Leaders(ties)
        self.shuffle = Shuffle(n, fresh)
        self.slots: list[Slot] = []

    def choose(self) -> Slot:
        if len(self.slots) < self.size:
            self.slots.append(Slot(self.shuffle.next()))
            return self.slots[-1]
        return self.leaders.choose(self.slots)

    def learn(self, slot: Slot, reward: float) -> None:
        learn(slot, reward)
        self.leaders.changed(slot, self.index.value(slot, self.horizon, self.size))


def moss_game(index: Index, n: int, size: int, horizon: int, key: int) -> Game:
    """Play MOSS on `size` of `n` arms."""
    run = MossRun(index, n, size, horizon, stream(key, FRESH), stream(key, TIES))
    for _ in range(horizon):
        slot = run.choose()
        run.learn(slot, (yield slot.arm))


@dataclass(frozen=True)
class Moss:
    """MOSS on all arms."""

    index: Index = PAPER

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        return moss_game(self.index, n, n, horizon, key)


def subset_size(n: int, horizon: int, share: Decimal) -> int:
    """Return min(⌈share · log √T⌉, T, n), at least 1; share stands for 2 T^α or n/m."""
    wanted = share * Decimal(horizon).sqrt().ln()
    return max(1, min(int(wanted.to_integral_value(ROUND_CEILING)), horizon, n))


def power(base: int, exponent: Fraction) -> Decimal:
    """Return base^exponent to 28 digits."""
    return Decimal(base) ** (Decimal(exponent.numerator) / Decimal(exponent.denominator))


@dataclass(frozen=True)
class MossOracle:
    """MOSS on as many random arms as α, or m, tells, or on `size`."""

    index: Index = PAPER
    alpha: str | None = None  # as text: 0.4 means 4/10
    m: int | None = None
    size: int | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        if self.size is not None:
            return moss_game(self.index, n, min(self.size, n), horizon, key)
        if self.alpha is not None:
            share = 2 * power(horizon, Fraction(self.alpha))
        else:
            assert self.m is not None
            share = Decimal(n) / Decimal(self.m)
        return moss_game(self.index, n, subset_size(n, horizon, share), horizon, key)
