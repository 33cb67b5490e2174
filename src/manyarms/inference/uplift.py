"""Compare the recommended arm with the control: confidence intervals that are valid at any time.

C is the mixture of likelihood ratios of the control's rewards at its true mean, and A_k that of the
k-th arm in the order of first pulls (`uniform_interval` has the formula). Each is a supermartingale
that begins at 1, whatever the policy does. A reward changes only one of them. So

    C / 2 + (1 + C) / 4 sum_k w_k A_k,   w_k = 6 / (pi k)^2,

is a supermartingale, too. With probability 1 - delta it is below 1/delta at all times. All terms
are positive. So for every arm k and at all times

    C / 2 + (1 + C) / 4 w_k A_k < 1/delta,

also for the arm that was chosen because it looks best. The intervals consist of all differences,
and of all ratios, of pairs of means for which this holds. The terms with C or A_k alone bound each
mean by its own rewards; the one with C does so independently of the number of arms. The product
rules out that both means are at their worst ends at once. So the intervals are narrower than those
obtained by subtracting one confidence interval from another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyarms.core.checks import check_number
from manyarms.core.tabular import Tabular, plain
from manyarms.inference.confidence_sequences import (
    Numbers,
    log_evidence,
    spent_error,
    uniform_interval,
)
from manyarms.inference.estimates import count, mean_text
from manyarms.inference.facts import NO_CONTROL, Facts
from manyarms.inference.tried_arms import TriedArms

_GRID = 128  # means of the arm in one round of a search
_ROUNDS = 6  # each searches around the best mean of the one before


@dataclass(frozen=True)
class Uplift(Tabular):
    """The recommended arm, compared with the control.

    Attributes
    ----------
    arm, control
        Their names.
    mean, control_mean
        The means of their rewards.
    difference, interval
        `mean - control_mean`, and the confidence interval for the difference of the true means.
        With probability `confidence`, all intervals that are ever shown are right, however often
        you look, and even though the arm was chosen because it looks best.
    ratio, ratio_interval
        `mean / control_mean`, and the confidence interval for the ratio of the true means. Both
        intervals hold together. The ratio is NaN if the control has earned nothing. If rewards can
        be negative, the ratio is NaN and its interval is infinite.
    told, control_told
        The numbers of their rewards.
    confidence
        The probability that all intervals are right.
    rate
        Whether means are rates, which are shown in percent.
    missing
        A text that says why there is nothing to compare yet, and otherwise empty. If there is
        nothing to compare, means are NaN and intervals infinite.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Prospector().live(arms=["a", "b", "c"], seed=1, control="current", share=0.3)
    >>> for pull in live.ask(3000):
    ...     live.tell(pull, reward=float(pull.arm != "current" or pull.id % 2 == 0))
    >>> print(live.uplift())
    +109 % over current, with 95 % confidence from +84.1 % to +141 % (valid at any time; current:
    47.8 % after 894 rewards)
    >>> print(ma.Prospector().live(n_arms=9).uplift())
    Nothing to compare yet: this experiment has no control. Set `control` in a new experiment.
    """

    arm: Any
    control: Any
    mean: float
    control_mean: float
    difference: float
    interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    told: int
    control_told: int
    confidence: float = 0.95
    rate: bool = False
    missing: str = ""

    @property
    def better(self) -> bool | None:
        """Whether the arm is shown to be better or worse than the control; None if neither is."""
        low, high = self.interval
        return True if low > 0.0 else False if high < 0.0 else None

    def _columns(self) -> dict[str, list[Any]]:
        words = ("interval", "ratio_interval", "rate", "missing")
        named = {name: [value] for name, value in vars(self).items() if name not in words}
        for name, (low, high) in (("", self.interval), ("ratio_", self.ratio_interval)):
            named |= {f"{name}low": [low], f"{name}high": [high]}
        return named

    def _caption(self) -> list[str]:
        return [str(self)]

    def __str__(self) -> str:
        if self.missing:
            return f"Nothing to compare yet: {self.missing}"
        control = plain(str(self.control), at_most=60)
        if self.arm == self.control:
            return f"The recommended arm is the control itself, {control}"
        today = mean_text(self.control_mean, self.rate)
        return (
            f"{self.amount} over {control}, with {100 * self.confidence:g} % confidence "
            f"{self.bounds} (valid at any time; {control}: {today} after "
            f"{count(self.control_told, 'reward')})"
        )

    @property
    def amount(self) -> str:
        """The uplift in percent, or the difference of the means if there is no ratio."""
        if not math.isnan(self.ratio):
            return f"{signed(100.0 * (self.ratio - 1.0))} %"
        scale, unit = self._unit
        return f"{signed(scale * self.difference)}{unit or ' in mean reward'}"

    @property
    def bounds(self) -> str:
        """The confidence interval of `amount`."""
        low, high, unit = *self.interval, ""
        if not math.isnan(self.ratio):
            low, high = (100.0 * (bound - 1.0) for bound in self.ratio_interval)
            unit = " %"
        else:
            scale, unit = self._unit
            low, high = scale * low, scale * high
        if math.isinf(high):
            return f"at least {signed(low)}{unit}"
        return f"from {signed(low)}{unit} to {signed(high)}{unit}"

    @property
    def _unit(self) -> tuple[float, str]:
        return (100.0, " percentage points") if self.rate else (1.0, "")


def signed(value: float) -> str:
    """Return a number with its sign and three significant digits.

    >>> signed(12.44), signed(-0.5), signed(0.0)
    ('+12.4', '−0.5', '0')
    """
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return (f"+{text}" if value > 0 else text).replace("-", "−")


def check_confidence(confidence: Any) -> float:
    """Return `confidence` as a probability, or raise."""
    return check_number("confidence", confidence, above=0.0, below=1.0)


def why_no_uplift(facts: Facts, best: int | None) -> str:
    """Return why the recommended arm cannot be compared with the control; empty if it can."""
    if facts.control is None:
        return NO_CONTROL
    if best is None:
        return no_rewards(facts)
    if facts.control.told == 0:
        return f"no rewards of the control {facts.control.name!r} have been reported yet."
    return ""


def no_rewards(facts: Facts) -> str:
    """Return why no arm can be recommended."""
    if facts.told or facts.observed:
        return "every arm with a reward is retired."
    return "no rewards have been reported yet."


def uplift_of(tried: TriedArms, confidence: float) -> Uplift:
    """Compare the recommended arm with the control, if possible."""
    facts, best = tried.facts, tried.kept()
    if missing := why_no_uplift(facts, best):
        control = facts.control
        name, seen = (None, 0) if control is None else (control.name, control.told)
        return nothing_to_compare(name, seen, confidence, missing)
    assert best is not None
    assert facts.control is not None
    told, total = int(tried.told[best]), float(tried.total[best])
    control = facts.control
    mean, today = total / told, control.total / control.told
    interval, ratios = compare(
        (told, total),
        (control.told, control.total),
        place=best + 1,
        error=1.0 - confidence,
        bounds=facts.reward_range,
        sigma=facts.scale.sigma,
    )
    known = facts.reward_range is not None and facts.reward_range[0] >= 0.0
    ratio = mean / today if known and today > 0.0 else math.nan
    return Uplift(
        arm=facts.name_of(int(tried.arm[best])),
        control=control.name,
        mean=mean,
        control_mean=today,
        difference=mean - today,
        interval=interval,
        ratio=ratio,
        ratio_interval=ratios if known else (-math.inf, math.inf),
        told=told,
        control_told=control.told,
        confidence=confidence,
        rate=tried.rate,
    )


def nothing_to_compare(
    control: str | int | None, control_told: int, confidence: float, missing: str
) -> Uplift:
    """Return an uplift that says why there is no comparison."""
    anything = (-math.inf, math.inf)
    return Uplift(
        arm=None,
        control=control,
        mean=math.nan,
        control_mean=math.nan,
        difference=math.nan,
        interval=anything,
        ratio=math.nan,
        ratio_interval=anything,
        told=0,
        control_told=control_told,
        confidence=confidence,
        missing=missing,
    )


def compare(
    arm: tuple[int, float],
    control: tuple[int, float],
    *,
    place: int,
    error: float,
    bounds: tuple[float, float] | None,
    sigma: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return confidence intervals for the difference and for the ratio of two means.

    `arm` and `control` are the number and the sum of their rewards. `place` is the arm's number in
    the order of first pulls, from 1.

    >>> found = compare((800, 240.0), (100, 20.0), place=1, error=0.05, bounds=(0, 1), sigma=0.5)
    >>> [tuple(round(end, 3) for end in interval) for interval in found]
    [(-0.1, 0.261), (0.716, 3.917)]
    """
    weight, most = float(spent_error(1.0, place)), 4.0 / error
    own = log_evidence(*control, control[1] / control[0], bounds=bounds, sigma=sigma)
    least = math.exp(float(own))  # the smallest value of C

    def control_means(means: Numbers) -> tuple[Numbers, Numbers]:
        """Return the range of the control's means that are possible for each mean of the arm.

        If none is possible, the range is from infinity to minus infinity.
        """
        evidence = log_evidence(*arm, means, bounds=bounds, sigma=sigma)
        weighted = weight * np.exp(np.minimum(evidence, 700.0))
        left = (most - weighted) / (2.0 + weighted)
        possible = left > least
        count, total = (np.full(means.shape, float(number)) for number in control)
        errors = 1.0 / np.where(possible, left, most)
        low, high = uniform_interval(count, total, bounds=bounds, sigma=sigma, error=errors)
        return np.where(possible, low, np.inf), np.where(possible, high, -np.inf)

    # the means of the arm that are possible if the control has its observed mean: the widest range
    widest = weight * (1.0 + least) / (most - 2.0 * least)
    ends = uniform_interval(*arm, bounds=bounds, sigma=sigma, error=widest)

    def largest(value: Callable[[Numbers, Numbers, Numbers], Numbers]) -> float:
        """Return the maximum of a unimodal function, on successively finer grids."""
        begin, end, found = float(ends[0]), float(ends[1]), -math.inf
        for _ in range(_ROUNDS):
            means = np.linspace(begin, end, _GRID)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                values = value(means, *control_means(means))
            at = int(np.argmax(values))
            found = max(found, float(values[at]))
            begin, end = float(means[max(0, at - 1)]), float(means[min(_GRID - 1, at + 1)])
        return found

    below = -largest(lambda means, low, high: high - means)
    above = largest(lambda means, low, high: means - low)
    if bounds is None or bounds[0] < 0.0:
        return (below, above), (-math.inf, math.inf)
    inverse = largest(
        lambda means, low, high: np.where(
            high < 0.0, -np.inf, np.where(means > 0.0, high / means, np.inf)
        )
    )
    ratio = largest(lambda means, low, high: np.where(low > 0.0, means / low, np.inf))
    return (below, above), (1.0 / inverse if inverse > 0.0 else math.inf, ratio)
