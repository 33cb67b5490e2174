"""empMOSS++: MOSS++ that keeps statistics and goes on with the best means."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


def best_of(leaders: Leaders[Slot], slots: list[Slot], count: int) -> list[Slot]:
    """Return so many slots of largest value, one after the other; each goes behind all others."""
    chosen: list[Slot] = []
    for _ in range(count):
        chosen.append(leaders.choose(slots))
        leaders.changed(chosen[-1], -math.inf)
    return chosen


def choose_arms(
    slots: list[Slot], places: int, untouched: int, ranking: SplitMix64
) -> tuple[list[Slot], int]:
    """Return the slots of the highest means, and how many untouched arms rank among them."""
    real = [slot for slot in slots if not slot.mixture]
    for slot in slots:
        slot.value = -math.inf if slot.mixture or slot.mean == 0 else slot.mean
    positive = sum(slot.mean > 0 for slot in real)
    leaders: Leaders[Slot] = Leaders(ranking)
    chosen = best_of(leaders, slots, min(places, positive))
    zeros = [slot for slot in real if slot.mean == 0]
    fresh = 0
    while len(chosen) + fresh < places and len(zeros) + untouched > 0:
        at = below(ranking.next(), len(zeros) + untouched)
        if at < len(zeros):
            chosen.append(zeros[at])
            zeros[at] = zeros[-1]
            zeros.pop()
        else:
            fresh += 1
            untouched -= 1
    negative = sum(slot.mean < 0 for slot in real)
    return chosen + best_of(leaders, slots, min(places - len(chosen) - fresh, negative)), fresh


@dataclass(frozen=True)
class EmpMossPlusPlus:
    """One slot for each arm and mixture-arm, for the whole game."""

    index: Index = PAPER
    beta: str = "0.5"
    rank: str = "all"

    def play(self, n: int, horizon: int | None, key: int) -> Game:
        assert horizon is not None
        fresh, order, ranking = (stream(key, k) for k in (FRESH, ORDER, RANKING))
        leaders: Leaders[Slot] = Leaders(stream(key, TIES))
        mixtures = Mixtures(stream(key, MIXTURES))
        shuffle = Shuffle(n, fresh)
        slots: list[Slot] = []  # all, in the order of opening
        p = smallest_power(horizon, self.beta)
        made = planned = 0
        for i in iterations(p):
            planned += pulls_in(p, i, horizon)
            total = min(planned, horizon)
            places = arms_in(p, i, n)
            if i == 1:
                members: list[Slot] = []
                new_arms = places
            else:
                untouched = shuffle.left if self.rank == "all" else 0
                members, new_arms = choose_arms(slots, places, untouched, ranking)
                members += [slot for slot in slots if slot.mixture]
            waiting = i > 1  # the newest mixture-arm, i - 1
            size = len(members) + new_arms + waiting
            leaders.forget()
            for slot in slots:
                slot.value = -math.inf
            for slot in members:
                slot.value = self.index.value(slot, total, size)
            before = {id(slot): slot.pulls for slot in members}
            for _ in range(pulls_in(p, i, horizon)):
                if made == horizon:
                    return
                if waiting and below(order.next(), new_arms + 1) == 0:
                    waiting = False
                    slot = Slot(mixture=i - 1)
                    slots.append(slot)
                    members.append(slot)
                elif new_arms > 0:
                    new_arms -= 1
                    slot = Slot(shuffle.next())
                    slots.append(slot)
                    members.append(slot)
                else:
                    slot = leaders.choose(slots)
                learn(slot, (yield mixtures.real_arm(slot)))
                leaders.changed(slot, self.index.value(slot, total, size))
                made += 1
            mixtures.add([(slot, slot.pulls - before.get(id(slot), 0)) for slot in members])
