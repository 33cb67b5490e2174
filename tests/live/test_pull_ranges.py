"""Abandoned pulls are kept as runs of numbers."""

from __future__ import annotations

import random

import pytest

import manyarms as ma
from manyarms.live.pull_ranges import PullRanges
from tests.live.games import new


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.97, 1.0])
def test_it_is_a_set_of_numbers(share: float) -> None:
    chance = random.Random(1)
    wanted = [k for k in range(400) if chance.random() < share]
    chance.shuffle(wanted)
    ranges, numbers = PullRanges(wanted[:50]), set(wanted[:50])
    for number in wanted[50:]:
        assert number not in ranges
        ranges.add(number)
        numbers.add(number)
        assert number in ranges
    assert ranges.numbers().tolist() == sorted(numbers)
    assert len(ranges) == len(numbers)
    assert [k for k in range(-1, 401) if k in ranges] == sorted(numbers)
    again = PullRanges(ranges.numbers())
    assert (again._begins, again._ends) == (ranges._begins, ranges._ends)


def test_abandoned_pulls_take_little_memory() -> None:
    live = new(horizon=100_000)
    for _ in range(200):
        batch = live.ask(100)
        live.tell(batch[7], 1.0)
        for pull in batch[:7] + batch[8:]:
            live.abandon(pull)
    lost = live._game.abandoned
    assert len(lost) == 200 * 99 == live.progress().abandoned
    assert len(lost._begins) == 201
    with pytest.raises(ma.TurnError, match="pull 105: it was abandoned"):
        live.tell(105, 1.0)
    with pytest.raises(ma.TurnError, match="pull 107: its reward was told already"):
        live.tell(107, 1.0)
