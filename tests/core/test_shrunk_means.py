"""Shrunk means, compared bit by bit with a scan of all of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from manyarms.core.memory import BOUNDED, SPARSE
from manyarms.core.rng import restart, stream
from manyarms.core.shrunk_means import (
    ShrunkMeans,
    add_reward,
    clear_means,
    highest_mean,
    leading_slot,
    shrink_to,
    shrunk_mean,
    shrunk_means,
    strike_out,
)

Choice = Callable[[random.Random], float]
REWARDS: dict[str, Choice] = {
    "rare": lambda chance: float(chance.random() < 0.05),
    "coins": lambda chance: float(chance.random() < 0.5),
    "zeros": lambda chance: 0.0,
    "halves": lambda chance: chance.choice((-1.0, -0.5, 0.0, 0.5)),
    "floats": lambda chance: chance.gauss(0.0, 1e3),
}


def all_values(means: ShrunkMeans, slots: int, a: float) -> list[float]:
    arms = [means.arm[slot] for slot in range(slots)]
    return [(arm.total + a) / (arm.pulls + 1) if arm.pulls else -math.inf for arm in arms]


@pytest.mark.parametrize("kind", REWARDS)
@pytest.mark.parametrize(("slots", "rounds"), [(1, 30), (2, 60), (5, 200), (64, 500), (333, 700)])
def test_the_highest_mean_is_found(kind: str, slots: int, rounds: int) -> None:
    chance = random.Random(slots)
    for memory in (BOUNDED, SPARSE):
        means, ties = shrunk_means(memory, slots), stream(memory)
        for seed in range(2):
            clear_means(means)
            assert highest_mean(means) == -math.inf
            restart(ties, seed)
            assert leading_slot(means, ties) == -1
            a = 0.5
            shrink_to(means, a)
            for _ in range(rounds):
                slot = min(int(chance.expovariate(5 / slots)), slots - 1)
                for _ in range(chance.choice((1, 1, 1, 8))):
                    add_reward(means, slot, REWARDS[kind](chance))
                if chance.random() < 0.7:
                    a += chance.choice((-1.0, 1.0)) * 2.0 ** chance.randrange(-60, 3)
                    shrink_to(means, a)
                if chance.random() < 0.01:
                    strike_out(means, chance.randrange(slots))
                values = all_values(means, slots, a)
                assert highest_mean(means) == max(values)
                if chance.random() < 0.2 and max(values) > -math.inf:
                    assert values[leading_slot(means, ties)] == max(values)


def test_leaders_are_chosen_uniformly_in_order_of_slots() -> None:
    means, ties, words = shrunk_means(BOUNDED, 40), stream(BOUNDED), stream(BOUNDED)
    clear_means(means)
    for slot in range(40):
        add_reward(means, slot, float(slot % 3 == 0))
    shrink_to(means, 0.25)
    restart(ties, 7)
    restart(words, 7)
    tied = [slot for slot in range(40) if slot % 3 == 0]
    seen = [leading_slot(means, ties) for _ in range(2000)]
    assert set(seen) == set(tied)
    assert max(map(seen.count, tied)) < 2 * 2000 / len(tied)
    add_reward(means, 5, 9.0)
    assert {leading_slot(means, ties) for _ in range(5)} == {5}
    assert shrunk_mean(means, 5) == (9.0 + 0.25) / 3
    strike_out(means, 5)
    add_reward(means, 5, 1.0)
    assert leading_slot(means, ties) in tied


def test_few_comparisons_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of all 2000 arms would take 2,000,000 steps."""
    from manyarms.core import shrunk_means as part

    played = 0
    play = part._play

    def counted(*args: object) -> None:
        nonlocal played
        played += 1
        play(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(part, "_play", counted)
    chance, means, firsts = random.Random(1), shrunk_means(BOUNDED, 2000), 0.0
    clear_means(means)
    for slot in range(2000):
        reward = float(chance.random() < 0.3)
        firsts += reward
        shrink_to(means, firsts / (slot + 1))
        add_reward(means, slot, reward)
        while reward == 1.0:
            reward = float(chance.random() < 0.3)
            add_reward(means, slot, reward)
        highest_mean(means)
    assert played < 20 * 2000
