"""Policies from the literature on infinitely many arms that compare the arms they opened."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reference.field.dropping import factor_for, loss_bound
from tests.reference.leaders import Leaders
from tests.reference.moss import Game, Shuffle
from tests.reference.words import FRESH, TIES, below, stream, unit

BASES = 9


@dataclass(eq=False)
class Opened:
    """An arm with all its rewards."""

    arm: int
    rewards: list[float] = field(default_factory=list)
    value: float = -math.inf

    @property
    def mean(self) -> float:
        return total(self.rewards) / len(self.rewards)


def total(numbers: list[float]) -> float:
    """Add up in order, without the care that `sum` takes of rounding."""
    result = 0.0
    for number in numbers:
        result += number
    return result


@dataclass(frozen=True)
class EmpiricalCbt:
    factor: float | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Game:
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


def ucb_v_index(arm: Opened, time: int) -> float:
    """Return x̄ + sqrt(2 V E/N) + 3 E/N with E = 2 log(10 log t)."""
    pulls = len(arm.rewards)
    explore = 2 * math.log(10 * math.log(time))
    variance = max(0.0, total([reward**2 for reward in arm.rewards]) / pulls - arm.mean**2)
    return arm.mean + math.sqrt(2 * variance * explore / pulls) + 3 * explore / pulls


def ucb_v_game(n: int, key: int, opens: Callable[[int, int], bool]) -> Game:
    """Open an arm when `opens(t, arms so far)` says so, else pull the largest index."""
    shuffle, ties = Shuffle(n, stream(key, FRESH)), stream(key, TIES)
    opened: list[Opened] = []
    time = 0
    while True:
        time += 1
        if shuffle.left > 0 and opens(time, len(opened)):
            opened.append(Opened(shuffle.next()))
            chosen = opened[-1]
        else:
            # arms of the same rewards in number and sum have the same index
            values = [ucb_v_index(arm, time) for arm in opened]
            tied = [a for a, v in zip(opened, values, strict=True) if v == max(values)]
            chosen = tied[below(ties.next(), len(tied))] if len(tied) > 1 else tied[0]
        chosen.rewards.append((yield chosen.arm))


@dataclass(frozen=True)
class UcbF:
    """K = ⌈T^(up/down)⌉ arms."""

    up: int = 1
    down: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        # K arms are too few while K < T^(up/down)
        return ucb_v_game(n, key, lambda time, count: count**self.down < horizon**self.up)


@dataclass(frozen=True)
class UcbAir:
    """An arm is opened while there are fewer than t^(up/down)."""

    up: int = 1
    down: int = 2

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        return ucb_v_game(n, key, lambda time, count: count**self.down < time**self.up)


@dataclass(frozen=True)
class CorralIgw:
    bases: int = 8
    low: float = 1e3
    high: float = 1e6
    eta: float = 0.125

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        words = stream(key, BASES)
        leaders: Leaders[Opened] = Leaders(stream(key, TIES))
        steps = max(1, self.bases - 1)
        gammas = [self.low * (self.high / self.low) ** (j / steps) for j in range(self.bases)]
        shares = [1 / self.bases] * self.bases
        opened: dict[int, Opened] = {}
        while True:
            left = unit(words.next())
            base = 0
            while base < self.bases - 1 and left >= shares[base]:
                left -= shares[base]
                base += 1
            arm = below(words.next(), n)
            coin = unit(words.next())
            if opened:
                best = leaders.choose([*opened.values()])
                mean = opened[arm].mean if arm in opened else 0.0
                gap = max(0.0, best.mean - mean)
                if coin >= n / (n + gammas[base] * gap):
                    arm = best.arm
            reward = yield arm
            pulled = opened.setdefault(arm, Opened(arm))
            pulled.rewards.append(reward)
            leaders.changed(pulled, pulled.mean)
            loss = -min(1.0, max(0.0, reward)) / shares[base]
            shares = log_barrier_step(shares, base, self.eta * loss)


def log_barrier_step(shares: list[float], base: int, change: float) -> list[float]:
    """Return shares p' that add up to 1, with 1/p' = 1/p + change (of one of them) + constant."""
    inverse = [1 / share for share in shares]
    inverse[base] += change
    low = -min(inverse)
    high = low + len(shares)  # there no share is above 1 / their number
    for _ in range(200):
        middle = (low + high) / 2
        if sum(1 / (number + middle) for number in inverse) > 1:
            low = middle
        else:
            high = middle
    return [1 / (number + high) for number in inverse]
