"""SubSampled: a policy on a random subset, and how large subsets are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from tests.reference.moss import Game, Player, Shuffle, power
from tests.reference.words import FRESH, SUBSET, draw, stream


def rounded_up(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_CEILING))


def fixed(size: int) -> Callable[[int], int]:
    """Return T -> size."""
    return lambda _: size


def by_exponent(exponent: str) -> Callable[[int], int]:
    """Return T -> ⌈T^exponent⌉."""
    return lambda horizon: rounded_up(power(horizon, Fraction(exponent)))


def by_share(share: str) -> Callable[[int], int]:
    """Return T -> ⌈log(T) / share⌉."""
    return lambda horizon: rounded_up(Decimal(horizon).ln() / Decimal(share))


def for_greedy(alpha: str) -> Callable[[int], int]:
    """Return T -> the size for greedy where n/m = T^a."""
    a = Fraction(alpha)

    def size(horizon: int) -> int:
        log = Decimal(horizon).ln()
        if a < Fraction(1, 2):
            factor = Decimal((1 - 2 * a).numerator) / (1 - 2 * a).denominator
            return min(rounded_up(factor * power(horizon, 2 * a) * log / 4), horizon)
        factor = Decimal((1 - a).numerator) / (1 - a).denominator
        return min(rounded_up((factor * power(horizon, 1 + a) * log / 8).sqrt()), horizon)

    return size


@dataclass(frozen=True)
class SubSampled:
    """`player` on as many random arms as `size` says for the horizon; it knows of no others."""

    player: Player
    size: Callable[[int], int]

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        size = max(1, min(self.size(horizon or 0), n))
        shuffle = Shuffle(n, stream(key, FRESH))
        arms: dict[int, int] = {}
        game = self.player.play(size, horizon, draw(key, SUBSET))
        member = next(game)
        while True:
            if member not in arms:
                arms[member] = shuffle.next()
            try:
                member = game.send((yield arms[member]))
            except StopIteration:
                return
