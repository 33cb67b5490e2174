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
from manyarms.inference.tried_arms import TriedArms

SETTLED = 0.9  # the share of the last pulls from which a policy has settled on an arm
FORECAST = 10  # the forecast reaches at most this many times the pulls so far
_ENOUGH = 200  # pulls before their shares are used
_MOST_ARMS = 10_000  # tried arms whose future is computed in a moment
_STEPS = 6  # of bisection


def last_pulls(tried: TriedArms) -> tuple[int, NDArray[np.float64]]:
    """Return how many of the last pulls are known, and the share of them that each arm got.

    An experiment that was loaded from a file knows the pulls since then. Until these are enough,
    all pulls are used.
    """
    facts = tried.facts
    known = len(facts.recent)
    if known < min(RECENT, facts.pulls):
        return facts.pulls, tried.asked / max(1, facts.pulls)
    shares = np.zeros(tried.size)
    for arm, pulls in Counter(facts.recent).items():
        shares[tried.place(arm)] = pulls / known
    return known, shares


def settled_share(tried: TriedArms, place: int) -> float:
    """Return the share of the last pulls of an arm on which the policy has settled; else 0."""
    of, shares = last_pulls(tried)
    return float(shares[place]) if of >= _ENOUGH and shares[place] >= SETTLED else 0.0


def can_forecast(tried: TriedArms) -> bool:
    """Whether there are enough pulls for a forecast."""
    return last_pulls(tried)[0] >= _ENOUGH


def pulls_missing(tried: TriedArms, stops: Callable[[TriedArms], bool]) -> float | None:
    """Return how many more pulls are needed until `stops` returns True.

    Infinity: more than the forecast reaches. None: there is no forecast, because there are too few
    pulls or too many arms.
    """
    _, shares = last_pulls(tried)
    if not can_forecast(tried) or tried.size > _MOST_ARMS:
        return None
    low, high = 0.0, float(FORECAST * tried.facts.pulls)
    if not stops(_after(tried, shares, high)):
        return math.inf
    for _ in range(_STEPS):  # bisection in the logarithm
        middle = math.sqrt(max(low, 1.0) * high)
        if stops(_after(tried, shares, middle)):
            high = middle
        else:
            low = middle
    return math.ceil(high)


def _after(tried: TriedArms, shares: NDArray[np.float64], pulls: float) -> TriedArms:
    """Return the tried arms after so many more pulls."""
    later = copy.copy(tried)
    more = np.where(tried.told > 0, shares * pulls, 0.0)
    later.told = tried.told + more  # not rounded
    later.total = tried.total + more * tried.total / np.maximum(tried.told, 1)
    return later


def fresh_rate(tried: TriedArms) -> float:
    """Return how many of the last pulls were the first of their arm, as a share of them."""
    facts = tried.facts
    if len(facts.recent) < min(RECENT, facts.pulls):
        return tried.size / max(1, facts.pulls)
    fresh = sum(
        int(tried.asked[tried.place(arm)]) == pulls for arm, pulls in Counter(facts.recent).items()
    )
    return fresh / max(1, len(facts.recent))
