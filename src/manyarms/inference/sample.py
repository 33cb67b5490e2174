r"""Test, with the arms that were drawn at random, whether few of all arms can be better.

The docstring of `inference.verdict` has the proof.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from manyarms.inference.confidence_sequences import evidence_below, in_blocks, spent_error
from manyarms.inference.facts import Facts
from manyarms.inference.tried_arms import TriedArms

LEVELS = (0.5, 0.75)  # a: errors for a single arm, so large that a few pulls are enough
INTERVALS = 0.2  # share of the error for confidence intervals; the rest is for the sample
_STEP = 1.5  # ratio of successive sample sizes that are tested
_FIRST = 0.9  # share of the sample's error for u = 0; a tenth of that for each doubling of u
_DIGITS = 40.0  # terms smaller than the largest by a factor of e^40 are left out


def met_by_chance(tried: TriedArms) -> NDArray[np.int64]:
    """Return the places of the arms that were drawn at random, in the order of the draws."""
    facts = tried.facts
    if not facts.by_chance:
        return np.zeros(0, np.int64)
    by_chance = tried.arm < facts.first_arms
    by_chance[tried.places(facts.named)] = False
    return np.flatnonzero(by_chance)


def evidence_against(tried: TriedArms, met: NDArray[np.int64], bar: float) -> NDArray[np.float64]:
    """Return the evidence of each randomly drawn arm against a mean of `bar`."""
    against = np.ones(len(met))
    told, total = tried.told[met], tried.total[met]
    for part in in_blocks(len(met)):
        against[part] = evidence_below(
            told[part],
            total[part],
            bar,
            bounds=tried.facts.reward_range,
            sigma=tried.facts.scale.sigma,
        )
    return against


def can_sample(facts: Facts, quantile: float, error: float) -> bool:
    """Whether a random sample can ever be large enough; constant during an experiment."""
    if quantile == 0.0 or not facts.by_chance or facts.first_arms == 0:
        return False
    arms = facts.first_arms
    spent = (1.0 - INTERVALS) * error / len(LEVELS) * _FIRST
    return _least(LEVELS[0], math.floor(quantile * arms) + 1, arms, spent) <= arms


def _least(level: float, top: int, arms: int, error: float) -> int:
    """Return the smallest sample that can be enough."""
    chance = (1.0 - level) * top / arms
    return math.ceil(math.log(float(spent_error(error, 1))) / math.log1p(-chance))


def excess_of_newcomers(tried: TriedArms, beaten: NDArray[np.bool_], quantile: float) -> int:
    """Return by how much added arms reduce the number of initial arms that may be better.

    All added arms that are available and not beaten count as better. `quantile` refers to the arms
    in play.
    """
    facts = tried.facts
    gone = sum(arm >= facts.first_arms for arm in facts.retired)
    came = facts.all_arms - facts.first_arms - gone
    ruled_out = beaten & ~tried.retired & (tried.arm >= facts.first_arms)
    more = math.floor(quantile * facts.n_arms) - math.floor(quantile * facts.first_arms)
    return max(0, came - int(ruled_out.sum()) - more)


class Sample:
    """The arms that were drawn at random, in the order of the draws, and which of them are open.

    `others` is added to the number of arms that could not be drawn at random.
    """

    def __init__(
        self,
        facts: Facts,
        opened: NDArray[np.bool_],
        quantile: float,
        error: float,
        level: float,
        others: int = 0,
    ) -> None:
        self.open, self.level = opened, level
        lost = (facts.missed + others).bit_length()
        self.error = error / len(LEVELS) * _FIRST / 10**lost
        self.top = math.floor(quantile * facts.first_arms) + 1 - ((1 << lost) - 1)  # m - u
        self.arms = facts.first_arms
        self._drawable = max(len(opened), facts.first_arms - facts.missed)

    def sizes(self) -> Iterator[tuple[int, float]]:
        """Yield the sample sizes that are tested, and the error spent on each."""
        if self.top < 1:
            return
        j, size = 1, self.least()
        while size <= len(self.open):
            yield size, float(spent_error(self.error, j))
            j, size = j + 1, math.ceil(_STEP * size)

    def least(self) -> int:
        """Return the smallest sample that can be enough."""
        return _least(self.level, self.top, self.arms, self.error)

    def possible(self) -> bool:
        """Whether so many arms can be drawn that the sample is enough."""
        return self.top >= 1 and self.least() <= self._drawable

    def draws_missing(self) -> float:
        """Return how many arms must be drawn before the sample can be enough."""
        return max(0, self.least() - len(self.open)) if self.possible() else math.inf

    def allowed(self, size: int, error: float) -> int:
        """Return the largest number of `size` arms that may be open; -1 if even 0 is too many."""
        return bisect_right(range(size), error, key=lambda few: self.likely(few, size)) - 1

    def likely(self, few: int, size: int) -> float:
        """Bound the probability of `few` or fewer open arms if the arm is not good enough."""
        chance = (1.0 - self.level) * (self.top - few) / self.arms
        if few >= chance * size:  # not unlikely
            return 1.0
        last = (  # the logarithm of the binomial distribution's largest term
            math.lgamma(size + 1)
            - math.lgamma(few + 1)
            - math.lgamma(size - few + 1)
            + few * math.log(chance)
            + (size - few) * math.log1p(-chance)
        )
        odds = chance / (1.0 - chance)
        ratio = few / ((size - few + 1) * odds)  # of the next smaller term to this one
        most = few if ratio >= 1.0 else min(few, math.ceil(_DIGITS / -math.log(ratio or 0.5)))
        k = np.arange(few, few - most, -1)
        rest = np.cumprod(k / ((size - k + 1) * odds)).sum()
        return math.exp(last) * (1.0 + float(rest))

    def small_enough(self) -> bool:
        """Whether few enough arms are open to show that the recommended arm is good enough."""
        opened = np.cumsum(self.open)
        return any(self.likely(int(opened[size - 1]), size) <= e for size, e in self.sizes())

    def excess(self, size: int, error: float) -> float:
        """Return by how many open arms the limit is exceeded, as a share of `size`."""
        return float(self.open[:size].sum() - self.allowed(size, error)) / size
