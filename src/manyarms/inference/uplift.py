"""How much better the recommended arm is than the control, with intervals valid at any time.

Let C be the mixture of likelihood ratios of the control's rewards at its true mean, and A_k that of
the k-th arm in the order of first pulls (`uniform_limits` has the formula). Each is a
supermartingale that begins at 1, for any policy; a reward moves one of them only. So

    C / 2 + (1 + C) / 4 sum_k w_k A_k,   w_k = 6 / (pi k)^2,

is one, too. With probability 1 - delta it always stays below 1/delta. All terms are positive. So
for every arm k and at any time

    C / 2 + (1 + C) / 4 w_k A_k < 1/delta,

also for an arm that was chosen because it looks best. The intervals hold the differences and the
ratios of all pairs of means for which this is true. The
terms with C or A_k alone keep each mean near its own rewards, and the control's however many arms
there are. The product rules out that both means are at their worst ends at once. So an interval is
narrower than the difference of two intervals.
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
    uniform_limits,
)
from manyarms.inference.estimates import count, mean_text
from manyarms.inference.facts import Facts
from manyarms.inference.tallies import Tallies

_GRID = 128  # means of the arm that are looked at, then again around the best of them
_ROUNDS = 6


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
        Their difference, and a confidence interval for that of the true means. It is valid at any
        time, and although the arm was chosen because it looks best.
    ratio, ratio_interval
        `mean / control_mean`, with a confidence interval that holds together with the other one.
        It is NaN without an interval if the control has earned nothing, or if rewards may be
        negative.
    told, control_told
        The numbers of their rewards.
    confidence
        The probability.
    rate
        Whether means are rates, which are shown in percent.
    missing
        Why there is nothing to compare yet, in words; else empty. Then numbers are NaN or infinite.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Prospector().live(arms=["a", "b", "c"], seed=1, control="current", share=0.3)
    >>> for pull in live.ask(3000):
    ...     live.tell(pull, reward=float(pull.arm != "current" or pull.id % 2 == 0))
    >>> print(live.uplift())
    +109 % [84.1, 141] over current (47.8 % after 894 rewards; 95 % confidence, valid at any time)
    >>> print(ma.Prospector().live(n_arms=9).uplift())
    Nothing to compare yet: there is no control. Set `control` when the experiment begins.
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
        """Whether the arm is better than the control; None if neither is shown."""
        low, high = self.interval
        return True if low > 0.0 else False if high < 0.0 else None

    def _columns(self) -> dict[str, list[Any]]:
        words = ("interval", "ratio_interval", "rate", "missing")
        named = {name: [value] for name, value in vars(self).items() if name not in words}
        for name, limits in (("", self.interval), ("ratio_", self.ratio_interval)):
            named |= {f"{name}low": [limits[0]], f"{name}high": [limits[1]]}
        return named

    def _caption(self) -> list[str]:
        return [str(self)]

    def __str__(self) -> str:
        if self.missing:
            return f"Nothing to compare yet: {self.missing}"
        if self.arm == self.control:
            return f"The recommended arm is the control, {plain(str(self.control), at_most=60)}"
        today = (
            f"{mean_text(self.control_mean, self.rate)} after {count(self.control_told, 'reward')}"
        )
        sure = f"{100 * self.confidence:g} % confidence, valid at any time"
        return f"{self.amount} over {plain(str(self.control), at_most=60)} ({today}; {sure})"

    @property
    def amount(self) -> str:
        """The uplift in percent with its interval; if there is no ratio, the difference."""
        if math.isnan(self.ratio):
            low, high = map(signed, self.interval)
            return f"{signed(self.difference, plus=True)} [{low}, {high}]"
        low, high = (signed(100.0 * (limit - 1.0)) for limit in self.ratio_interval)
        return f"{signed(100.0 * (self.ratio - 1.0), plus=True)} % [{low}, {high}]"


def signed(value: float, *, plus: bool = False) -> str:
    """Return a number in three digits, with a proper minus.

    >>> signed(12.44, plus=True), signed(-0.5), signed(float("inf"))
    ('+12.4', '−0.5', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return (f"+{text}" if plus and value > 0 else text).replace("-", "−")


def check_confidence(confidence: Any) -> float:
    """Return a probability, or raise."""
    return check_number("confidence", confidence, above=0.0, below=1.0)


def why_no_uplift(facts: Facts, best: int | None) -> str:
    """Return why the recommended arm cannot be compared with the control; empty if it can."""
    if facts.control is None:
        return "there is no control. Set `control` when the experiment begins."
    if best is None:
        return "no reward has been told yet for any arm in play."
    if facts.control.told == 0:
        return f"no reward of the control {facts.control.name!r} has been told yet."
    return ""


def uplift_of(tallies: Tallies, confidence: float) -> Uplift:
    """Compare the recommended arm with the control; if that is not possible, say why."""
    facts, best = tallies.facts, tallies.kept()
    if missing := why_no_uplift(facts, best):
        control = facts.control
        name, seen = (None, 0) if control is None else (control.name, control.told)
        return nothing_to_compare(name, seen, confidence, missing)
    assert best is not None
    assert facts.control is not None
    told, total = int(tallies.told[best]), float(tallies.total[best])
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
        arm=facts.name_of(int(tallies.arm[best])),
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
        rate=tallies.rate,
    )


def nothing_to_compare(
    control: str | int | None, control_told: int, confidence: float, missing: str
) -> Uplift:
    """Return the answer where there is nothing to compare."""
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

    `arm` and `control` are the number and the sum of their rewards, and the arm is number `place`,
    from 1, in the order of first pulls.

    >>> limits = compare((800, 240.0), (100, 20.0), place=1, error=0.05, bounds=(0, 1), sigma=0.5)
    >>> [tuple(round(limit, 3) for limit in some) for some in limits]
    [(-0.1, 0.261), (0.716, 3.917)]
    """
    weight, most = float(spent_error(1.0, place)), 4.0 / error
    own = log_evidence(*control, control[1] / control[0], bounds=bounds, sigma=sigma)
    least = math.exp(float(own))  # what C is at least

    def todays(means: Numbers) -> tuple[Numbers, Numbers]:
        """Return the ends of the control's means that go with means of the arm, if there are any.

        Where there is none, the lower end is infinite, and the upper one minus infinite.
        """
        evidence = log_evidence(*arm, means, bounds=bounds, sigma=sigma)
        weighed = weight * np.exp(np.minimum(evidence, 700.0))
        left = (most - weighed) / (2.0 + weighed)
        there = left > least
        count, total = (np.full(means.shape, float(number)) for number in control)
        errors = 1.0 / np.where(there, left, most)
        low, high = uniform_limits(count, total, bounds=bounds, sigma=sigma, error=errors)
        return np.where(there, low, np.inf), np.where(there, high, -np.inf)

    # the means of the arm that go with the control's own mean: no others go with any
    widest = weight * (1.0 + least) / (most - 2.0 * least)
    ends = uniform_limits(*arm, bounds=bounds, sigma=sigma, error=widest)

    def largest(value: Callable[[Numbers, Numbers, Numbers], Numbers]) -> float:
        """Return the largest value of what has a single peak, looking ever closer."""
        begin, end, found = float(ends[0]), float(ends[1]), -math.inf
        for _ in range(_ROUNDS):
            means = np.linspace(begin, end, _GRID)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                values = value(means, *todays(means))
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
