"""SubSampled: a policy on a random subset, and the subset's size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import Play, Player, Shuffle, power
from tests.reference.words import FRESH, SUBSET, draw, stream


def rounded_up(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_CEILING))


def fixed(size: int) -> Callable[[int], int]:
    """Return T -> size."""
    return lambda _: size


def by_exponent(exponent: str) -> Callable[[int], int]:
    """Return T -> ⌈T^exponent⌉."""
    return lambda horizon: rounded_up(power(horizon, Fraction(exponent)))


@dataclass(frozen=True)
class SubSampled:
    """`player` on a random subset; `size` maps the horizon to the number of arms."""

    player: Player
    size: Callable[[int], int]

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        size = max(1, min(self.size(horizon or 0), n))
        shuffle = Shuffle(n, stream(key, FRESH))
        arms: dict[int, int] = {}
        play = self.player.play(size, horizon, draw(key, SUBSET))
        member = next(play)
        while True:
            if member not in arms:
                arms[member] = shuffle.next()
            try:
                member = play.send((yield arms[member]))
            except StopIteration:
                return
