"""Thompson sampling and its satisficing form, from exact binomial sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from tests.reference.moss import Game, Shuffle
from tests.reference.words import FRESH, TIES, SplitMix64, below, draw, stream, unit

ROUNDING, SAMPLES = 8, 11
LARGE = 64


def open_unit(word: int) -> float:
    return ((word >> 12) + 0.5) / 2**52


def tail(a: int, b: int, x: float) -> float:
    """Return P(Beta(a, b) > x): the probability of fewer than a successes among a + b - 1."""
    n = a + b - 1
    if x > a / (a + b):
        return math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a))
    return 1 - math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))


def cheng(a: int, b: int, key: int) -> float:
    """Return a Beta(a, b) number by algorithm BB, its steps as published."""
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


@dataclass
class Posterior:
    arm: int
    successes: int = 0
    failures: int = 0

    def learn(self, reward: float, rounding: SplitMix64) -> None:
        if 0 < reward < 1:
            reward = 1.0 if unit(rounding.next()) < reward else 0.0
        if reward >= 1:
            self.successes += 1
        else:
            self.failures += 1

    @property
    def shape(self) -> tuple[int, int]:
        return self.successes + 1, self.failures + 1


@dataclass
class Group:
    """Arms of one shape; a fresh arm is one without a posterior."""

    shape: tuple[int, int]
    fresh: int = 0
    members: list[Posterior] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.fresh + len(self.members)

    def remove(self, member: Posterior) -> None:
        at = next(k for k, other in enumerate(self.members) if other is member)
        self.members[at] = self.members[-1]
        self.members.pop()

    def largest(self, key: int) -> Callable[[float], bool]:
        """Return whether the largest of its samples is above a given number."""
        a, b = self.shape
        pulls = a + b - 2
        word = draw(key, pulls * (pulls + 1) // 2 + a - 1)
        if self.size == 1 and a + b > LARGE:
            if min(a, b) > 1:
                sample = cheng(a, b, word)
                return lambda x: sample > x
            word = draw(word, 0)
        p = -math.expm1(math.log1p(-open_unit(word)) / self.size)
        if a == 1:
            return lambda x: b * math.log1p(-x) > math.log(p)
        return lambda x: tail(a, b, x) > p


def largest_group(groups: list[Group], key: int) -> Group:
    """Return the group that has the largest sample: halve intervals until one is above."""
    above = {id(group): group.largest(key) for group in groups}
    low, high = 0.0, 1.0
    while len(groups) > 1:
        middle = (low + high) / 2
        assert low < middle < high
        left = [group for group in groups if above[id(group)](middle)]
        if left:
            groups, low = left, middle
        else:
            high = middle
    return groups[0]


@dataclass(frozen=True)
class Thompson:
    def play(self, n: int, horizon: int | None, key: int) -> Game:
        shuffle, ties = Shuffle(n, stream(key, FRESH)), stream(key, TIES)
        samples, rounding = stream(key, SAMPLES), stream(key, ROUNDING)
        groups = {(1, 1): Group((1, 1), fresh=n)}
        for _ in range(horizon or 10**9):
            group = largest_group([g for g in groups.values() if g.size > 0], samples.next())
            at = below(ties.next(), group.size)
            if at < len(group.members):
                member = group.members[at]
            else:
                member = Posterior(shuffle.next())
                group.fresh -= 1
                group.members.append(member)
            reward = yield member.arm
            group.remove(member)
            member.learn(reward, rounding)
            groups.setdefault(member.shape, Group(member.shape)).members.append(member)


@dataclass(frozen=True)
class Satisficing:
    target: float

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        shuffle, samples = Shuffle(n, stream(key, FRESH)), stream(key, SAMPLES)
        rounding = stream(key, ROUNDING)
        opened: list[Posterior] = []
        for _ in range(horizon or 10**9):
            number = -math.log(open_unit(samples.next()))
            chosen = self.first(opened, number)
            if chosen is None and shuffle.left > 0:
                chosen = Posterior(shuffle.next())
                opened.append(chosen)
            elif chosen is None:
                word = samples.next()
                total = math.fsum(map(self.weight, opened))
                number = -math.log1p(open_unit(word) * math.expm1(-total))
                chosen = self.first(opened, number) or opened[below(word, n)]
            chosen.learn((yield chosen.arm), rounding)

    def weight(self, arm: Posterior) -> float:
        """Return -log of the chance that the sample is below the target."""
        a, b = arm.shape
        chance = (1 - self.target) ** b if a == 1 else tail(a, b, self.target)
        return -math.log1p(-chance) if chance < 1 else 64.0

    def first(self, opened: list[Posterior], number: float) -> Posterior | None:
        """Return the first arm with which the sum of weights exceeds the number."""
        for arm in opened:
            number -= self.weight(arm)
            if number < 0:
                return arm
        return None
