r"""Find arms whose pulls are abandoned more or less often than those of the other arms.

A verdict is valid only if the loss of a reward does not depend on the reward. This cannot be
observed, but one sign of a problem can: the share of abandoned pulls differs between arms. If every
pull of every arm is abandoned with probability p, then for each arm

.. math::
    E = \frac{\int q^{A} (1 - q)^{N - A} \, d\pi(q) \int r^{B} (1 - r)^{R - B} \, d\pi(r)}
             {\max_p \; p^{A + B} (1 - p)^{N + R - A - B}}

is at most a martingale that begins at 1. Here A of the arm's N pulls were abandoned, and B of the R
pulls of other arms. Both integrals are over Jeffreys' Beta(1/2, 1/2). By Ville's inequality the
probability that E ever exceeds 1/e is at most e, whatever the policy does. The error is shared
among the arms like that of their intervals (`spent_error`). A pending pull can still be abandoned
or get a reward; the case that makes E smallest is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.inference.confidence_sequences import log_gamma, spent_error
from manyarms.inference.facts import CONTROL
from manyarms.inference.tried_arms import TriedArms

ERROR = 0.01  # the probability that there is ever a false alarm
_MOST = 3  # arms that are reported
_TINY = 1e-300

Numbers = NDArray[Any]


class Loss(NamedTuple):
    """An arm whose share of abandoned pulls differs from that of all other arms."""

    arm: int
    abandoned: int
    pulls: int
    others: float  # the share of the other arms' pulls


class _Counts(NamedTuple):
    arm: Numbers
    pulls: Numbers
    gone: Numbers  # abandoned
    pending: Numbers


def uneven_losses(tried: TriedArms, pending: Mapping[int, int]) -> list[Loss]:
    """Return the arms whose share of abandoned pulls differs by more than chance, clearest first.

    Arms that were found are left out of the comparisons that follow. `pending` has the number of
    pending pulls of each arm.
    """
    counts, found = _counts(tried, pending), list[Loss]()
    while counts.gone.any() and len(found) < _MOST:
        at = _clearest(counts)
        if at is None:
            break
        arm, pulls, gone = (int(column[at]) for column in counts[:3])
        others = float(counts.gone.sum() - gone) / float(counts.pulls.sum() - pulls)
        found.append(Loss(arm, gone, pulls, others))
        for column in counts[1:]:
            column[at] = 0
    return found


def _clearest(counts: _Counts) -> int | None:
    """Return the place of the arm that differs most from the others; None if none does."""
    least, most = counts.gone, counts.gone + counts.pending
    others = counts.pulls.sum() - counts.pulls
    fewest, largest = least.sum() - least, most.sum() - most  # of the others
    here = _candidates(counts.pulls, least, most, fewest, largest, others)
    least, most, fewest, largest, pulls, pulls_there = (
        column[here].astype(np.float64)
        for column in (least, most, fewest, largest, counts.pulls, others)
    )
    more, less = least * pulls_there > largest * pulls, most * pulls_there < fewest * pulls
    lost, lost_there = np.where(more, least, most), np.where(more, largest, fewest)
    needed = -np.log(spent_error(ERROR, here + 1))
    pooled = _most_likely(lost + lost_there, pulls + pulls_there)
    bound = _most_likely(lost, pulls) + _most_likely(lost_there, pulls_there) - pooled
    # an integral is at most the maximum of its integrand
    able = np.flatnonzero((more | less) & (bound >= needed))
    mixed = _mixed(lost[able], pulls[able]) + _mixed(lost_there[able], pulls_there[able])
    beyond = mixed - pooled[able] - needed[able]
    if not (beyond >= 0.0).any():
        return None
    return int(here[able[np.argmax(beyond)]])


def _candidates(
    pulls: Numbers,
    least: Numbers,
    most: Numbers,
    fewest: Numbers,
    largest: Numbers,
    others: Numbers,
) -> Numbers:
    """Return a superset of the places of arms that can raise an alarm.

    With the share r of the others, log E is at most A log(1/r) + (N - A) log(1/(1 - r)).
    No logarithm is computed for each arm.
    """
    there = (pulls > 0) & (others > 0)
    if not there.any():
        return np.flatnonzero(there)
    lowest, highest = (fewest[there] / others[there]).min(), (largest[there] / others[there]).max()
    of_lost, of_told = -math.log(max(lowest, _TINY)), -math.log(max(1.0 - highest, _TINY))
    lost = most if of_lost > of_told else least
    needed = -math.log(float(spent_error(ERROR, 1)))
    return np.flatnonzero(there & (of_lost * lost + of_told * (pulls - lost) >= needed))


def _counts(tried: TriedArms, pending: Mapping[int, int]) -> _Counts:
    """Return the pulls of each arm by outcome; the control, if there is one, comes first."""
    arm, pulls = tried.arm.copy(), tried.asked.copy()
    waiting = np.zeros(tried.size, np.int64)
    known = {number: count for number, count in pending.items() if number != CONTROL}
    waiting[tried.places(known)] = np.fromiter(known.values(), np.int64, len(known))
    gone = tried.missing - waiting
    control = tried.facts.control
    if control is not None:
        late = pending.get(CONTROL, 0)
        first = (CONTROL, control.asked, control.missing - late, late)
        columns = zip(first, (arm, pulls, gone, waiting), strict=True)
        arm, pulls, gone, waiting = (np.concatenate([[one], column]) for one, column in columns)
    return _Counts(arm, pulls, gone, waiting)


def _most_likely(lost: Numbers, pulls: Numbers) -> Numbers:
    """Return the largest log-likelihood of any share."""
    return _x_log_x(lost) + _x_log_x(pulls - lost) - _x_log_x(pulls)


def _x_log_x(x: Numbers) -> Numbers:
    return np.asarray(x * np.log(np.maximum(x, 1.0)))  # 0 at 0, for integers


def _mixed(lost: Numbers, pulls: Numbers) -> Numbers:
    """Return the logarithm of the integral over Jeffreys' distribution."""
    return np.asarray(
        log_gamma(lost + 0.5)
        + log_gamma(pulls - lost + 0.5)
        - log_gamma(pulls + 1.0)
        - math.log(math.pi)
    )
