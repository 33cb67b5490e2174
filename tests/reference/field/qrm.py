"""QRM1, and QRM2 with restarts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from itertools import count

from tests.reference.leaders import Leaders
from tests.reference.moss import PAPER, Game, Index, Shuffle, Slot, learn
from tests.reference.quantile import rounds_game, set_size
from tests.reference.words import FRESH, ORDER, TIES, below, stream


def qrm1_size(rho: Fraction, round_number: int, n: int) -> int:
    """Return min(⌈max(1, log √(ρ 2^l)) / ρ⌉, n)."""
    exact = Decimal(rho.numerator) / Decimal(rho.denominator)
    factor = max(Decimal(1), (exact * 2**round_number).ln() / 2)
    wanted = factor * Decimal(rho.denominator) / Decimal(rho.numerator)
    return min(int(wanted.to_integral_value(ROUND_CEILING)), n)


@dataclass(frozen=True)
class Qrm1:
    rho: Fraction
    index: Index = PAPER

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        return rounds_game(
            self.index, n, horizon, key, lambda number: qrm1_size(self.rho, number, n)
        )


@dataclass(frozen=True)
class Qrm2Restarted:
    """Rounds of 2^l pulls on a growing set; each is a MOSS of its own."""

    index: Index = PAPER
    exponent: str = "0.347"

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        shuffle = Shuffle(n, stream(key, FRESH))
        ties, order = stream(key, TIES), stream(key, ORDER)
        arms: list[int] = []
        made = 0
        for round_number in count(1):
            while len(arms) < set_size(self.exponent, round_number, n):
                arms.append(shuffle.next())
            slots: list[Slot] = []
            leaders: Leaders[Slot] = Leaders(ties)
            length = 2**round_number
            for _ in range(length):
                if made == horizon:
                    return
                if len(slots) < len(arms):
                    waiting = len(arms) - len(slots)
                    at = below(order.next(), waiting)
                    arms[at], arms[waiting - 1] = arms[waiting - 1], arms[at]
                    slot = Slot(arms[waiting - 1])
                    slots.append(slot)
                else:
                    slot = leaders.choose(slots)
                learn(slot, (yield slot.arm))
                leaders.changed(slot, self.index.value(slot, length, len(arms)))
                made += 1
