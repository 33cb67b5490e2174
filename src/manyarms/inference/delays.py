r"""Test within each arm whether quick rewards differ from slow ones.

The mean of all quick rewards may differ from that of all slow ones although no arm's reward depends
on its delay: delays and the choice of arms both change with time. Therefore rewards are compared
within an arm, and the control counts as an arm.

For each end of a bin of `DELAYS`, an arm's rewards are split into quick and slow ones. If rewards
are 0 or 1, and each has the same mean p whatever its delay, then

.. math::
    E = \frac{\int q^{A} (1 - q)^{N - A} \, d\pi(q) \int r^{B} (1 - r)^{M - B} \, d\pi(r)}
             {\max_p \; p^{A + B} (1 - p)^{N + M - A - B}}

is at most a martingale that begins at 1. Here A is the sum of the N quick rewards, B that of the M
slow ones, and both integrals are over Jeffreys' Beta(1/2, 1/2). The same holds for the mean of E
over all splits. So by Ville's inequality the probability that it ever exceeds 1/e is at most e,
whatever the policy does and whenever delays change. The arms share the error like that of their
intervals (`spent_error`), in the order in which their comparisons began. For other rewards a normal
distribution with the observed variance takes the place of this one; then the probability is
approximate, and each side of a split needs enough rewards.

At most `MOST_COMPARED` arms are compared. An arm may join whenever it has got another `_CHECKED`
rewards. If there is no room, it joins only if it has twice as many as another one, and takes its
place. Only later rewards count, so the choice of the arms does not depend on the rewards compared.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from manyarms.inference.confidence_sequences import spent_error

DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)  # ends of bins (seconds)
ERROR = 0.01  # the probability that there is ever a false alarm
MOST_COMPARED = 64
_CHECKED = 10
_ENOUGH = 30  # rewards of each side of a split, unless all rewards are 0 or 1
_SUCCESSES = 5  # if these are counted as successes of the usual size, and as many failures

Bin = list[float]  # the number, the sum and the sum of squares of rewards


class Compared(NamedTuple):
    """An arm whose rewards are compared: its place in the order of all such arms, and its bins."""

    place: int
    bins: list[Bin]


class Delays:
    """How many seconds after their pulls rewards were reported.

    Attributes
    ----------
    bins
        The rewards of all arms and of the control, by delay.
    compared
        The arms whose rewards are compared.
    begun
        How many comparisons have begun.
    """

    def __init__(self) -> None:
        self.bins = no_bins()
        self.compared: dict[int, Compared] = {}
        self.begun = 0

    def count(self, arm: int, delay: float, reward: float, told: int) -> None:
        """Count a reward that was reported after a delay.

        The arm has got `told` rewards before. With 0, the reward is not compared with others.
        """
        place = bisect_right(DELAYS, delay)
        _add(self.bins[place], reward)
        if told == 0:
            return
        seen = self.compared.get(arm)
        if seen is None and told % _CHECKED == 0 and self._has_room(told):
            self.begun += 1
            seen = self.compared[arm] = Compared(self.begun, no_bins())
        if seen is not None:
            _add(seen.bins[place], reward)

    def _has_room(self, told: int) -> bool:
        """Whether an arm with so many rewards may join; remove another one if necessary."""
        if len(self.compared) < MOST_COMPARED:
            return True
        sizes = {arm: sum(bin_[0] for bin_ in seen.bins) for arm, seen in self.compared.items()}
        least = min(sizes, key=sizes.__getitem__)
        if 2 * (sizes[least] + _CHECKED) > told:
            return False
        del self.compared[least]
        return True


def no_bins() -> list[Bin]:
    """Return empty bins."""
    return [[0, 0.0, 0.0] for _ in range(len(DELAYS) + 1)]


def _add(bin_: Bin, reward: float) -> None:
    bin_[0] += 1
    bin_[1] += reward
    bin_[2] += reward * reward


def depends_on_delay(delays: Delays, reward_range: tuple[float, float] | None) -> bool:
    """Whether the rewards of an arm depend on their delays by more than chance."""
    for place, bins in delays.compared.values():
        if sum(bin_[0] > 0 for bin_ in bins) < 2:
            continue
        least = -math.log(float(spent_error(ERROR, place)))
        if _log_evidence(bins, reward_range) >= least:
            return True
    return False


def _log_evidence(bins: list[Bin], reward_range: tuple[float, float] | None) -> float:
    """Return the logarithm of the mean of E over all splits of an arm's rewards."""
    sums = list(accumulate(bins, _added))
    total, evidence = sums[-1], list[float]()
    for quick in sums[:-1]:
        slow = [all_ - part for all_, part in zip(total, quick, strict=True)]
        evidence.append(_of_split(quick, slow, reward_range) if quick[0] and slow[0] else 0.0)
    largest = max(evidence)
    return largest + math.log(sum(math.exp(e - largest) for e in evidence) / len(evidence))


def _added(left: Bin, right: Bin) -> Bin:
    return [one + two for one, two in zip(left, right, strict=True)]


def _of_split(quick: Bin, slow: Bin, reward_range: tuple[float, float] | None) -> float:
    """Return log E, or an approximation if not all rewards are 0 or 1."""
    counts, sums = (quick[0], slow[0]), (quick[1], slow[1])
    number, total, squares = _added(quick, slow)
    if reward_range == (0.0, 1.0) and total == squares:
        p = total / number
        best = sum(k * math.log(k / number) for k in (total, number - total) if k)
        return sum(map(_log_beta, counts, sums)) - best if 0.0 < p < 1.0 else 0.0
    mean = total / number
    spread = (squares - sum(of * of / n for n, of in zip(counts, sums, strict=True))) / number
    if min(counts) < _least(mean, spread, reward_range) or spread <= 1e-12 * squares / number:
        return 0.0
    apart = (n * n / (1 + n) * (of / n - mean) ** 2 for n, of in zip(counts, sums, strict=True))
    return sum(apart) / (2.0 * spread) - sum(math.log1p(n) for n in counts) / 2.0


def _log_beta(count: float, total: float) -> float:
    """Return the logarithm of the probability of so many ones, if p has Jeffreys' prior."""
    ones, zeros = total + 0.5, count - total + 0.5
    return math.lgamma(ones) + math.lgamma(zeros) - math.lgamma(count + 1.0) - math.log(math.pi)


def _least(mean: float, spread: float, reward_range: tuple[float, float] | None) -> float:
    """Return how many rewards each side of a split needs for a normal approximation."""
    if reward_range is None or spread <= 0.0 or mean <= reward_range[0]:
        return _ENOUGH
    above = mean - reward_range[0]
    size = (spread + above * above) / above  # of a success: 1 if rewards are 0 or 1
    return max(_ENOUGH, _SUCCESSES * size * size / spread)
