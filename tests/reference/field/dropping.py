"""Rules that look at one arm at a time and drop it, and the ends of every table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from tests.reference.leaders import Leaders
from tests.reference.moss import Game, Shuffle, Slot, learn
from tests.reference.words import FRESH, TIES, SplitMix64, below, stream, unit, upper

ROUNDING = 8


@dataclass
class Visit:
    """A stay with an arm, with all its rewards as they were rounded."""

    arm: int
    results: list[bool] = field(default_factory=list)

    @property
    def successes(self) -> int:
        return sum(self.results)

    @property
    def failures(self) -> int:
        return len(self.results) - self.successes


def arms_in_order(n: int, words: SplitMix64) -> Iterator[int]:
    """Yield all arms in random order, then in another one, and so on."""
    while True:
        shuffle = Shuffle(n, words)
        while shuffle.left > 0:
            yield shuffle.next()


def rounded(reward: float, words: SplitMix64) -> bool:
    """Turn a reward into a success or a failure."""
    if reward <= 0 or reward >= 1:
        return reward >= 1
    return unit(words.next()) < reward


def visits(
    n: int, key: int, is_left: Callable[[Visit], bool], is_kept: Callable[[Visit], bool]
) -> Game:
    """Visit arms until one is kept; that one for ever."""
    rounding = stream(key, ROUNDING)
    for arm in arms_in_order(n, stream(key, FRESH)):
        visit = Visit(arm)
        while not is_left(visit):
            visit.results.append(rounded((yield arm), rounding))
            if is_kept(visit):
                while True:
                    yield arm


@dataclass(frozen=True)
class KFailure:
    k: int

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        return visits(n, key, lambda visit: visit.failures == self.k, lambda visit: False)


def run_length(m: int | None, horizon: int | None) -> int:
    """Return m, or ⌈√T⌉."""
    if m is not None:
        return m
    assert horizon is not None
    return math.isqrt(horizon - 1) + 1


@dataclass(frozen=True)
class NonRecallingMRun:
    m: int | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        m = run_length(self.m, horizon)
        return visits(n, key, lambda visit: visit.failures > 0, lambda visit: visit.successes == m)


@dataclass(frozen=True)
class MRun:
    m: int | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        m = run_length(self.m, horizon)
        rounding, ties = stream(key, ROUNDING), stream(key, TIES)
        order = arms_in_order(n, stream(key, FRESH))
        tried: list[tuple[Fraction, int, int]] = []  # share of successes, word, arm
        while len(tried) < min(m, n):
            visit = Visit(next(order))
            while visit.failures == 0:
                visit.results.append(rounded((yield visit.arm), rounding))
                if visit.successes == m:
                    while True:
                        yield visit.arm
            share = Fraction(visit.successes, len(visit.results))
            tried.append((share, upper(ties.next()), visit.arm))
        _, _, best = max(tried)
        while True:
            yield best


def largest(fits: Callable[[int], bool]) -> int:
    """Return the largest number that fits."""
    number = 0
    while fits(number + 1):
        number += 1
    return number


@dataclass(frozen=True)
class TwoTarget:
    m: int = 3
    b: int = 1
    weight: str = "1"

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        scale = Fraction(self.weight) * horizon / (self.b + 1)
        first = largest(lambda number: number ** (self.b + 2) <= scale)
        second = largest(lambda number: Fraction(number, self.m) ** (self.b + 1) <= scale)

        def is_left(visit: Visit) -> bool:
            if visit.failures == 0:
                return False
            before = visit.results.index(False)
            return before < first or visit.failures == self.m

        def is_kept(visit: Visit) -> bool:
            return visit.successes >= second and not (is_left(visit) and visit.successes < first)

        return visits(n, key, is_left, is_kept)


def loss_bound(rewards: list[float], factor: float) -> float:
    """Return max(x̄/b, x̄ - c sd/√N) of the losses, b = c."""
    pulls, total, squares = 0, 0.0, 0.0
    for reward in rewards:
        pulls += 1
        total += 1 - reward
        squares += (1 - reward) ** 2
    mean = total / pulls
    variance = max(0.0, squares / pulls - mean**2)
    return max(mean / factor, mean - factor * math.sqrt(variance / pulls))


def factor_for(given: float | None, horizon: int) -> float:
    """Return b = c: log log T, at least 1."""
    if given is not None:
        return given
    return 1.0 if horizon <= 15 else math.log(math.log(horizon))  # e^e is 15.15…


@dataclass(frozen=True)
class Cbt:
    b: float = 1.0
    weight: float = 1.0
    target: float | None = None
    factor: float | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        factor = factor_for(self.factor, horizon)
        target = self.target or ((self.b + 1) / (self.weight * horizon)) ** (1 / (self.b + 1))
        for arm in arms_in_order(n, stream(key, FRESH)):
            rewards: list[float] = []
            while not rewards or loss_bound(rewards, factor) <= target:
                rewards.append((yield arm))


@dataclass(frozen=True)
class Uniform:
    def play(self, n: int, horizon: int | None, key: int) -> Game:
        words = stream(key, FRESH)
        while True:
            yield below(words.next(), n)


@dataclass(frozen=True)
class Best:
    arm: int

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        while True:
            yield self.arm


@dataclass(frozen=True)
class Greedy:
    def play(self, n: int, horizon: int | None, key: int) -> Game:
        shuffle = Shuffle(n, stream(key, FRESH))
        leaders: Leaders[Slot] = Leaders(stream(key, TIES))
        slots: list[Slot] = []
        while True:
            if shuffle.left > 0:
                slots.append(Slot(shuffle.next()))
                slot = slots[-1]
            else:
                slot = leaders.choose(slots)
            learn(slot, (yield slot.arm))
            leaders.changed(slot, slot.mean)
