"""Verdicts on claims. A claim is a list of parts, each decided by a confidence interval.

A part holds if its interval lies entirely on the claimed side of a bound, fails if it lies entirely
on the other side, and is undecided otherwise. The intervals of a claim share an error of 5 %
(Bonferroni), so that with 95 % probability all of them contain the truth. A claim *holds* if all
its parts hold, *fails* if some part fails, and is *undecided* otherwise.

Intervals use Gaffke's bound for a known range, which allows for rare, costly runs that were not
seen. Its coverage is proved if regret takes only two values, and conjectured otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval, ratio_interval

_ERROR = 0.05  # of a claim

Numbers = NDArray[np.float64]


class Verdict(StrEnum):
    """What the runs say about a claim, or about a part of one."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "undecided"


@dataclass(frozen=True)
class Part:
    """One inequality of a claim."""

    what: str  # what was measured
    rule: str  # what the claim requires, such as "> 0"
    interval: Interval  # nan for facts that do not depend on chance
    verdict: Verdict

    def __str__(self) -> str:
        """Return the part as a line of text."""
        estimate, low, high = map(short, self.interval)
        ends = "" if math.isnan(self.interval.low) else f" [{low}, {high}]"
        return f"{self.what}: {estimate}{ends}, required {self.rule}: {self.verdict}"


Ask = Callable[[float], Part]  # decides a part, given the confidence of its interval
Rule = Callable[..., Part]  # of what was measured, its interval, and bounds: more, less, within


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the verdict on it.

    Attributes
    ----------
    number, text
        The number and the sentence.
    reading
        Where the paper says it, and how we interpret its words.
    parts
        The inequalities that must hold.
    notes
        Other findings.
    stand_in
        Whether its data are missing on this machine. Other data were played, which decide nothing.
    """

    number: int
    text: str
    reading: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    stand_in: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim."""
        found = {part.verdict for part in self.parts}
        if self.stand_in or not found:
            return Verdict.OPEN
        if Verdict.FAILS in found:
            return Verdict.FAILS
        return Verdict.OPEN if Verdict.OPEN in found else Verdict.HOLDS

    @property
    def said(self) -> str:
        """The verdict in words."""
        return "not checked" if self.stand_in else str(self.verdict)

    @property
    def deciding(self) -> list[Part]:
        """The parts that determine the verdict; none if it is not checked."""
        if self.stand_in:
            return []
        return [part for part in self.parts if part.verdict == self.verdict]

    @property
    def counts(self) -> str:
        """How many parts have the claim's verdict; empty if all do.

        >>> yes, no = exactly("arms", 3, "= 3", True), exactly("best arms", 2, "= 1", False)
        >>> Claim(1, "3 arms, 1 of them best.", "", (yes, no)).counts
        '1 of 2 parts'
        """
        if self.stand_in or len(self.deciding) == len(self.parts):
            return ""
        return f"{len(self.deciding)} of {len(self.parts)} parts"


def decided(asked: Iterable[Part | Ask]) -> tuple[Part, ...]:
    """Decide the parts of a claim; those that depend on chance share the claim's error.

    >>> def larger(confidence):
    ...     return more(f"at {confidence:g}", Interval(2.0, 1.0, 3.0))
    >>> [part.what for part in decided([larger, exactly("arms", 3, "= 3", True), larger])]
    ['at 0.975', 'arms', 'at 0.975']
    """
    parts = list(asked)
    by_chance = sum(not isinstance(part, Part) for part in parts)
    confidence = 1.0 - _ERROR / max(1, by_chance)
    return tuple(part if isinstance(part, Part) else part(confidence) for part in parts)


def either(first: Ask, second: Ask) -> Ask:
    """Require that at least one of two holds; they share the error. Return the deciding part."""
    order = (Verdict.HOLDS, Verdict.OPEN, Verdict.FAILS)

    def ask(confidence: float) -> Part:
        parts = [each(0.5 + confidence / 2) for each in (first, second)]
        return min(parts, key=lambda part: order.index(part.verdict))

    return ask


def mean(what: str, values: Numbers, most: float, rule: Rule, *bounds: float) -> Ask:
    """Require a rule of the mean of values between -`most` and `most`."""

    def ask(confidence: float) -> Part:
        interval = mean_interval(values, bounds=(-most, most), confidence=confidence)
        return rule(what, interval, *bounds)

    return ask


def ratio(
    what: str,
    over: Numbers,
    under: Numbers,
    most: tuple[float, float],
    rule: Rule,
    *bounds: float,
) -> Ask:
    """Require a rule of the mean of `over` divided by the mean of `under`.

    Values are at least 0 and at most the entry of `most`.
    """

    def ask(confidence: float) -> Part:
        interval = ratio_interval(over, under, at_most=most, confidence=confidence)
        return rule(what, interval, *bounds)

    return ask


def more(what: str, interval: Interval, bound: float = 0.0) -> Part:
    """Require a value above a bound."""
    return _part(what, f"> {short(bound)}", interval, bound, math.inf)


def less(what: str, interval: Interval, bound: float = 0.0) -> Part:
    """Require a value below a bound."""
    return _part(what, f"< {short(bound)}", interval, -math.inf, bound)


def within(what: str, interval: Interval, low: float, high: float) -> Part:
    """Require a value between two bounds."""
    return _part(what, f"in [{short(low)}, {short(high)}]", interval, low, high)


def exactly(what: str, value: float, rule: str, holds: bool) -> Part:
    """State a fact that does not depend on chance."""
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Part(what, rule, Interval(value, math.nan, math.nan), verdict)


def _part(what: str, rule: str, interval: Interval, low: float, high: float) -> Part:
    if low < interval.low and interval.high < high:  # false if the ends are nan
        return Part(what, rule, interval, Verdict.HOLDS)
    fails = interval.high < low or interval.low > high
    return Part(what, rule, interval, Verdict.FAILS if fails else Verdict.OPEN)


def short(number: float) -> str:
    """Return a number with at least three significant digits.

    >>> short(1234.5), short(0.66667)
    ('1234', '0.667')
    """
    if not math.isfinite(number):
        return str(number)
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def counted(verdicts: Iterable[Verdict], *, fails: str = "") -> str:
    """Return the number of each verdict as text; `fails` is added to the word "fails".

    >>> counted([Verdict.HOLDS, Verdict.OPEN, Verdict.OPEN])
    '1 holds, 0 fail, 2 are undecided'
    """
    found = Counter(verdicts)
    words = {
        Verdict.HOLDS: ("holds", "hold"),
        Verdict.FAILS: (f"fails {fails}".rstrip(), f"fail {fails}".rstrip()),
        Verdict.OPEN: ("is undecided", "are undecided"),
    }
    return ", ".join(
        f"{found[kind]} {one if found[kind] == 1 else several}"
        for kind, (one, several) in words.items()
    )
