"""Estimate how many more pulls a verdict needs, and whether a policy has settled on one arm.

The forecast assumes that the next pulls are like the last ones: each arm keeps its share of them,
and its mean stays what it is so far. The verdict of this future is computed like that of today.
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

SETTLED = 0.9  # the share of the last pulls from which a policy has settled on an arm
FORECAST = 10  # the forecast reaches at most this many times the pulls so far
_ENOUGH = 200  # pulls before their shares are used
_MOST_ARMS = 10_000  # tried arms whose future is computed in a moment
_STEPS = 6  # of bisection


def last_pulls(tallies: Tallies) -> tuple[int, NDArray[np.float64]]:
    """Return how many of the last pulls are known, and the share of them that each arm got.

    An experiment that was loaded from a file knows the pulls since then. Until these are enough,
    all pulls are used.
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
    """Return the share of the last pulls of an arm on which the policy has settled; else 0."""
    of, shares = last_pulls(tallies)
    return float(shares[place]) if of >= _ENOUGH and shares[place] >= SETTLED else 0.0


def can_forecast(tallies: Tallies) -> bool:
    """Whether there are enough pulls for a forecast."""
    return last_pulls(tallies)[0] >= _ENOUGH


def pulls_missing(tallies: Tallies, stops: Callable[[Tallies], bool]) -> float | None:
    """Return how many more pulls are needed until `stops` returns True.

    Infinity: more than the forecast reaches. None: there is no forecast, because there are too few
    pulls or too many arms.
    """
    _, shares = last_pulls(tallies)
    if not can_forecast(tallies) or tallies.size > _MOST_ARMS:
        return None
    low, high = 0.0, float(FORECAST * tallies.facts.pulls)
    if not stops(_after(tallies, shares, high)):
        return math.inf
    for _ in range(_STEPS):  # bisection in the logarithm
        middle = math.sqrt(max(low, 1.0) * high)
        if stops(_after(tallies, shares, middle)):
            high = middle
        else:
            low = middle
    return math.ceil(high)


def _after(tallies: Tallies, shares: NDArray[np.float64], pulls: float) -> Tallies:
    """Return the tallies after so many more pulls."""
    later = copy.copy(tallies)
    more = np.where(tallies.told > 0, shares * pulls, 0.0)
    later.told = tallies.told + more  # not rounded
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
