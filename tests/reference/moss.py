"""MOSS, its index, and MOSS on a random set (MOSS Oracle, the subroutine SR).

The algorithm is docs/learn/moss.py. `Words` provides its random numbers.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from tests.reference.leaders import Leaders
from tests.reference.words import FRESH, ORDER, TIES, SplitMix64, below, stream

Play: TypeAlias = Generator[int, float, None]  # yields arms, is sent their rewards


class Player(Protocol):
    """A reference policy."""

    def play(self, n: int, horizon: int | None, key: int) -> Play: ...


@dataclass(eq=False)
class Slot:
    """The statistics of an arm, or of mixture-arm number `mixture`."""

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


@dataclass(eq=False)
class Dealt:
    """One of the arms of a sample; its number is decided at its first pull."""

    shuffle: Shuffle
    arm: int = -1

    def number(self) -> int:
        if self.arm < 0:
            self.arm = self.shuffle.next()
        return self.arm


Member: TypeAlias = Any  # a dealt arm, or a mixture-arm of docs/learn/moss_plus_plus.py


@dataclass(eq=False)
class Ranked:
    """A member of a set and its index."""

    member: Member
    value: float


class Run:
    """One MOSS run of docs/learn: its indices, leaders and last choice."""

    def __init__(self, values: dict[Member, float], ties: SplitMix64) -> None:
        self.values = values
        unopened = [member for member in values if values[member] == math.inf]
        self.members = [member for member in values if values[member] < math.inf]
        self.fresh = [member for member in reversed(unopened) if isinstance(member, Dealt)]
        self.waiting = [member for member in unopened if not isinstance(member, Dealt)]
        self.leaders: Leaders[Ranked] = Leaders(ties)
        self.ranked: list[Ranked] = []  # in the order of opening
        self.chosen: list[Member] = []
        self.last: Ranked | None = None


@dataclass
class Words:
    """The random choices of the files of docs/learn, read from the package's words."""

    key: int
    opened: dict[Member, None] = field(default_factory=dict)  # in this order
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fresh, self.ties, self.order = (
            stream(self.key, purpose) for purpose in (FRESH, TIES, ORDER)
        )

    def sample(self, n: int, k: int) -> list[Member]:
        self.shuffle = Shuffle(n, self.fresh)
        return [Dealt(self.shuffle) for _ in range(k)]

    def largest(self, values: dict[Member, float]) -> Member:
        run = next((run for run in self.runs if run.values is values), None)
        if run is None:
            run = Run(values, self.ties)
            self.runs.append(run)
        member = self._open(run) if run.fresh or run.waiting else self._leader(run)
        run.chosen.append(member)
        return member

    def _open(self, run: Run) -> Member:
        """Open a member that was never pulled; with an unopened mixture-arm, a word decides."""
        waiting = run.waiting
        at = below(self.order.next(), len(waiting) + len(run.fresh)) if waiting else 0
        if at < len(waiting):
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            member = waiting.pop()
        else:
            member = run.fresh.pop()
        run.members.append(member)
        self.opened.pop(member, None)  # a mixture-arm is opened again in each iteration of MOSS++
        self.opened[member] = None
        return member

    def _leader(self, run: Run) -> Member:
        if not run.ranked:
            members = (member for member in self.opened if member in run.values)
            run.ranked = [Ranked(member, run.values[member]) for member in members]
        if run.last is not None:
            run.leaders.changed(run.last, run.values[run.last.member])
        run.last = run.leaders.choose(run.ranked)
        return run.last.member


def learned(name: str) -> Any:
    """Return a module of docs/learn, which are plain Python without types."""
    return importlib.import_module(name)


def options(index: Index) -> dict[str, Any]:
    """Return the options that give a policy of docs/learn another index."""
    if index == PAPER:
        return {}
    return {"index": lambda total, N, H, K: index.value(Slot(pulls=N, total=total), H, K)}  # noqa: N803


def numbered(policy: Generator[Member, float | None, None]) -> Play:
    """Play a policy of docs/learn, with its arms by number."""
    reward = None
    with suppress(StopIteration):
        while True:
            reward = yield policy.send(reward).number()


def moss_run(index: Index, n: int, size: int, horizon: int, luck: Words) -> Any:
    """Begin MOSS on `size` random arms, which can be resumed."""
    return learned("moss").Moss(luck.sample(n, size), horizon, luck, **options(index))


def play_moss(index: Index, n: int, size: int, horizon: int, key: int) -> Play:
    """Play MOSS on `size` of `n` arms."""
    run = moss_run(index, n, size, horizon, Words(key))
    for _ in range(horizon):
        arm = run.choose()
        run.learn(arm, (yield arm.number()))


@dataclass(frozen=True)
class Moss:
    """MOSS on all arms."""

    index: Index = PAPER

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        return play_moss(self.index, n, n, horizon, key)


def subset_size(n: int, horizon: int, share: Decimal) -> int:
    """Return min(⌈share · log √T⌉, T, n), at least 1; share stands for 2 T^α or n/m."""
    wanted = share * Decimal(horizon).sqrt().ln()
    return max(1, min(int(wanted.to_integral_value(ROUND_CEILING)), horizon, n))


def power(base: int, exponent: Fraction) -> Decimal:
    """Return base^exponent to 28 digits."""
    return Decimal(base) ** (Decimal(exponent.numerator) / Decimal(exponent.denominator))


@dataclass(frozen=True)
class MossOracle:
    """MOSS on a random set of arms, whose size follows from α or m, or is `size`."""

    index: Index = PAPER
    alpha: str | None = None  # as text: 0.4 means 4/10
    m: int | None = None
    size: int | None = None

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        if self.size is not None:
            return play_moss(self.index, n, min(self.size, n), horizon, key)
        if self.alpha is not None:
            share = 2 * power(horizon, Fraction(self.alpha))
        else:
            assert self.m is not None
            share = Decimal(n) / Decimal(self.m)
        return play_moss(self.index, n, subset_size(n, horizon, share), horizon, key)
