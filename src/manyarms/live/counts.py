"""The records that an experiment keeps of pending pulls, arms and the control."""

from __future__ import annotations

from manyarms.core.rng import draw, unit
from manyarms.protocol.keys import control_key, memory_key
from manyarms.protocol.pending import PendingRecord


class PendingPull(PendingRecord):
    """A pending pull with its time."""

    asked: float  # seconds since 1970


class ArmCounts:
    """Counts of an arm's pulls and rewards.

    Attributes
    ----------
    asked, told
        The number of its pulls, and of those whose reward was told.
    observed
        The number of its observed rewards.
    total
        The sum of its told and observed rewards.
    season
        The last season in which the policy chose it; 0 if there is none.
    """

    __slots__ = ("asked", "observed", "season", "told", "total")

    def __init__(
        self, asked: int = 0, told: int = 0, observed: int = 0, total: float = 0.0, season: int = 0
    ) -> None:
        self.asked, self.told, self.observed = asked, told, observed
        self.total, self.season = total, season

    @property
    def known(self) -> int:
        """The number of its told and observed rewards."""
        return self.told + self.observed


def in_random_order(
    arm: int, counts: ArmCounts, reward_range: tuple[float, float] | None, seed: int
) -> list[float]:
    """Return rewards of the same number and sum as the known rewards of an arm.

    If `reward_range` is (0, 1) and the sum is an integer, they are zeros and ones in random order.
    Otherwise each is the mean.
    """
    count, total = counts.known, counts.total
    ones = round(total)
    if reward_range != (0.0, 1.0) or ones != total:
        return [total / count] * count
    key = draw(memory_key(seed), arm)
    order = sorted(range(count), key=lambda k: draw(key, k))
    first = set(order[:ones])
    return [float(k in first) for k in range(count)]


class ControlCounts:
    """Counts of the control's pulls and rewards, and the choice of its pulls.

    A separate random stream decides, before each pull, whether it is the control's. If so, the
    policy is not asked. So the policy's choices are those of an experiment without a control.
    """

    __slots__ = ("_key", "abandoned", "asked", "share", "told", "total", "turns")

    def __init__(self, share: float, seed: int) -> None:
        self.share, self._key = share, control_key(seed)
        self.turns = self.asked = self.told = self.abandoned = 0
        self.total = 0.0

    @property
    def due(self) -> bool:
        """Whether the next pull is the control's."""
        return unit(draw(self._key, self.turns)) < self.share
