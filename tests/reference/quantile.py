"""Quantile: QRM2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from itertools import count

from tests.reference.leaders import Leaders
from tests.reference.moss import PAPER, Index, Play, Shuffle, Slot, learn, power
from tests.reference.words import FRESH, TIES, stream


def set_size(exponent: str, round_number: int, n: int) -> int:
    """Return min(⌈2^(exponent · l)⌉, n)."""
    wanted = power(2, Fraction(exponent) * round_number)
    return min(int(wanted.to_integral_value(ROUND_CEILING)), n)


def play_rounds(
    index: Index, n: int, horizon: int | None, key: int, size_of: Callable[[int], int]
) -> Play:
    """Play rounds of 2^l pulls on a set of `size_of(l)` arms; statistics are kept."""
    shuffle = Shuffle(n, stream(key, FRESH))
    leaders: Leaders[Slot] = Leaders(stream(key, TIES))
    slots: list[Slot] = []
    made = 0
    for round_number in count(1):
        size = size_of(round_number)
        total = 2 ** (round_number + 1) - 2
        if horizon is not None:
            total = min(total, horizon)
        leaders.forget()
        for slot in slots:
            slot.value = index.value(slot, total, size)
        for _ in range(2**round_number):
            if made == horizon:
                return
            if len(slots) < size:
                slot = Slot(shuffle.next())
                slots.append(slot)
            else:
                slot = leaders.choose(slots)
            learn(slot, (yield slot.arm))
            leaders.changed(slot, index.value(slot, total, size))
            made += 1


@dataclass(frozen=True)
class Quantile:
    index: Index = PAPER
    exponent: str = "0.347"

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        return play_rounds(
            self.index, n, horizon, key, lambda number: set_size(self.exponent, number, n)
        )
