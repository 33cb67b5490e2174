"""What an experiment keeps of a pending pull, of an arm and of the control."""

from __future__ import annotations

from manyarms.core.rng import draw, unit
from manyarms.protocol.keys import control_key, memory_key
from manyarms.protocol.pending import PendingRecord


class PendingPull(PendingRecord):
    """A pull without a reward, and when it was asked for (seconds since 1970)."""

    asked: float


class ArmCounts:
    """What is known of an arm.

    Attributes
    ----------
    asked, told
        Its pulls, and how many of them have a reward.
    observed
        How many rewards were observed.
    total
        The sum of all these rewards.
    season
        The last season in which the policy chose it; 0 if none did.
    """

    __slots__ = ("asked", "observed", "season", "told", "total")

    def __init__(
        self, asked: int = 0, told: int = 0, observed: int = 0, total: float = 0.0, season: int = 0
    ) -> None:
        self.asked, self.told, self.observed = asked, told, observed
        self.total, self.season = total, season

    @property
    def known(self) -> int:
        """The number of its known rewards."""
        return self.told + self.observed


def in_random_order(
    arm: int, counts: ArmCounts, reward_range: tuple[float, float] | None, seed: int
) -> list[float]:
    """Return as many rewards of an arm as are known, with the same sum; the order is not kept.

    They are 0 and 1 in a random order if that is possible, else all are equal.
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
    """The control: which pulls it gets, and what they have earned.

    Before each pull that is handed out, one word of a random stream of its own decides whether the
    pull is the control's. If so, the policy is not asked. So its choices are those of an experiment
    without a control.
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
