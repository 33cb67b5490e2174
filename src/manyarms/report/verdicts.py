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
_TOO_MANY = 1e6  # runs


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
    interval: Interval  # of the mean
    verdict: Verdict  # on average, rare misses included
    wanted: tuple[float, float] = (-math.inf, math.inf)  # where the rule wants the interval
    usual: Verdict | None = None  # of the median run; None for what chance is not involved in
    kept: int = 0  # runs that keep the rule
    runs: int = 0
    reads: bool | None = None  # whether means of 100 runs keep it, as in the paper's figures
    needed: float = math.nan  # runs that would decide it on average, about

    @property
    def in_nearly_every_run(self) -> bool:
        """Whether 95 % of the runs keep the rule; facts do."""
        return self.verdict == Verdict.HOLDS if not self.runs else self.kept >= 0.95 * self.runs

    def __str__(self) -> str:
        estimate, low, high = map(_short, self.interval)
        ends = "" if math.isnan(self.interval.low) else f" [{low}, {high}]"
        often = f", in {self.kept} of {self.runs} runs" if self.runs else ""
        return f"{self.what}: {estimate}{ends}, required {self.rule}: {self.verdict}{often}"


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
        return _of_all(part.verdict for part in self.parts)

    @property
    def usually(self) -> Verdict:
        """The verdict if its parts are about the usual run, not about means."""
        return _of_all(part.usual or part.verdict for part in self.parts)

    @property
    def reads(self) -> Verdict:
        """The verdict of a reader of the paper: means of 100 runs are compared as they are."""
        told = {True: Verdict.HOLDS, False: Verdict.FAILS}
        return _of_all(
            part.verdict if part.reads is None else told[part.reads] for part in self.parts
        )

    @property
    def in_nearly_every_run(self) -> bool:
        """Whether 95 % of the runs keep the rule of each part."""
        return bool(self.parts) and all(part.in_nearly_every_run for part in self.parts)

    @property
    def needed(self) -> float:
        """About how many runs would decide it: one part that fails is enough, or all must hold."""
        open_parts = self.parts_that(Verdict.OPEN)
        failing = [part.needed for part in open_parts if part.reads is False]
        return min(failing, default=max((part.needed for part in open_parts), default=math.nan))

    @property
    def said(self) -> str:
        """The verdict in words, which say so if there was only a stand-in."""
        return "not checked (only a stand-in)" if self.stand_in else str(self.verdict)

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
            "usually": str(self.usually),
            "reads": str(self.reads),
            "in_nearly_every_run": self.in_nearly_every_run,
            "why": self.why,
            "notes": list(self.notes),
            "stand_in": self.stand_in,
            "replications": self.replications,
            "parts": [for_json(asdict(part)) for part in self.parts],
        }


def _of_all(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    if Verdict.FAILS in found:
        return Verdict.PARTLY if Verdict.HOLDS in found else Verdict.FAILS
    return Verdict.OPEN if Verdict.OPEN in found or not found else Verdict.HOLDS


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
    return _part(what, f"> {_short(bound)}", interval, bound, math.inf)


def less(what: str, interval: Interval, bound: float = 0.0) -> Part:
    """Ask that something is smaller than a bound."""
    return _part(what, f"< {_short(bound)}", interval, -math.inf, bound)


def within(what: str, interval: Interval, low: float, high: float) -> Part:
    """Ask that something lies between two bounds."""
    rule = f"in [{_short(low)}, {_short(high)}]"
    return _part(what, rule, interval, low, high)


def _part(what: str, rule: str, interval: Interval, low: float, high: float) -> Part:
    return Part(what, rule, interval, _decide(interval, low, high), wanted=(low, high))


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
    checked = [claim for claim in claims if not claim.stand_in]
    parts = [part.verdict for claim in checked for part in claim.parts]
    return (
        f"Of {len(checked)} claims, {counted(claim.verdict for claim in checked)}. Of their "
        f"{len(parts)} parts, {counted(parts)}."
    )


def conclusion(claims: Sequence[Claim], seconds: float = math.nan) -> list[str]:
    """Return the end of a report: what usually holds, what holds on average, what is left.

    `seconds` is what a run of two policies takes of one processor, about.
    """
    checked = [claim for claim in claims if not claim.stand_in]
    sure = {kind: [c for c in checked if c.verdict == kind] for kind in Verdict}
    shown = [
        f"What holds in nearly every run (95 % of them, for each part): "
        f"{_numbers(c for c in checked if c.in_nearly_every_run)}. In the usual run: "
        f"{_numbers(c for c in checked if c.usually == Verdict.HOLDS)}; in part "
        f"{_numbers(c for c in checked if c.usually == Verdict.PARTLY)}.",
        f"What holds on average for sure, rare misses included: {_numbers(sure[Verdict.HOLDS])}; "
        f"in part {_numbers(sure[Verdict.PARTLY])}; what fails: {_numbers(sure[Verdict.FAILS])}.",
        f"As the paper reads, by means of 100 runs as they are: "
        f"{_numbers(c for c in checked if c.reads == Verdict.HOLDS)} hold; in part "
        f"{_numbers(c for c in checked if c.reads == Verdict.PARTLY)}; "
        f"{_numbers(c for c in checked if c.reads == Verdict.FAILS)} fail.",
    ]
    shown += [
        f"What these runs cannot tell: claim {claim.number}. {_wanted(claim, seconds)}"
        for claim in sure[Verdict.OPEN]
    ]
    if apart := [claim for claim in claims if claim.stand_in]:
        shown.append(
            f"Not counted: {_numbers(apart)}. Their data are not on this machine, and a stand-in "
            f"for them decides nothing."
        )
    return shown


def _wanted(claim: Claim, seconds: float) -> str:
    """Say how many runs and minutes would decide a claim."""
    if not claim.parts:
        return "Nothing was measured for it."
    if not claim.needed < _TOO_MANY:
        return "More than a million runs would be needed: the mean is too near the bound."
    runs = float(f"{claim.needed:.2g}")
    minutes = max(1.0, runs * seconds / 60)
    time = "" if math.isnan(seconds) else f" and {minutes:,.0f} minutes of one processor"
    return f"About {runs:,.0f} runs{time} would decide it, if they are like these (an estimate)."


def _numbers(claims: Iterable[Claim]) -> str:
    """Name claims by their numbers.

    >>> _numbers([Claim(1, "", (), 10), Claim(4, "", (), 10)]), _numbers([])
    ('claims 1, 4', 'none')
    """
    found = [str(claim.number) for claim in claims]
    return f"claim{'s' * (len(found) > 1)} {', '.join(found)}" if found else "none"


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
                continue
            if not claim.parts:
                reason = "for which nothing was measured"
            reasons.setdefault(reason, []).append(str(claim.number))
    said = [
        f"Undecided: claim{'s' * (len(which) > 1)} {', '.join(which)}, {reason}."
        for reason, which in reasons.items()
    ]
    if apart := [claim for claim in claims if claim.stand_in]:
        said.append(
            f"Apart: {_numbers(apart)}, whose data are not on this machine. A stand-in for them "
            f"decides nothing."
        )
    return said


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
        read = "" if claim.stand_in else str(claim.reads)
        usual = "" if claim.stand_in else _usual(claim)
        rows.append([str(claim.number), said, read, usual, claim.said, claim.counts(), why])
    head = ["", "claim, and how it is read", "as the paper reads", "in the usual run"]
    head += ["for sure, on average", "hold / fail / undecided", "what decides"]
    blocks = [
        "# The paper's claims, decided by up to "
        f"{max(claim.replications for claim in claims)} replications",
        " ".join([tally(claims), *why_undecided(claims)]),
        "*As the paper reads* compares means of 100 runs as they are, which its figures show. *In "
        "the usual run* is about medians. *For sure* is about means, rare misses included.",
        "A part of a claim holds or fails if its interval lies entirely on one side of the bound. "
        "The intervals of a claim share its error of 5 %, and allow for costly runs that were not "
        "seen. A claim holds if all its parts do, holds in part if some hold and some fail, fails "
        "if some fail and none holds, and is undecided if none fails and some are undecided.",
        "\n".join(f"- {note}" for note in notes),
        Table(head, rows).markdown(),
    ]
    return "\n\n".join(filter(None, blocks))


def _usual(claim: Claim) -> str:
    nearly = ", in nearly every run" if claim.in_nearly_every_run else ""
    return f"{claim.usually}{nearly}"


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
                f'"{before.verdict}", up to {after.replications} say "{after.verdict}".'
            )
        elif changed:
            notes.append(
                f"Claim {after.number}: the verdict stands, but {changed} of its "
                f"{len(after.parts)} parts are decided differently than by {before.replications}."
            )
    return notes
