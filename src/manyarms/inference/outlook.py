"""Estimate how many more pulls a verdict needs, and whether a policy has settled on one arm.

The forecast assumes that the next pulls are like the last ones: each arm keeps its share of them,
its observed mean stays the same, and as many pulls as so far end with a reward. The verdict is then
computed as usual.
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
_ENOUGH = 200  # pulls that a forecast needs
_MOST_ARMS = 10_000  # with more tried arms, a forecast would take too long
_STEPS = 6  # of bisection


def last_pulls(tried: TriedArms) -> tuple[int, NDArray[np.float64]]:
    """Return how many of the last pulls are known, and each arm's share of them.

    If fewer than `RECENT` are known, all pulls are used instead.
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
    """Return an arm's share of the last pulls if the policy has settled on it; 0 otherwise."""
    of, shares = last_pulls(tried)
    return float(shares[place]) if of >= _ENOUGH and shares[place] >= SETTLED else 0.0


def can_forecast(tried: TriedArms) -> bool:
    """Whether there are enough pulls for a forecast."""
    return last_pulls(tried)[0] >= _ENOUGH


def pulls_missing(
    tried: TriedArms, stops: Callable[[TriedArms], bool], shares: NDArray[np.float64] | None = None
) -> float | None:
    """Return how many more pulls are needed until `stops` returns True.

    `shares` are the arms' shares of these pulls (default: those of the last pulls). Infinity means
    more than the forecast reaches. None means that there are too few pulls or too many arms for a
    forecast.
    """
    if not can_forecast(tried) or tried.size > _MOST_ARMS:
        return None
    shares = (last_pulls(tried)[1] if shares is None else shares) * _rewarded(tried)
    low, high = 0.0, float(FORECAST * tried.facts.pulls)
    if not stops(_after(tried, shares, high)):
        return math.inf
    for _ in range(_STEPS):  # bisection on a logarithmic scale
        middle = math.sqrt(max(low, 1.0) * high)
        if stops(_after(tried, shares, middle)):
            high = middle
        else:
            low = middle
    return math.ceil(high)


def equal_shares(tried: TriedArms) -> NDArray[np.float64]:
    """Return each arm's share of the pulls if all available arms are pulled equally often."""
    return np.where(tried.retired, 0.0, 1.0 / max(1, tried.facts.n_arms))


def _rewarded(tried: TriedArms) -> float:
    """Return the share of the pulls that ended with a reward, of all that have ended."""
    ended = tried.facts.pulls - tried.facts.pending
    return tried.facts.told / ended if ended > 0 else 1.0


def _after(tried: TriedArms, shares: NDArray[np.float64], pulls: float) -> TriedArms:
    """Return the arms as they are expected to be after so many more pulls.

    `shares` are the expected rewards of each arm for a pull.
    """
    later = copy.copy(tried)
    more = np.where(tried.told > 0, shares * pulls, 0.0)
    later.told = tried.told + more  # not rounded
    later.total = tried.total + more * tried.total / np.maximum(tried.told, 1)
    return later


def fresh_rate(tried: TriedArms) -> float:
    """Return the share of the last pulls that were the first of their arm."""
    facts = tried.facts
    if len(facts.recent) < min(RECENT, facts.pulls):
        return tried.size / max(1, facts.pulls)
    fresh = sum(
        int(tried.asked[tried.place(arm)]) == pulls for arm, pulls in Counter(facts.recent).items()
    )
    return fresh / max(1, len(facts.recent))
