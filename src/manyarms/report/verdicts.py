"""Verdicts on claims: a claim is a list of parts, each decided by a confidence interval.

A part holds if its interval lies wholly on the claimed side of a bound, fails if it lies wholly on
the other, and is undecided otherwise. The intervals of a claim share its error (Bonferroni), so
that with 95 % all of them hold at once, and with them the verdict on the claim:

- it *holds* if all its parts do;
- it *holds in part* if some parts hold and some fail;
- it *fails* if some part fails and none holds;
- it is *undecided* if no part fails and some are undecided.

A claim about data that are not there is undecided, whatever a stand-in for them says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from manyarms.core.statistics import Interval
from manyarms.report.text import Table, for_json

_SHOWN = 6  # parts of a claim that the table lists
_ERROR = 0.05  # of a claim


class Verdict(StrEnum):
    """What can be said of a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "fails"
    OPEN = "undecided"


OF_PARTS = (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN)


@dataclass(frozen=True)
class Part:
    """One inequality of a claim."""

    what: str  # was measured, in words
    rule: str  # that the claim asks for, such as "> 0"
    interval: Interval
    verdict: Verdict

    def __str__(self) -> str:
        estimate, low, high = map(_short, self.interval)
        ends = "" if math.isnan(self.interval.low) else f" [{low}, {high}]"
        return f"{self.what}: {estimate}{ends}, required {self.rule}: {self.verdict}"


Ask = Callable[[float], Part]  # decides a part, given the confidence of its interval


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what our runs say of it."""

    number: int
    text: str
    parts: tuple[Part, ...]
    replications: int
    reading: str = ""  # what its words are taken to mean
    notes: tuple[str, ...] = ()  # what else the runs say
    stand_in: bool = False  # whether data were not there, and others stood in for them

    def __post_init__(self) -> None:
        """Decide nothing from a stand-in: what it says becomes a note."""
        if self.stand_in:
            said = f"On the stand-in, of its parts {counted(part.verdict for part in self.parts)}."
            parts = tuple(replace(part, verdict=Verdict.OPEN) for part in self.parts)
            object.__setattr__(self, "notes", (*self.notes, *([said] if parts else [])))
            object.__setattr__(self, "parts", parts)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole."""
        verdicts = {part.verdict for part in self.parts}
        if Verdict.FAILS in verdicts:
            return Verdict.PARTLY if Verdict.HOLDS in verdicts else Verdict.FAILS
        return Verdict.OPEN if Verdict.OPEN in verdicts or not verdicts else Verdict.HOLDS

    @property
    def said(self) -> str:
        """The verdict in words, which say so if there was only a stand-in."""
        return f"{self.verdict} (only a stand-in)" if self.stand_in else str(self.verdict)

    @property
    def deciding(self) -> list[Part]:
        """The parts that the verdict is due to."""
        if self.verdict == Verdict.PARTLY:
            return [*self.parts_that(Verdict.FAILS), *self.parts_that(Verdict.OPEN)]
        return self.parts_that(self.verdict)

    @property
    def why(self) -> str:
        """Why it is undecided; nothing if it is not."""
        if self.verdict != Verdict.OPEN:
            return ""
        if self.stand_in:
            return (
                "Its data are not on this machine. Others stood in for them, which says nothing "
                "about the claim."
            )
        if not self.parts:
            return "Nothing was measured for it here."
        return (
            f"No part fails, but {len(self.deciding)} of {len(self.parts)} are undecided: the "
            f"interval contains the bound. More runs make it narrower."
        )

    def counts(self) -> str:
        """Return how many parts hold, fail, and are undecided: "2 / 0 / 1"."""
        return " / ".join(str(len(self.parts_that(kind))) for kind in OF_PARTS)

    def parts_that(self, verdict: Verdict) -> list[Part]:
        """Return the parts with this verdict."""
        return [part for part in self.parts if part.verdict == verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which has no infinity: an open end is None."""
        return {
            "number": self.number,
            "claim": self.text,
            "reading": self.reading,
            "verdict": str(self.verdict),
            "said": self.said,
            "why": self.why,
            "notes": list(self.notes),
            "stand_in": self.stand_in,
            "replications": self.replications,
            "parts": [for_json(asdict(part)) for part in self.parts],
        }


def decided(asked: Iterable[Part | Ask]) -> tuple[Part, ...]:
    """Decide the parts of a claim; those that chance is involved in share the claim's error.

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
    """Ask that one of two holds; they share the error. Shown is the one that decides."""
    order = (Verdict.HOLDS, Verdict.OPEN, Verdict.FAILS)

    def ask(confidence: float) -> Part:
        parts = [each(0.5 + confidence / 2) for each in (first, second)]
        return min(parts, key=lambda part: order.index(part.verdict))

    return ask


def more(what: str, interval: Interval, bound: float = 0.0) -> Part:
    """Ask that something is larger than a bound."""
    return Part(what, f"> {_short(bound)}", interval, _decide(interval, bound, math.inf))


def less(what: str, interval: Interval, bound: float = 0.0) -> Part:
    """Ask that something is smaller than a bound."""
    return Part(what, f"< {_short(bound)}", interval, _decide(interval, -math.inf, bound))


def within(what: str, interval: Interval, low: float, high: float) -> Part:
    """Ask that something lies between two bounds."""
    rule = f"in [{_short(low)}, {_short(high)}]"
    return Part(what, rule, interval, _decide(interval, low, high))


def exactly(what: str, value: float, rule: str, holds: bool) -> Part:
    """State a fact that no chance is involved in."""
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Part(what, rule, Interval(value, math.nan, math.nan), verdict)


def _decide(interval: Interval, low: float, high: float) -> Verdict:
    if math.isnan(interval.low):
        return Verdict.OPEN
    if low < interval.low and interval.high < high:
        return Verdict.HOLDS
    return Verdict.FAILS if interval.high < low or interval.low > high else Verdict.OPEN


def _short(number: float) -> str:
    if not math.isfinite(number):
        return str(number)
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts on claims, and on their parts.

    >>> fact = exactly("arms", 3, "= 3", True)
    >>> tally([Claim(1, "There are 3 arms.", (fact,), 10)])
    'Of 1 claims, 1 holds, 0 fail, 0 are undecided. Of their 1 parts, 1 holds, 0 fail, 0 are ...'
    """
    parts = [part.verdict for claim in claims for part in claim.parts]
    return (
        f"Of {len(claims)} claims, {counted(claim.verdict for claim in claims)}. Of their "
        f"{len(parts)} parts, {counted(parts)}."
    )


def why_undecided(claims: Sequence[Claim]) -> list[str]:
    """Say which claims are undecided, and why: a sentence for each reason.

    >>> why_undecided([Claim(7, "There are 3 arms.", (), 10)])
    ['Undecided: claim 7, for which nothing was measured.']
    """
    reasons: dict[str, list[str]] = {}
    for claim in claims:
        if claim.verdict == Verdict.OPEN:
            reason = "whose intervals contain a bound. More replications make them narrower"
            if claim.stand_in:
                reason = "whose data are not on this machine. A stand-in for them decides nothing"
            elif not claim.parts:
                reason = "for which nothing was measured"
            reasons.setdefault(reason, []).append(str(claim.number))
    return [
        f"Undecided: claim{'s' * (len(which) > 1)} {', '.join(which)}, {reason}."
        for reason, which in reasons.items()
    ]


def counted(verdicts: Iterable[Verdict]) -> str:
    """Say how many there are of each verdict; of holding in part, if there are some.

    >>> counted([Verdict.HOLDS, Verdict.OPEN, Verdict.OPEN])
    '1 holds, 0 fail, 2 are undecided'
    """
    found = Counter(verdicts)
    several = dict(zip(Verdict, ("hold", "hold in part", "fail", "are undecided"), strict=True))
    one = dict(zip(Verdict, ("holds", "holds in part", "fails", "is undecided"), strict=True))
    return ", ".join(
        f"{found[kind]} {one[kind] if found[kind] == 1 else word}"
        for kind, word in several.items()
        if found[kind] or kind in OF_PARTS
    )


def claims_as_markdown(claims: Sequence[Claim], notes: Sequence[str] = ()) -> str:
    """Return the claims as a Markdown page, with the parts that decide them."""
    rows = []
    for claim in claims:
        shown = [str(part) for part in claim.deciding[:_SHOWN]]
        if len(claim.deciding) > _SHOWN:
            shown.append(f"and {len(claim.deciding) - _SHOWN} more")
        said = "<br>".join(filter(None, (claim.text, claim.reading and f"*{claim.reading}*")))
        why = "<br>".join(filter(None, (claim.why, *shown, *claim.notes)))
        rows.append([str(claim.number), said, claim.said, claim.counts(), why])
    head = ["", "claim, and how it is read", "verdict", "hold / fail / undecided", "what decides"]
    blocks = [
        f"# The paper's claims, decided by {claims[0].replications} replications",
        " ".join([tally(claims), *why_undecided(claims)]),
        "A part of a claim holds or fails if its interval lies entirely on one side of the bound. "
        "The intervals of a claim share its error of 5 %, and allow for costly runs that were not "
        "seen. A claim holds if all its parts do, holds in part if some hold and some fail, fails "
        "if some fail and none holds, and is undecided if none fails and some are undecided.",
        "\n".join(f"- {note}" for note in notes),
        Table(head, rows).markdown(),
    ]
    return "\n\n".join(filter(None, blocks))


def revisions(few: Sequence[Claim], many: Sequence[Claim]) -> list[str]:
    """Say where many replications revise what few of them suggested."""
    notes = []
    for before, after in zip(few, many, strict=True):
        changed = sum(
            a.verdict != b.verdict for a, b in zip(before.parts, after.parts, strict=False)
        )
        if before.verdict != after.verdict:
            notes.append(
                f"Claim {after.number}: {before.replications} replications said "
                f'"{before.verdict}", {after.replications} say "{after.verdict}".'
            )
        elif changed:
            notes.append(
                f"Claim {after.number}: the verdict stands, but {changed} of its "
                f"{len(after.parts)} parts are decided differently than by {before.replications}."
            )
    return notes
