"""What more pulls would show: whether a policy keeps to one arm, and how many pulls are missing.

The last pulls are taken to say how the next ones go: each arm gets its share of them, and its mean
stays what it is so far. The verdict of such a future is computed as that of today.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from manyarms.inference.facts import RECENT
from manyarms.inference.tallies import Tallies

SETTLED = 0.9  # of the last pulls: then a policy keeps to one arm
_ENOUGH = 200  # pulls, before anything is said of their shares
_FAR = 10  # times as many pulls as there were; a longer forecast would be a guess
_MOST_ARMS = 10_000  # tried, whose future is computed in a moment
_STEPS = 6  # of bisection


def last_pulls(tallies: Tallies) -> tuple[int, NDArray[np.float64]]:
    """Return how many of the last pulls are known, and the share of them that each arm got.

    Where too few are known, because the experiment was loaded from a file, all pulls count.
    """
    facts = tallies.facts
    known = len(facts.recent)
    if known < min(RECENT, facts.pulls):
        return facts.pulls, tallies.asked / max(1, facts.pulls)
    shares = np.zeros(tallies.size)
    for arm, pulls in Counter(facts.recent).items():
        shares[tallies.place(arm)] = pulls / known
    return known, shares


def settled_share(tallies: Tallies, place: int) -> float:
    """Return the share of the last pulls that an arm got, if the policy keeps to it; else 0."""
    of, shares = last_pulls(tallies)
    return float(shares[place]) if of >= _ENOUGH and shares[place] >= SETTLED else 0.0


def pulls_missing(tallies: Tallies, stops: Callable[[Tallies], bool]) -> int | None:
    """Return how many more pulls it takes until `stops` says so; None if that cannot be said."""
    of, shares = last_pulls(tallies)
    if of < _ENOUGH or tallies.size > _MOST_ARMS:
        return None
    low, high = 0.0, float(_FAR * tallies.facts.pulls)
    if not stops(_after(tallies, shares, high)):
        return None
    for _ in range(_STEPS):  # in steps that are the smaller the nearer it is
        middle = math.sqrt(max(low, 1.0) * high)
        if stops(_after(tallies, shares, middle)):
            high = middle
        else:
            low = middle
    return math.ceil(high)


def _after(tallies: Tallies, shares: NDArray[np.float64], pulls: float) -> Tallies:
    """Return what will be known after so many more pulls."""
    later = copy.copy(tallies)
    more = np.where(tallies.told > 0, shares * pulls, 0.0)
    later.told = tallies.told + more  # parts of pulls, too
    later.total = tallies.total + more * tallies.total / np.maximum(tallies.told, 1)
    return later


def fresh_rate(tallies: Tallies) -> float:
    """Return how many of the last pulls were the first of their arm, as a share of them."""
    facts = tallies.facts
    if len(facts.recent) < min(RECENT, facts.pulls):
        return tallies.size / max(1, facts.pulls)
    fresh = sum(
        int(tallies.asked[tallies.place(arm)]) == pulls
        for arm, pulls in Counter(facts.recent).items()
    )
    return fresh / max(1, len(facts.recent))
