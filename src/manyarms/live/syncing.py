"""A list of all arms that there are to be: what must come, come back and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.core.tabular import plain
from manyarms.errors import ParameterError
from manyarms.inference.estimates import count
from manyarms.live.arms import ArmNames
from manyarms.live.commands import Change
from manyarms.live.game import LiveGame
from manyarms.protocol.policy import arrive, retire

_SHOWN = 3  # names of a line


@dataclass(frozen=True)
class SyncedArms:
    """What `sync_arms` has done.

    Attributes
    ----------
    added, restored, retired
        The names of the arms that came, came back and went.
    n_arms
        The number of arms now.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Prospector().live(arms=["red", "blue"])
    >>> print(live.sync_arms(["blue", "green"]))
    2 arms now
    1 added: 'green'
    1 retired: 'red'
    >>> print(live.sync_arms(["blue", "green"]))
    2 arms now: nothing has changed
    """

    added: Sequence[str | int]
    restored: Sequence[str | int]
    retired: Sequence[str | int]
    n_arms: int

    def __bool__(self) -> bool:
        """Whether anything has changed."""
        return bool(self.added or self.restored or self.retired)

    def __str__(self) -> str:
        now = f"{count(self.n_arms, 'arm')} now"
        if not self:
            return f"{now}: nothing has changed"
        done = {"added": self.added, "restored": self.restored, "retired": self.retired}
        return "\n".join([now, *(_line(what, names) for what, names in done.items() if names)])


def _line(what: str, names: Sequence[str | int]) -> str:
    shown = ", ".join(plain(repr(name), at_most=40) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {what}: {shown}{more}"


def sync_arms(game: LiveGame, arms: Any) -> Change[SyncedArms]:
    """Return a change that lets exactly these arms be in play, and returns what it did.

    New arms come first and missing ones go last, so that the game is never without arms. If a
    crash keeps only the first events, the same call does the rest.
    """
    names = game.arms
    if not isinstance(names, ArmNames):
        raise ParameterError(
            "`sync_arms` needs arms with names, and these are called by number. Start with "
            "live(arms=[...]), or use add_arms, retire and restore."
        )
    wanted = names.listed(arms)
    if not wanted:
        raise ParameterError("`arms` must hold at least one name, got none.")
    numbers = {name: names.known(name) for name in wanted}
    new = [name for name, number in numbers.items() if number is None]
    there = {number for number in numbers.values() if number is not None}
    back, gone = changes(game, there)
    check_changes(game, len(new), back, gone)

    def change() -> SyncedArms:
        if new:
            game.arrive(new)
        come_and_go(game, back, gone)
        called = names.name
        return SyncedArms(new, [*map(called, back)], [*map(called, gone)], game.n_arms)

    return change


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


def come_and_go(game: LiveGame, back: Sequence[int], gone: Sequence[int]) -> None:
    """Let arms come back, and let others go."""
    for arm in back:
        game.restore(arm)
    for arm in gone:
        game.retire(arm)
