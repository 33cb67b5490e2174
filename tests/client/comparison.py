"""Play a handle or a remote in the same way, for comparisons."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import manyarms as ma


def plain(arms: list[ma.ArmEstimate]) -> list[Any]:
    """Return the estimates of arms, with intervals rounded: their last digit may vary."""
    return [
        (a.arm, a.estimate, a.pulls, a.told, a.retired, *(f"{x:.12g}" for x in a.interval))
        for a in arms
    ]


def play(
    experiment: ma.Live | ma.Remote,
    seed: int,
    *,
    turns: int = 60,
    before: Callable[[int], object] = lambda turn: None,
) -> list[Any]:
    """Ask singly and in batches, tell late and out of order, abandon; return the pulls.

    `before` is called at the beginning of each turn.
    """
    dice = random.Random(seed)
    asked: list[ma.Pull] = []
    waiting: list[ma.Pull] = []
    for turn in range(turns):
        before(turn)
        some = experiment.ask(3) if turn % 4 == 0 else [experiment.ask()]
        asked += some
        waiting += some
        dice.shuffle(waiting)
        while len(waiting) > 5:
            pull = waiting.pop()
            if dice.random() < 0.1:
                experiment.abandon(pull)
            else:
                experiment.tell(pull, float(dice.random() < len(str(pull.arm)) / 8))
    experiment.tell_many([(pull.id, 0.5) for pull in waiting])
    return asked
