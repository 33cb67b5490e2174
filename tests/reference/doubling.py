"""Doubling: a policy restarted with horizon 1, 2, 4, ..."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from tests.reference.moss import Play, Player
from tests.reference.words import PHASES, draw


@dataclass(frozen=True)
class Doubling:
    """Phase i plays 2^i pulls, with its own key."""

    player: Player

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        for i in count():
            yield from self.player.play(n, 2**i, draw(draw(key, PHASES), i))
