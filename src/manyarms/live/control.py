"""What there is today, pulled now and then to compare with: no business of the policy's.

Before each pull that leaves the game, one word of a stream of its own decides whether the pull is
the control's. If so, the policy is not asked. So its state and its arms are those of a game without
these pulls. The control's pulls have numbers of their own, beyond those of the policy.
"""

from __future__ import annotations

from typing import Any

from manyarms.core.checks import check_number, shown
from manyarms.core.rng import draw, unit
from manyarms.errors import ParameterError
from manyarms.inference.facts import CONTROL
from manyarms.live.arms import check_name
from manyarms.protocol.keys import control_key

OF_CONTROL = 1 << 41  # the number of its first pull: a policy makes no more than half as many
ARM = CONTROL  # what events call the control
SHARE = 0.05
_MOST_SHARE = 0.5


class Control:
    """The control of a game: which pulls it gets, and what these have earned.

    Attributes
    ----------
    name, share
        What the user calls it, and the share of pulls that it gets.
    turns
        How many pulls have left the game, of the policy or of the control.
    asked, told, total
        Its pulls, how many of them have a reward, and the sum of these.
    flight, abandoned
        The numbers of its pulls without a reward.
    """

    __slots__ = (
        *("_key", "abandoned", "asked", "flight"),
        *("name", "share", "told", "total", "turns"),
    )

    def __init__(self, name: str | int, share: float, seed: int) -> None:
        self.name, self.share = name, share
        self._key = control_key(seed)
        self.turns = self.asked = self.told = 0
        self.total = 0.0
        self.flight: dict[int, None] = {}
        self.abandoned: set[int] = set()

    @property
    def due(self) -> bool:
        """Whether the next pull is the control's."""
        return unit(draw(self._key, self.turns)) < self.share

    def ask(self) -> int:
        """Return the number of its next pull."""
        number = OF_CONTROL + self.asked
        self.asked += 1
        self.turns += 1
        self.flight[number] = None
        return number

    def tell(self, number: int, reward: float) -> None:
        """Credit the reward of a pull in flight."""
        del self.flight[number]
        self.told += 1
        self.total += reward

    def abandon(self, number: int) -> None:
        """Go on without the reward of a pull in flight."""
        del self.flight[number]
        self.abandoned.add(number)

    def next_season(self, seed: int) -> Control:
        """Return the control of a game that remembers this one."""
        new = Control(self.name, self.share, seed)
        new.told, new.total = self.told, self.total
        return new


def check_control(control: Any, share: Any) -> tuple[str | int, float] | None:
    """Return a control's name and its share of the pulls, or raise; None if there is to be none."""
    if control is None:
        if share != SHARE:
            raise ParameterError(
                f"`share` is the control's share of the pulls, and there is no control, got "
                f"{shown(share)}. Pass `control`, too."
            )
        return None
    name = check_name(control, "control", "a string or an integer")
    return name, check_number("share", share, above=0.0, at_most=_MOST_SHARE)
