"""empMOSS++: docs/learn/emp_moss_plus_plus.py, and how its sets are ranked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.reference.leaders import Leaders
from tests.reference.moss import PAPER, Dealt, Index, Member, Play, Slot, learned, numbered, options
from tests.reference.moss_plus_plus import MixtureWords
from tests.reference.words import RANKING, SplitMix64, below, stream


def best_of(leaders: Leaders[Slot], slots: list[Slot], count: int) -> list[Slot]:
    """Return `count` slots with the largest values, in order."""
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


@dataclass
class RankingWords(MixtureWords):
    """Words that also choose the arms with the largest means."""

    rank: str = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ranking = stream(self.key, RANKING)

    def best(self, n: int, k: int, means: dict[Member, float]) -> list[Member]:
        arms = {Slot(pulls=1, total=means[arm]): arm for arm in self.opened if arm in means}
        untouched = self.shuffle.left if self.rank == "all" else 0
        chosen, fresh = choose_arms(list(arms), k, untouched, self.ranking)
        return [arms[slot] for slot in chosen] + [Dealt(self.shuffle) for _ in range(fresh)]


@dataclass(frozen=True)
class EmpMossPlusPlus:
    """One slot for each arm and mixture-arm, for all iterations."""

    index: Index = PAPER
    beta: str = "0.5"
    rank: str = "all"

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        assert horizon is not None
        play, how = learned("emp_moss_plus_plus").emp_moss_plus_plus, options(self.index)
        luck = RankingWords(key, rank=self.rank)
        return numbered(play(n, horizon, float(self.beta), luck, **how))
