"""Policies for finding one good arm."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

from tests.reference.leaders import Leaders
from tests.reference.moss import Play, Shuffle
from tests.reference.words import FRESH, RANKING, TIES, SplitMix64, stream


@dataclass(eq=False)
class Tried:
    """An arm with its rewards."""

    arm: int
    rewards: list[float] = field(default_factory=list)
    value: float = -math.inf

    @property
    def total(self) -> float:
        result = 0.0
        for reward in self.rewards:
            result += reward
        return result

    @property
    def mean(self) -> float:
        return self.total / len(self.rewards) if self.rewards else -1e300


def better_half(arms: list[Tried], ties: SplitMix64) -> list[Tried]:
    """Return the better half in the same order, the best first; ties are random."""
    leaders: Leaders[Tried] = Leaders(ties)
    for arm in arms:
        arm.value = arm.mean
    chosen: list[Tried] = []
    for _ in range((len(arms) + 1) // 2):
        best = leaders.choose(arms)
        leaders.changed(best, -math.inf)
        chosen.append(best)
    return chosen


def kept_in_place(arms: list[Tried], chosen: list[Tried]) -> list[Tried]:
    """Move the kept arms to the front, swapping each with a dropped one."""
    order = list(arms)
    write = 0
    for place, arm in enumerate(arms):
        if arm in chosen:
            order[place], order[write] = order[write], arm
            write += 1
    return order[:write]


def halve(
    arms: list[Tried], budget: int, ties: SplitMix64
) -> Generator[int, float, tuple[Tried, int]]:
    """Run sequential halving; return the winner and the remaining budget."""
    rounds = max(1, math.ceil(math.log2(len(arms))))
    left = budget
    for later in range(rounds, 0, -1):
        each = max(1, left // later // len(arms))
        for _ in range(each):
            for arm in arms:
                if left == 0:
                    return arms[0], 0
                arm.rewards.append((yield arm.arm))
                left -= 1
        arms = kept_in_place(arms, better_half(arms, ties))
    return arms[0], left


def largest_bracket(horizon: int) -> int:
    """Return the largest power of two with K log2 K <= T."""
    return max(1 << k for k in range(64) if k << k <= horizon)


@dataclass(frozen=True)
class SequentialHalving:
    size: int | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        shuffle = Shuffle(n, stream(key, FRESH))
        size = min(self.size or largest_bracket(horizon), n, horizon)
        arms = [Tried(shuffle.next()) for _ in range(size)]
        winner, left = yield from halve(arms, horizon, stream(key, RANKING))
        for _ in range(left):
            yield winner.arm


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def tail(a: float, b: float, x: float) -> float:
    """Return P(Beta(a, b) > x), by the power series of the incomplete beta function in 1 - x."""
    y = 1.0 - x
    term, series, k = 1.0, 1.0, 0
    while term > 1e-17 * series:
        term *= (a + b + k) / (b + 1 + k) * y
        series += term
        k += 1
    return math.exp(b * math.log(y) + a * math.log(x) - log_beta(a, b)) / b * series


@dataclass
class FittedBeta:
    """Beta(c m, c (1 - m)), fitted to first rewards and to the prediction of later ones."""

    m: float = 0.5
    c: float = 2.0
    first: list[float] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(1, 13), 0.0))

    def learn(self, arm: Tried, reward: float) -> None:
        if not arm.rewards:
            self.first.append(reward)
            return
        for k in self.scores:
            p = (2.0**k * self.m + arm.total) / (2.0**k + len(arm.rewards))
            if reward > 0.0:
                self.scores[k] += reward * math.log(p)
            if reward < 1.0:
                self.scores[k] += (1.0 - reward) * math.log(1.0 - p)

    def fit(self) -> None:
        total = 0.0
        for reward in self.first:
            total += reward
        self.m = (total + 1.0) / (len(self.first) + 2.0)
        best = max(self.scores.values())
        self.c = 2.0 ** min(k for k, score in self.scores.items() if score == best)

    def mean(self, arm: Tried) -> float:
        return (self.c * self.m + arm.total) / (self.c + len(arm.rewards))

    def target(self, n: int, pulls: int) -> float:
        """Return the v that one of the arms that can be screened is expected to exceed."""
        m, low, high = self.m, self.m, 1.0 - 0.5 / (pulls + 1.0)
        for _ in range(40 if low < high else 0):
            v = (low + high) / 2
            apart = m * math.log(m / v) + (1 - m) * math.log((1 - m) / (1 - v))
            screened = max(4, min(n, pulls / (1 + 0.3 / max(apart, 1e-12))))
            if tail(self.c * m, self.c * (1 - m), v) * screened > 1:
                low = v
            else:
                high = v
        return high


class Search:
    """Scout's state and its ranking of arms."""

    def __init__(self, n: int, horizon: int, planned: int, ties: SplitMix64) -> None:
        self.n, self.horizon, self.planned = n, horizon, planned
        self.law, self.arms = FittedBeta(), list[Tried]()
        self.leaders: Leaders[Tried] = Leaders(ties)
        self.searching, self.due, self.most = True, 0, 4
        self.v, self.second = 0.5, 0.0
        self.best: Tried | None = None

    def value(self, arm: Tried) -> float:
        return self.promise(arm) if self.searching else self.improvement(arm)

    def promise(self, arm: Tried) -> float:
        if len(arm.rewards) >= self.most:
            return -1e200
        a, b = self.law.c * self.law.m, self.law.c * (1 - self.law.m)
        ones, zeros = arm.total, len(arm.rewards) - arm.total
        gain = log_beta(a, b) - log_beta(a + ones, b + zeros)
        return gain + ones * math.log(self.v) + zeros * math.log(1 - self.v)

    def improvement(self, arm: Tried) -> float:
        mean = self.law.mean(arm)
        sd = math.sqrt(mean * (1 - mean) / (self.law.c + len(arm.rewards) + 1))
        gap = self.second - mean if arm is self.best else mean - self.v
        z = gap / sd
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        if z < -6:
            return sd * density / z**2
        return sd * density + gap * math.erfc(-z / math.sqrt(2)) / 2

    def enough(self, left: int) -> bool:
        candidates = [arm for arm in self.arms if len(arm.rewards) >= self.most]
        return len(candidates) * (self.most + 16) >= left

    def look(self, time: int) -> None:
        self.law.fit()
        self.searching = self.searching and time < self.planned
        if self.searching:
            self.due = max(time + 1, int(1.2 * time))
            self.v = self.law.target(self.n, self.planned)
            few = max(math.sqrt(self.horizon) / 8, self.horizon / (self.n * math.log2(self.n + 1)))
            self.most = int(max(4, few, min(1 / (1 - self.v), self.horizon / 100)))
        else:
            self.due = time + max(1, min(len(self.arms) // 2, self.horizon // 25))
            means = sorted(map(self.law.mean, self.arms))
            self.v = means[-1] if means else -1.0
            self.second = means[-2] if len(means) > 1 else self.law.m
            self.best = next((arm for arm in self.arms if self.law.mean(arm) == self.v), None)
        self.leaders.forget()
        for arm in self.arms:
            arm.value = self.value(arm)


@dataclass(frozen=True)
class Scout:
    search: float = 0.75

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        shuffle = Shuffle(n, stream(key, FRESH))
        found = Search(n, horizon, int(self.search * horizon), stream(key, TIES))
        arms, leaders = found.arms, found.leaders
        for time in range(horizon):
            if time >= found.due:
                found.look(time)
            tried = found.searching and shuffle.left == 0 and leaders.highest(arms) <= -1e200
            if tried or (found.searching and found.enough(horizon - time)):
                found.searching = False
                found.look(time)
            wants = found.searching and shuffle.left > 0
            if not arms or (wants and leaders.highest(arms) <= 0.0):
                chosen = Tried(shuffle.next())
                arms.append(chosen)
                leaders.changed(chosen, found.value(chosen))
            else:
                chosen = leaders.choose(arms)
            reward = min(1.0, max(0.0, (yield chosen.arm)))
            found.law.learn(chosen, reward)
            chosen.rewards.append(reward)
            leaders.changed(chosen, found.value(chosen))
