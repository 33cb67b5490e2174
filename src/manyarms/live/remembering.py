"""The rewards that a new season begins with."""

from __future__ import annotations

from manyarms.core.rng import draw
from manyarms.live.settings import Settings
from manyarms.live.tally import ArmTally
from manyarms.protocol.keys import memory_key


def remembered(settings: Settings, tallies: dict[int, ArmTally]) -> dict[int, list[float]]:
    """Return the rewards of each arm that has some."""
    return {
        arm: _in_random_order(settings, arm, tally)
        for arm, tally in tallies.items()
        if tally.told + tally.observed > 0
    }


def _in_random_order(settings: Settings, arm: int, tally: ArmTally) -> list[float]:
    """Return as many rewards of an arm as are known, with the same sum; only that is kept of them.

    They are 0 and 1 in a random order if that can be; else all are equal.
    """
    count, total = tally.told + tally.observed, tally.total
    ones = round(total)
    if settings.reward_range != (0.0, 1.0) or ones != total:
        return [total / count] * count
    key = draw(memory_key(settings.seed), arm)
    order = sorted(range(count), key=lambda k: draw(key, k))
    first = set(order[:ones])
    return [float(k in first) for k in range(count)]
