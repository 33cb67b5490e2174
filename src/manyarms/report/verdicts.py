"""Verdicts on claims: a claim is a list of parts, each decided by a confidence interval.

A part holds if its interval lies wholly on the claimed side of a bound, fails if it lies wholly on
the other, and is undecided otherwise. A claim holds if all its parts do, and fails if one does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from manyarms.core.statistics import Interval
from manyarms.report.text import plain

__all__ = ["Claim", "Part", "Verdict", "claims_as_markdown", "exactly", "less", "more", "revisions"]
__all__ += ["within"]

_SHOWN = 6  # parts of a claim that the table lists


class Verdict(StrEnum):
    """What can be said of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "undecided"


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
        return f"{self.what}: {estimate}{ends}, asked {self.rule}: {self.verdict}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what our runs say of it."""

    number: int
    text: str
    parts: tuple[Part, ...]
    replications: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole."""
        verdicts = {part.verdict for part in self.parts}
        if Verdict.FAILS in verdicts:
            return Verdict.FAILS
        return Verdict.OPEN if Verdict.OPEN in verdicts or not verdicts else Verdict.HOLDS

    def counts(self) -> str:
        """Return how many parts hold, fail, and are undecided: "2 / 0 / 1"."""
        return " / ".join(str(len(self.parts_that(kind))) for kind in Verdict)

    def parts_that(self, verdict: Verdict) -> list[Part]:
        """Return the parts with this verdict."""
        return [part for part in self.parts if part.verdict == verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which has no infinity: an open end is None."""
        return {
            "number": self.number,
            "claim": self.text,
            "verdict": str(self.verdict),
            "replications": self.replications,
            "parts": [plain(asdict(part)) for part in self.parts],
        }


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


def claims_as_markdown(claims: Sequence[Claim], notes: Sequence[str] = ()) -> str:
    """Return the claims as a Markdown page, with the parts that decide them."""
    lines = [
        f"# The paper's claims, decided by {claims[0].replications} replications",
        "",
        "Intervals have 95 % confidence. A claim holds if all its parts do, and does not hold if",
        "one part does not.",
        "",
        *(f"- {note}" for note in notes),
        "",
        "| | claim | verdict | hold / fail / open | what decides |",
        "|---|---|---|---|---|",
    ]
    for claim in claims:
        deciding = claim.parts_that(claim.verdict)
        shown = "<br>".join(str(part) for part in deciding[:_SHOWN])
        if len(deciding) > _SHOWN:
            shown += f"<br>and {len(deciding) - _SHOWN} more"
        about = (claim.number, claim.text, claim.verdict, claim.counts(), shown)
        lines.append(f"| {' | '.join(map(str, about))} |")
    return "\n".join(lines)


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
                f"{len(after.parts)} parts are decided otherwise than by {before.replications}."
            )
    return notes
