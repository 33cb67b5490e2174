"""The records that a ledger keeps of pending pulls, of arms and of the control."""

from __future__ import annotations

from typing import NamedTuple


class OpenPull(NamedTuple):
    """A pending pull."""

    arm: int
    asked: float  # seconds since 1970
    ends: float  # when its window ends; infinity without a window


class ArmCounts:
    """Counts of an arm's pulls and rewards.

    Attributes
    ----------
    place
        Its place in the order in which arms were first pulled or observed.
    asked, told
        The number of its pulls, and of those whose reward was told.
    observed
        The number of its observed rewards.
    total, squares
        The sum of its told and observed rewards, and the sum of their squares.
    """

    __slots__ = ("asked", "observed", "place", "squares", "told", "total")

    def __init__(
        self,
        place: int,
        asked: int = 0,
        told: int = 0,
        observed: int = 0,
        total: float = 0.0,
        squares: float = 0.0,
    ) -> None:
        self.place = place
        self.asked, self.told, self.observed = asked, told, observed
        self.total, self.squares = total, squares

    @property
    def known(self) -> int:
        """The number of its told and observed rewards."""
        return self.told + self.observed


class ControlCounts:
    """Counts of the control's pulls and rewards."""

    __slots__ = ("abandoned", "asked", "told", "total")

    def __init__(self) -> None:
        self.asked = self.told = self.abandoned = 0
        self.total = 0.0
