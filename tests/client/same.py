"""Games to be compared: how they are played, and what is known of their arms."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import manyarms as ma


def plain(arms: list[ma.ArmEstimate]) -> list[Any]:
    """Return what is known of arms; limits but for the last digit, which follows the processor."""
    return [
        (a.arm, a.estimate, a.pulls, a.told, a.retired, *(f"{x:.12g}" for x in a.interval))
        for a in arms
    ]


def play(
    game: ma.Live | ma.Remote,
    seed: int,
    *,
    turns: int = 60,
    before: Callable[[int], object] = lambda turn: None,
) -> list[Any]:
    """Ask alone and in batches, tell late and in another order, abandon; return what was asked.

    `before` is called at the beginning of each turn.
    """
    dice = random.Random(seed)
    asked: list[ma.Pull] = []
    waiting: list[ma.Pull] = []
    for turn in range(turns):
        before(turn)
        some = game.ask(3) if turn % 4 == 0 else [game.ask()]
        asked += some
        waiting += some
        dice.shuffle(waiting)
        while len(waiting) > 5:
            pull = waiting.pop()
            if dice.random() < 0.1:
                game.abandon(pull)
            else:
                game.tell(pull, float(dice.random() < len(str(pull.arm)) / 8))
    game.tell_many([(pull.id, 0.5) for pull in waiting])
    return asked
