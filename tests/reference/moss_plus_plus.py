"""MOSS++ (Algorithm 1): docs/learn/moss_plus_plus.py, and parts that other references share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, count

from tests.reference.moss import (
    PAPER,
    Index,
    Member,
    Play,
    Slot,
    Words,
    learned,
    numbered,
    options,
)
from tests.reference.words import MIXTURES, SplitMix64, below, stream


def smallest_power(horizon: int, beta: str) -> int:
    """Return the smallest p with 2^p >= T^β, in integers."""
    b = Fraction(beta)
    return next(p for p in count() if 2 ** (p * b.denominator) >= horizon**b.numerator)


def iterations(p: int) -> range:
    """Return 1, ..., p; if T = 1, p is 0 and a single iteration makes the only pull."""
    return range(1, max(p, 1) + 1)


def arms_in(p: int, i: int, n: int) -> int:
    """Return the number of real arms in iteration i."""
    return min(1 << (p + 2 - i), n)


def pulls_in(p: int, i: int, horizon: int) -> int:
    """Return the length of iteration i, if the horizon does not end it."""
    return min(1 << (p + i), horizon)


@dataclass
class Mixtures:
    """The members of each mixture-arm 1, 2, ..."""

    words: SplitMix64
    shares: list[list[tuple[Slot, int]]] = field(default_factory=list)

    def add(self, members: Sequence[tuple[Slot, int]]) -> None:
        self.shares.append(list(members))

    def real_arm(self, slot: Slot) -> int:
        """Return the arm of a slot, drawing from mixture-arms until a real arm is reached."""
        while slot.mixture:
            shares = self.shares[slot.mixture - 1]
            target = below(self.words.next(), sum(pulls for _, pulls in shares))
            until = 0
            for member, pulls in shares:
                until += pulls
                if until > target:
                    slot = member
                    break
        return slot.arm


def next_mixture(waiting: list[int], unopened: int, order: SplitMix64) -> int:
    """Remove and return the next mixture-arm to open from those waiting; 0 for a real arm."""
    at = below(order.next(), unopened) if waiting else 0
    if at >= len(waiting):
        return 0
    waiting[at], waiting[-1] = waiting[-1], waiting[at]
    return waiting.pop()


@dataclass
class MixtureWords(Words):
    """Words that also draw from mixture-arms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mixtures = stream(self.key, MIXTURES)

    def one_of(self, choices: list[Member]) -> Member:
        """Add up shares in the order of the set's members, and return the one that a word hits."""
        run = next(run for run in self.runs if run.chosen == choices)
        pulls = Counter(choices)
        until = accumulate(pulls[member] for member in run.members)
        target = below(self.mixtures.next(), len(choices))
        return next(m for m, end in zip(run.members, until, strict=True) if end > target)


@dataclass(frozen=True)
class MossPlusPlus:
    """A new MOSS in each iteration, on fewer arms and more mixture-arms."""

    index: Index = PAPER
    beta: str = "0.5"

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        play, how = learned("moss_plus_plus").moss_plus_plus, options(self.index)
        return numbered(play(n, horizon, float(self.beta), MixtureWords(key), **how))
