"""Prospector: its rule, with a scan of all arms at every pull, inside the reference guard."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.reference.field.kl import largest
from tests.reference.guarded import Guarded, play_guarded
from tests.reference.leaders import Leaders
from tests.reference.moss import Play, Shuffle
from tests.reference.words import FRESH, TIES, below, stream


@dataclass(eq=False)
class Value:
    """An arm in one of the rankings."""

    value: float = -math.inf


class Ranking:
    """All open slots by one value."""

    def __init__(self, leaders: Leaders[Value]) -> None:
        self.leaders = leaders
        self.values: list[Value] = []

    def set(self, slot: int, value: float) -> None:
        while len(self.values) <= slot:
            self.values.append(Value())
        self.leaders.changed(self.values[slot], value)

    def highest(self) -> float:
        return self.leaders.highest(self.values)

    def leader(self) -> int:
        return self.values.index(self.leaders.choose(self.values))

    def keep_or_lead(self, current: int) -> int:
        return current if self.values[current].value >= self.highest() else self.leader()


@dataclass
class Sums:
    """The sums of all rewards and of their squares."""

    rewards: float = 0.0
    squares: float = 0.0

    def add(self, reward: float) -> None:
        self.rewards += reward
        self.squares += reward * reward

    def unit(self, best: float) -> float:
        """Return the unit of costs for rewards in [0, 1], if `best` is the largest shrunk mean.

        It is 1 if all rewards are 0 or 1, or without a positive sum.
        """
        if self.rewards <= 0.0:
            return 1.0
        return min(1.0, max(self.squares / self.rewards, 2.0 * best))


class Rule(Guarded):
    """The rule inside its guard; it also learns from the guard's pulls."""

    def __init__(self, player: Prospector, n: int, horizon: int, key: int) -> None:
        super().__init__(lambda _: self.choose(), horizon, player.beta, n, lambda _: self.hints())
        self.c2, self.e = (4.0, 2.0) if player.bold else (1.5, 1.5)
        words = stream(key, TIES)
        self.words = words
        self.means, self.uppers = Ranking(Leaders(words)), Ranking(Leaders(words))
        self.hint = self.rules_last = -1
        self.ceiling, self.spent, self.best = 1.0, 0.0, -math.inf
        self.total = self.firsts = 0.0
        self.sums, self.unit = Sums(), 1.0
        self.ranked = (0, 1.0)  # the horizon and the unit of the stored upper bounds

    def look_ahead(self) -> None:
        """Find a good arm for the floor if a stage begins."""
        begun = len(self.ends)
        if self.testing < 0 and begun < len(self.stages) and self.made >= self.stages[begun].start:
            self.hint = self.most_shrunk()

    def shrunk(self) -> list[float]:
        """Return the shrunk means of all slots; all of them change with the average."""
        average = self.firsts / len(self.slots)
        return [(slot.total + average) / (slot.pulls + 1) for slot in self.slots]

    def most_shrunk(self) -> int:
        """Return a slot with the largest shrunk mean."""
        shrunk = self.shrunk()
        tied = [j for j, value in enumerate(shrunk) if value == max(shrunk)]
        return tied[0] if len(tied) == 1 else tied[below(self.words.next(), len(tied))]

    def hints(self) -> list[int]:
        return [self.current, self.hint]

    def reaches(self, mean: float) -> bool:
        # the target is ceiling - spent^(1/e)
        below = (self.ceiling - mean) / self.unit
        return mean >= self.ceiling or below**self.e <= self.spent

    def choose(self) -> int:
        if self.reaches(self.means.highest()):
            slot = self.means.keep_or_lead(self.rules_last)
        elif len(self.slots) < self.n:
            slot = len(self.slots)
        elif not self.reaches(self.best):
            horizon, unit = self.ranked
            if horizon != self.horizon or abs(self.unit - unit) > 0.1 * unit:
                self.ranked = self.horizon, self.unit
                for j in range(len(self.slots)):
                    self.uppers.set(j, self.upper(j))
            slot = self.uppers.keep_or_lead(self.rules_last)
        else:
            slot = self.means.keep_or_lead(self.rules_last)
        self.rules_last = slot
        return slot

    def upper(self, j: int) -> float:
        slot = self.slots[j]
        log = max(1.0, math.log(self.horizon)) - math.log(self.n) - math.log(slot.pulls)
        level = max(0.0, 0.5 * log, log - math.log(self.n)) / slot.pulls
        return self.unit * largest(slot.mean / self.unit, level)

    def tell(self, who: str, slot: int, reward: float) -> None:
        super().tell(who, slot, reward)
        arm = self.slots[slot]
        self.firsts += reward if arm.pulls == 1 else 0.0
        self.total += reward
        self.sums.add(reward)
        self.means.set(slot, arm.mean)
        if self.ranked[0]:
            self.uppers.set(slot, self.upper(slot))
        self.set_target(self.firsts / len(self.slots))

    def set_target(self, average: float) -> None:
        self.best = min(max(self.shrunk()), 1.0)
        cost = max(0.0, self.made * self.best - self.total)
        self.unit = self.sums.unit(self.best)
        power, log = self.unit * self.horizon**self.beta, max(1.0, math.log(self.horizon))
        if cost < 0.5 * power:
            self.ceiling, self.spent = self.unit - cost / self.horizon, 0.0
        else:
            gain = min(2.5 * max(0.0, self.best - average), self.best)
            self.ceiling = min(self.unit, self.best + gain)
            self.spent = cost / (self.c2 * log * power)


@dataclass(frozen=True)
class Prospector:
    """Prospector on rewards in [0, 1], without delay."""

    beta: float = 0.5
    bold: bool = False
    guess: bool = False

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        guess = self.guess or horizon is None
        rule = Rule(self, n, 256 if guess or horizon is None else horizon, key)
        return play_guarded(rule, Shuffle(n, stream(key, FRESH)), guess, rule.look_ahead)
