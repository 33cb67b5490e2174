"""The first of many that passes."""

from __future__ import annotations

import math
import random

from manyarms.core.memory import SPARSE
from manyarms.core.rng import draw
from manyarms.policies.parts.first_success import (
    add_chance,
    chances,
    clear_chances,
    first_again,
    first_of,
    set_chance,
)


def test_first_of_many() -> None:
    choice = random.Random(5)
    tree = chances(SPARSE, 100)
    clear_chances(tree)
    q: list[float] = []
    for step in range(1500):
        if len(q) < 100 and step % 5 == 0:
            q.append(choice.random() / 10)
            assert add_chance(tree, q[-1]) == len(q)
        else:
            place = choice.randrange(len(q))
            q[place] = choice.choice([0.0, choice.random() / 10, choice.random(), 1.0])
            set_chance(tree, place + 1, q[place])
            if q[place] == 1.0:
                q[place] = 1e-3
                set_chance(tree, place + 1, q[place])
        word = choice.getrandbits(64)
        u = ((word >> 12) + 0.5) / 2**52
        none, expected = 1.0, 0
        for place, chance in enumerate(q, 1):
            none *= 1 - chance
            if none < u:
                expected = place
                break
        assert first_of(tree, word) == expected


def test_a_chance_of_one_passes_always() -> None:
    tree = chances(SPARSE, 3)
    clear_chances(tree)
    for chance in (0.0, 1.0, 1.0):
        add_chance(tree, chance)
    assert {first_of(tree, word) for word in (0, 1, 2**63, 2**64 - 1)} == {2}


def test_trying_again_until_one_passes() -> None:
    tree = chances(SPARSE, 3)
    clear_chances(tree)
    for chance in (1e-30, 0.0, 3e-30):
        add_chance(tree, chance)
    counts = [0, 0, 0, 0]
    for k in range(4000):
        counts[first_again(tree, draw(3, k))] += 1
    assert counts[0] == counts[2] == 0
    assert abs(counts[1] - 1000) < 6 * math.sqrt(750)  # false alarms: 2e-9
    for place in (1, 3):
        set_chance(tree, place, 0.0)
    assert {first_again(tree, draw(4, k)) for k in range(60)} == {1, 2, 3}  # else 1e-10
