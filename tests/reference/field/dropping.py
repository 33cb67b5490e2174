"""CBT and empirical CBT, greedy and uniform."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.reference.leaders import Leaders
from tests.reference.moss import Play, Shuffle, Slot, learn
from tests.reference.words import FRESH, TIES, SplitMix64, below, stream


def arms_in_order(n: int, words: SplitMix64) -> Iterator[int]:
    """Yield all arms in random order, then in another one, and so on."""
    while True:
        shuffle = Shuffle(n, words)
        while shuffle.left > 0:
            yield shuffle.next()


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

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        factor = factor_for(self.factor, horizon)
        target = self.target or ((self.b + 1) / (self.weight * horizon)) ** (1 / (self.b + 1))
        for arm in arms_in_order(n, stream(key, FRESH)):
            rewards: list[float] = []
            while not rewards or loss_bound(rewards, factor) <= target:
                rewards.append((yield arm))


@dataclass(eq=False)
class Opened:
    """An arm with all its rewards."""

    arm: int
    rewards: list[float] = field(default_factory=list)
    value: float = -math.inf


@dataclass(frozen=True)
class EmpiricalCbt:
    factor: float | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        factor = factor_for(self.factor, horizon)
        shuffle = Shuffle(n, stream(key, FRESH))
        leaders: Leaders[Opened] = Leaders(stream(key, TIES))
        opened: list[Opened] = []
        loss = 0.0
        while True:
            best = leaders.choose(opened) if opened else None
            if best is None or (shuffle.left > 0 and -best.value > loss / horizon):
                best = Opened(shuffle.next())
                opened.append(best)
            reward = yield best.arm
            loss += 1 - reward
            best.rewards.append(reward)
            leaders.changed(best, -loss_bound(best.rewards, factor))


@dataclass(frozen=True)
class Uniform:
    def play(self, n: int, horizon: int | None, key: int) -> Play:
        words = stream(key, FRESH)
        while True:
            yield below(words.next(), n)


@dataclass(frozen=True)
class Greedy:
    def play(self, n: int, horizon: int | None, key: int) -> Play:
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
