r"""Whether a game may stop: how good the arm to deploy is, for sure, whenever one asks.

Let N be the arms that the game began with, m = floor(q N) + 1, and c_q the mean of the m-th best:
the best of all but the top q. Arm x is good enough if its mean is at least c_q - epsilon. Of the
error delta a fifth is spent on limits, and the rest on the sample.

*Limits.* With probability 1 - delta/5 no lower limit of any arm is ever wrong (`sequences`). Let L
be that of x, and c = L + epsilon. If x is not good enough, c is below c_q.

*The sample.* Fresh arms are drawn at random. Each draw brings one of the m best with probability
(m - u - U)/N or more, if U of these were met before, and u could not be met by chance: they were
retired before anything was known of them, or observed first. An arm is *open* at c until its own
rewards speak against a mean of c by a factor of 1/a (`evidence_below`). One of mean c_q or more is
open at c_q for ever with probability 1 - a, whatever the policy does with it and with others. So
that U or fewer of the first k arms are open at c_q is at most as likely as U successes or fewer in
k trials of probability (1 - a) (m - u - U)/N. Who is open at c_q is open at any c below. So if x is
not good enough, few open arms are unlikely; and where few are open, the verdict is "stop". Two a
share the error: 1/2, for policies that look at an arm until it is clear, and 3/4, for those that
drop most arms at once.

*Any time.* Limits and evidence hold at all times at once. The sample is looked at for sizes k_0,
1.5 k_0, … only, and its error is spent over these, and over u rounded up to 0, 1, 3, 7, ….

*Without chance.* If all arms there are but floor(q N) have an upper limit below c, of those that
hold for all arms at once, then x is good enough, however they were met.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from manyarms.core.checks import check_number
from manyarms.core.sequences import evidence_below, spent_error
from manyarms.live.estimates import ArmEstimate, count, limits_of, plain, rounded
from manyarms.live.game import LiveGame, exchangeable
from manyarms.protocol.recommend import sigma_of

__all__ = ["CONFIDENCE", "EPSILON", "QUANTILE", "StopVerdict", "check_question", "give_verdict"]

EPSILON, QUANTILE, CONFIDENCE = 0.1, 0.05, 0.95  # what is asked unless one says otherwise

_LEVELS = (0.5, 0.75)  # the error of what is said of a single arm: a few pulls are enough
_STEP = 1.5  # from one size of the sample that is looked at to the next
_LIMITS = 0.2  # of the error, for the limits of arms
_FIRST = 0.9  # of the rest, for u = 0; then a tenth of that for each doubling


@dataclass(frozen=True)
class StopVerdict:
    """How good an arm is for sure, and whether that is enough to stop.

    Attributes
    ----------
    arm
        The arm that `recommend()` returned.
    stop
        Whether it is good enough: within `epsilon` of the best of all but the top `quantile` of
        the arms, with probability `confidence`, whenever you ask.
    epsilon, quantile, confidence
        What was asked.
    limit
        The lower limit of the arm's mean; it holds with probability `limit_confidence`.
    tried, beaten
        The number of arms with a known reward; and how many of them, including this one, are for
        sure not better than it by more than `epsilon`.
    met, unsettled
        The number of arms that the policy drew at random; and how many of them may still be better
        by more than `epsilon`, each judged by itself.
    n_arms, at_first
        The number of arms that the statement is about; and whether these are the arms that the
        game began with, because arms came or went since.
    missing
        What is missing, in words; empty if nothing is.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(arms=["red", "blue"], horizon=1000, seed=1)
    >>> print(live.verdict(epsilon=0.1))
    Go on: no reward was told yet of any present arm.
    >>> for pull in live.ask(200):
    ...     live.tell(pull, reward=float(pull.arm == "blue"))
    >>> verdict = live.verdict(epsilon=0.1, quantile=0.0)
    >>> verdict.stop
    True
    >>> print(verdict)
    Stop: arm 'blue' is within 0.1 of the best of all 2 arms, with 95 %.
    Its mean is at least 0.925, with 95 %. It is within 0.1 of 2 of the 2 arms tried.
    """

    arm: Any
    stop: bool
    epsilon: float
    quantile: float
    confidence: float
    limit: float
    tried: int
    beaten: int
    met: int
    unsettled: int
    n_arms: int
    at_first: bool
    missing: str

    def __str__(self) -> str:
        if self.arm is None:
            return f"Go on: {self.missing}"
        limit = f"mean is at least {rounded(self.limit)}, with {100 * self.limit_confidence:g} %"
        if not self.stop:
            return f"Go on: {self.missing}\nThe best arm so far is {self._name}; its {limit}."
        return f"Stop: {self.statement}\nIts {limit}. {self._compared}"

    @property
    def limit_confidence(self) -> float:
        """The probability with which lower limits hold, for all arms at all times.

        If `quantile` is above 0, a fifth of the error is spent on them: 99 % by default. So `limit`
        is lower than the limit that `recommend()` shows, which holds with 95 %.
        """
        return 1.0 - _error_of_limits(self.quantile, self.confidence)

    @property
    def _compared(self) -> str:
        if self.quantile == 0.0 or self.met == 0:
            tried = count(self.tried, "arm")
            return f"It is within {self.epsilon:g} of {self.beaten} of the {tried} tried."
        drawn = count(self.met, "arm")
        more = f"better by more than {self.epsilon:g}"
        return f"Of {drawn} drawn at random, {self.unsettled} may be {more}."

    @property
    def statement(self) -> str:
        """What is claimed where `stop` is true."""
        of = f"all {self.n_arms} arms"
        if self.quantile > 0.0:
            of = f"all but the top {100 * self.quantile:g} % of {count(self.n_arms, 'arm')}"
        if self.at_first:
            of += " there were at first"
        return (
            f"arm {self._name} is within {self.epsilon:g} of the best of {of}, with "
            f"{100 * self.confidence:g} %."
        )

    @property
    def _name(self) -> str:
        return plain(repr(self.arm))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        first, *rest = str(self).split("\n")
        return f"<div><b>{escape(first)}</b><br/>{'<br/>'.join(map(escape, rest))}</div>"


def _error_of_limits(quantile: float, confidence: float) -> float:
    share = 1.0 if quantile == 0.0 else _LIMITS  # no sample speaks for all arms
    return share * (1.0 - confidence)


def check_question(epsilon: Any, quantile: Any, confidence: Any) -> tuple[float, float, float]:
    """Return what is asked, as numbers, or raise."""
    return (
        check_number("epsilon", epsilon, above=0.0),
        check_number("quantile", quantile, at_least=0.0, below=1.0),
        check_number("confidence", confidence, above=0.0, below=1.0),
    )


def give_verdict(
    game: LiveGame, best: ArmEstimate | None, epsilon: float, quantile: float, confidence: float
) -> StopVerdict:
    """Return whether the arm `best` is good enough; None if no arm is known."""
    error = 1.0 - confidence
    share = _error_of_limits(quantile, confidence)
    limits = limits_of(game, share)
    arm = None if best is None else game.arms.number(best.arm)
    limit = limits[arm][0] if arm in limits else -math.inf
    bar = limit + epsilon
    beaten = {a for a, (_, high) in limits.items() if high <= bar or a == arm}
    present = len(beaten - game.retired)
    settled = arm is not None and game.n_arms - present <= math.floor(quantile * game.n_arms)
    present_only = settled or quantile == 0.0
    samples = [_Sample(game, bar, quantile, error - share, level) for level in _LEVELS]
    chance = arm is not None and quantile > 0.0
    stop = settled or (chance and any(sample.small_enough() for sample in samples))
    missing = "" if stop else _missing(game, best, bar, samples, game.n_arms - present, quantile)
    return StopVerdict(
        arm=None if best is None else best.arm,
        stop=stop,
        epsilon=epsilon,
        quantile=quantile,
        confidence=confidence,
        limit=limit,
        tried=len(limits),
        beaten=len(beaten),
        met=len(samples[0].open),
        unsettled=int(samples[0].open.sum()),
        n_arms=game.n_arms if present_only else game.first_arms,
        at_first=not present_only and (game.arms.count > game.first_arms or bool(game.retired)),
        missing=missing,
    )


class _Sample:
    """The arms that were met by chance, in this order, and which of them are open at `bar`."""

    def __init__(
        self, game: LiveGame, bar: float, quantile: float, error: float, level: float
    ) -> None:
        self.random = exchangeable(game.policy)
        first, named = game.first_arms, game.named
        met = [arm for arm in game.tally if arm < first and arm not in named and self.random]
        known = [game.known(arm) for arm in met]
        against = evidence_below(
            [number for number, _ in known],
            [total for _, total in known],
            bar,
            bounds=game.reward_range,
            sigma=sigma_of(game.policy),
        )
        self.open, self.level = against <= 1.0 / level, level
        lost = (game.skipped + sum(arm < first for arm in named)).bit_length()
        self.error = error / len(_LEVELS) * _FIRST / 10**lost
        self.top = math.floor(quantile * first) + 1 - ((1 << lost) - 1)  # m - u
        self.arms = first

    def sizes(self) -> Iterator[tuple[int, float]]:
        """Yield the sizes that are looked at, and what is spent on each."""
        if self.top < 1:
            return
        j, size = 1, self.least()
        while size <= len(self.open):
            yield size, float(spent_error(self.error, j))
            j, size = j + 1, math.ceil(_STEP * size)

    def least(self) -> int:
        """Return the smallest sample that can be enough."""
        chance = (1.0 - self.level) * self.top / self.arms
        return math.ceil(math.log(float(spent_error(self.error, 1))) / math.log1p(-chance))

    def allowed(self, size: int, error: float) -> int:
        """Return how many arms of `size` may be open; -1 if even none is too many."""
        return bisect_right(range(size), error, key=lambda few: self.likely(few, size)) - 1

    def likely(self, few: int, size: int) -> float:
        """Return at most how likely so few open arms are, if the arm is not good enough."""
        chance = (1.0 - self.level) * (self.top - few) / self.arms
        if few >= chance * size:  # it may well be
            return 1.0
        logs = (
            math.lgamma(size + 1)
            - math.lgamma(k + 1)
            - math.lgamma(size - k + 1)
            + k * math.log(chance)
            + (size - k) * math.log1p(-chance)
            for k in range(few + 1)
        )
        return math.fsum(map(math.exp, logs))

    def small_enough(self) -> bool:
        """Whether so few arms are open that the best ones cannot be many."""
        opened = np.cumsum(self.open)
        return any(self.likely(int(opened[size - 1]), size) <= e for size, e in self.sizes())


def _missing(
    game: LiveGame,
    best: ArmEstimate | None,
    bar: float,
    samples: Sequence[_Sample],
    better: int,
    quantile: float,
) -> str:
    """Return in words what keeps the verdict from saying stop."""
    if best is None:
        return "no reward was told yet of any present arm."
    sample = samples[0]
    may = f"may still be above {rounded(bar)}"
    if quantile == 0.0:
        return f"{better} of {game.n_arms} arms {may}; there must be none."
    if not sample.random:
        most = math.floor(quantile * game.n_arms)
        label = game.policy.label
        return (
            f"{better} of {game.n_arms} arms {may}, and at most {most} should. ({label} is not "
            f"known to draw arms at random, so those tried say nothing of the others.)"
        )
    if sample.top < 1:
        return (
            f"too many arms were retired before anything was known of them, or observed first, "
            f"to speak of the top {100 * quantile:g} %."
        )
    looks = [(each, *look) for each in samples for look in each.sizes()]
    if not looks:
        drawn = len(sample.open)
        return (
            f"only {count(drawn, 'arm')} {'was' if drawn == 1 else 'were'} drawn at random so far. "
            f"To judge the top {100 * quantile:g} %, at least {sample.least()} are needed."
        )
    sample, size, error = min(looks, key=lambda look: _excess(*look))
    opened = int(sample.open[:size].sum())
    most = sample.allowed(size, error)
    return f"{opened} of the first {count(size, 'arm')} {may}; at most {most} should."


def _excess(sample: _Sample, size: int, error: float) -> float:
    """Return how far a size is from being enough, in parts of it."""
    return float(sample.open[:size].sum() - sample.allowed(size, error)) / size
