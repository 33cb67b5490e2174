"""Hybrid MOSS++: MOSS++ whose sets also hold the best means so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.reference.emp_moss_plus_plus import best_of
from tests.reference.leaders import Leaders
from tests.reference.moss import PAPER, Game, Index, Shuffle, Slot, learn
from tests.reference.moss_plus_plus import Mixtures, arms_in, iterations, pulls_in, smallest_power
from tests.reference.words import (
    FRESH,
    MIXTURES,
    ORDER,
    RANKING,
    TIES,
    SplitMix64,
    below,
    stream,
)


@dataclass
class Memory:
    """Pulls and rewards of arms in the iterations that ended, by arm."""

    words: SplitMix64
    arms: dict[int, Slot] = field(default_factory=dict)

    def add(self, slots: list[Slot]) -> None:
        for slot in slots:
            if not slot.mixture:
                known = self.arms.setdefault(slot.arm, Slot(slot.arm))
                known.pulls += slot.pulls
                known.total += slot.total

    def best(self, count: int) -> list[int]:
        for slot in self.arms.values():
            slot.value = slot.mean
        known = list(self.arms.values())
        return [slot.arm for slot in best_of(Leaders(self.words), known, min(count, len(known)))]


@dataclass(frozen=True)
class HybridMossPlusPlus:
    """A new MOSS in each iteration: best arms so far, fresh arms, mixture-arms."""

    index: Index = PAPER
    beta: str = "0.5"

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        fresh, ties, order = (stream(key, purpose) for purpose in (FRESH, TIES, ORDER))
        mixtures = Mixtures(stream(key, MIXTURES))
        memory = Memory(stream(key, RANKING))
        p = smallest_power(horizon, self.beta)
        made = 0
        for i in iterations(p):
            arms = arms_in(p, i, n)
            length = pulls_in(p, i, horizon)
            best = memory.best(arms)
            shuffle = Shuffle(n, fresh)
            drawn = [shuffle.next() for _ in range(arms)]
            waiting = [Slot(arm) for arm in [*best, *(arm for arm in drawn if arm not in best)]]
            waiting += [Slot(mixture=j) for j in range(1, i)]
            size = len(waiting)
            slots: list[Slot] = []
            leaders: Leaders[Slot] = Leaders(ties)
            for _ in range(length):
                if made == horizon:
                    return
                if waiting:
                    at = below(order.next(), len(waiting))
                    waiting[at], waiting[-1] = waiting[-1], waiting[at]
                    slot = waiting.pop()
                    slots.append(slot)
                else:
                    slot = leaders.choose(slots)
                learn(slot, (yield mixtures.real_arm(slot)))
                leaders.changed(slot, self.index.value(slot, length, size))
                made += 1
            mixtures.add([(slot, slot.pulls) for slot in slots])
            memory.add(slots)
