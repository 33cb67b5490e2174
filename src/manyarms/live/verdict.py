r"""Whether a game may stop: how good the arm to deploy is, for sure, whenever one asks.

Let N be the arms that the game began with, m = floor(q N) + 1, and c_q the mean of the m-th best:
the best of all but the top q. Arm x is good enough if its mean is at least c_q - epsilon. Of the
error delta a fifth is spent on limits, and the rest on the sample.

*Limits.* With probability 1 - delta/5 no lower limit of any arm is ever wrong. Let L be that of x,
and c = L + epsilon. If x is not good enough, c is below c_q.

*The sample.* Fresh arms are drawn at random. Each draw brings one of the m best with probability
(m - u - U)/N or more, if U of these were met before, and u could not be met by chance: they were
retired before anything was known of them, or observed first. An arm is *open* at c until its own
rewards speak against a mean of c by a factor of 1/a (`evidence_below`). One of mean c_q or more is
open at c_q for ever with probability 1 - a, whatever the policy does with it and with others. So
that U or fewer of the first k arms are open at c_q is at most as likely as U successes or fewer in
k trials of probability (1 - a) (m - u - U)/N. Who is open at c_q is open at any c below. So if x is
not good enough, few open arms are unlikely; and where few are open, the verdict is "stop". Two a
share the error: 1/2, for policies that look at an arm until it is clear, and 3/4, for those that
drop most arms at once. An arm that was drawn and has no reward is open, and stays in its place in
the sample, also in later seasons: the best arms may be those that answer late.

*Any time.* Limits and evidence hold at all times at once. The sample is looked at for sizes k_0,
1.5 k_0, … only, and its error is spent over these, and over u rounded up to 0, 1, 3, 7, ….

*Without chance.* If all arms there are but floor(q N) have an upper limit below c, of those that
hold for all arms at once, then x is good enough, however they were met. If q, delta and N are such
that no sample of N arms can be large enough, or the policy is not known to draw at random, this is
the only way. Then all of delta is spent on limits. This is known when the game begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_number
from manyarms.core.confidence_sequences import (
    in_blocks,
    spent_error,
    surely_below,
)
from manyarms.core.tabular import plain
from manyarms.live.estimates import count, rounded
from manyarms.live.missing import (
    OVER,
    missing_at_the_end,
    missing_in_sample,
    missing_of_arms,
)
from manyarms.live.sample import (
    LEVELS,
    LIMITS,
    Sample,
    can_sample,
    evidence_against,
    met_by_chance,
    of_arms_met,
)
from manyarms.live.tallies import Tallies
from manyarms.protocol.recommend import scale_of, sigma_of

EPSILON, QUANTILE, CONFIDENCE = 0.1, 0.05, 0.95  # what is asked unless one says otherwise


@dataclass(frozen=True)
class StopVerdict:
    """How good an arm is for sure, and whether that is enough to stop.

    Attributes
    ----------
    arm
        The arm that `recommend()` returned.
    stop
        Whether it is good enough: within `epsilon` of the best of all but the top `quantile` of
        the arms, with probability `confidence`, whenever you ask. If `quantile` is less than one
        arm, it is compared with the best of all arms.
    epsilon, quantile, confidence
        What was asked.
    limit
        The lower limit of the arm's mean; it holds with probability `limit_confidence`.
    tried, beaten
        The number of arms with a known reward; and how many of them, including this one, are for
        sure not better than it by more than `epsilon`.
    met, unsettled
        The number of arms that the policy drew at random; and how many of them may still be better
        by more than `epsilon`, each judged by itself if the sample is large enough. The arm
        itself is not counted.
    n_arms, at_first
        The number of arms that the statement is about; and whether these are the arms that the
        game began with, because arms came or went since.
    missing
        What is missing, in words; empty if nothing is.
    limit_confidence
        The probability with which lower limits hold, for all arms at all times. If the arm is
        judged by a random sample of the arms, a fifth of the error is spent on limits: 99 % by
        default. So `limit` is then lower than the limit that `recommend()` shows, which holds with
        95 % confidence.
    warning
        If so many pulls have no reward that `stop` could be wrong because of it: how many, and what
        to make of it. Else it is empty.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(arms=["red", "blue"], horizon=1000, seed=1)
    >>> print(live.verdict(epsilon=0.1))
    Go on: no reward has been told yet for any arm in play.
    >>> for pull in live.ask(200):
    ...     live.tell(pull, reward=float(pull.arm == "blue"))
    >>> verdict = live.verdict(epsilon=0.1, quantile=0.0)
    >>> verdict.stop
    True
    >>> print(verdict)
    Stop: arm 'blue' is within 0.1 of the best of all 2 arms, with 95 % confidence.
    Its mean is at least 0.925, with 95 % confidence. Of the 2 arms tried, none is better by more
    than 0.1.
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
    limit_confidence: float = CONFIDENCE
    warning: str = ""

    def __str__(self) -> str:
        go_on = self.missing if self.missing.startswith(OVER) else f"Go on: {self.missing}"
        if self.arm is None:
            return go_on
        sure = f"with {100 * self.limit_confidence:g} % confidence"
        limit = f"mean is at least {rounded(self.limit)}, {sure}"
        if not self.stop:
            return f"{go_on}\nThe best arm so far is {self._name}; its {limit}."
        warning = f"\n{self.warning}" if self.warning else ""
        return f"Stop: {self.statement}\nIts {limit}. {self._compared}{warning}"

    @property
    def _compared(self) -> str:
        more = f"better by more than {self.epsilon:g}"
        if self._all_arms or self.met == 0:
            rest = self.tried - self.beaten
            may = f"{rest} may be" if rest else "none is"
            return f"Of the {count(self.tried, 'arm')} tried, {may} {more}."
        return f"Of {count(self.met, 'arm')} drawn at random, {self.unsettled} may be {more}."

    @property
    def _all_arms(self) -> bool:
        """Whether `quantile` is less than one arm."""
        return math.floor(self.quantile * self.n_arms) == 0

    @property
    def rivals(self) -> str:
        """The arms that the arm is compared with, in words."""
        of = f"all {count(self.n_arms, 'arm')}"
        if not self._all_arms:
            of = f"all but the top {100 * self.quantile:g} % of {count(self.n_arms, 'arm')}"
        return f"{of} there were at first" if self.at_first else of

    @property
    def statement(self) -> str:
        """What is claimed where `stop` is true."""
        return (
            f"arm {self._name} is within {self.epsilon:g} of the best of {self.rivals}, with "
            f"{100 * self.confidence:g} % confidence."
        )

    @property
    def _name(self) -> str:
        return plain(repr(self.arm))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        first, *rest = str(self).split("\n")
        return f"<div><b>{escape(first)}</b><br/>{'<br/>'.join(map(escape, rest))}</div>"


def check_question(epsilon: Any, quantile: Any, confidence: Any) -> tuple[float, float, float]:
    """Return what is asked, as numbers, or raise."""
    return (
        check_number("epsilon", epsilon, above=0.0),
        check_number("quantile", quantile, at_least=0.0, below=1.0),
        check_number("confidence", confidence, above=0.0, below=1.0),
    )


def give_verdict(
    tallies: Tallies,
    epsilon: float,
    quantile: float,
    confidence: float,
    *,
    name_of: Callable[[int], Any] | None = None,
) -> StopVerdict:
    """Return whether the recommended arm is good enough.

    `name_of` says what an arm is called in words (default: as the game calls it).
    """
    game, error = tallies.game, 1.0 - confidence
    sampled = can_sample(game, quantile, error)
    share = LIMITS * error if sampled else error
    best = tallies.kept()
    limit = -math.inf if best is None else float(tallies.limits_at(np.array([best]), share)[0][0])
    bar = limit + epsilon
    beaten = _beaten(tallies, best, bar, share)
    better = game.n_arms - int((beaten & ~tallies.retired).sum())
    settled = best is not None and better <= math.floor(quantile * game.n_arms)
    present_only = settled or not sampled
    met = met_by_chance(tallies)
    against = evidence_against(tallies, met, best, bar)
    samples = [Sample(game, against <= 1.0 / a, quantile, error - share, a) for a in LEVELS]
    chance = best is not None and sampled
    stop = settled or (chance and any(sample.small_enough() for sample in samples))
    missing = ""

    def called(place: int) -> str:
        return plain(repr((name_of or game.arms.name)(int(tallies.arm[place]))), at_most=24)

    if best is None:
        missing = "no reward has been told yet for any arm in play."
    elif not stop and sampled and int(tallies.present.sum()) < game.n_arms:
        missing = missing_in_sample(game, called(best), bar, samples, quantile)
    elif not stop:
        missing = missing_of_arms(tallies, called, best, bar, share, beaten, quantile)
    if missing and best is not None and game.pulls == game.horizon:
        missing = missing_at_the_end(game, called(best), missing)
    unsettled = ~of_arms_met(tallies, beaten, met)
    if sampled:
        unsettled &= samples[0].open
    return StopVerdict(
        arm=None if best is None else game.arms.name(int(tallies.arm[best])),
        stop=stop,
        epsilon=epsilon,
        quantile=quantile,
        confidence=confidence,
        limit=limit,
        tried=int((tallies.told > 0).sum()),
        beaten=int(beaten.sum()),
        met=len(met),
        unsettled=int(unsettled.sum()),
        n_arms=game.n_arms if present_only else game.first_arms,
        at_first=not present_only and (game.arms.count > game.first_arms or bool(game.retired)),
        missing=missing,
        limit_confidence=1.0 - share,
        warning=_warning(tallies, best, called(best), epsilon) if stop and best is not None else "",
    )


def _warning(tallies: Tallies, best: int, name: str, epsilon: float) -> str:
    """Return how many pulls have no reward, if so many that the arm could be worse by `epsilon`.

    If the share s of pulls has no reward, and all of these would have been as small as can be, the
    mean is smaller by s times the range of rewards at most. Half of `epsilon` is worth a warning.
    """
    game = tallies.game
    scale = scale_of(game.policy, game.reward_range)
    asked = game.tally[int(tallies.arm[best])].asked
    told = game.tally[int(tallies.arm[best])].told
    own = (asked - told) / asked if asked else 0.0
    all_pulls = (len(game.abandoned) + len(game.flight)) / game.pulls if game.pulls else 0.0
    if max(own, all_pulls) * (scale.width or 2.0 * scale.sigma) < epsilon / 2.0:
        return ""
    return (
        f"{100 * own:.0f} % of the pulls of arm {name}, and {100 * all_pulls:.0f} % of all pulls, "
        f"have no reward: they were abandoned, or their rewards are still to come. The verdict "
        f"holds only if that does not depend on the reward."
    )


def _beaten(tallies: Tallies, best: int | None, bar: float, error: float) -> NDArray[np.bool_]:
    """Return which arms are for sure not above `bar`, the best one among them."""
    if best is None:
        return np.zeros(tallies.size, np.bool_)
    beaten = np.empty(tallies.size, np.bool_)
    for part in in_blocks(tallies.size):
        beaten[part] = surely_below(
            tallies.told[part],
            tallies.total[part],
            bar,
            bounds=tallies.game.reward_range,
            sigma=sigma_of(tallies.game.policy),
            error=spent_error(error, np.arange(part.start + 1, part.stop + 1)),
        )
    beaten[best] = True
    return beaten
