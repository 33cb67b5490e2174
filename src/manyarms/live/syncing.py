"""Which arms of a service's game must come back and go, given the list of all that are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from manyarms.live.game import LiveGame
from manyarms.protocol.policy import arrive, retire


def changes(game: LiveGame, wanted: set[int]) -> tuple[list[int], list[int]]:
    """Return which arms must come back, and which must go, if only those wanted are to stay."""
    every = range(game.arms.count)
    back = sorted(wanted & game.retired)
    return back, [arm for arm in every if arm not in wanted and arm not in game.retired]


def check_changes(game: LiveGame, new: int, back: Sequence[int], gone: Sequence[int]) -> None:
    """Raise unless the policy lets arms come and go, as far as that is needed."""
    if new or back:
        game.check_can(arrive)
    if gone:
        game.check_can(retire)
