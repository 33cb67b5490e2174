"""Verdicts: an interval decides, or leaves it open."""

from __future__ import annotations

import math

import pytest

from manyarms.core.statistics import Interval
from manyarms.report.verdicts import (
    Claim,
    Part,
    Verdict,
    claims_as_markdown,
    exactly,
    less,
    more,
    revisions,
    within,
)

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        (more("x", Interval(2, 1, 3)), HOLDS),
        (more("x", Interval(2, -1, 5)), OPEN),
        (more("x", Interval(-2, -3, -1)), FAILS),
        (more("x", Interval(2, 1, 3), 2.5), OPEN),
        (less("x", Interval(2, 1, 3), 4), HOLDS),
        (less("x", Interval(2, 1, 3), 0.5), FAILS),
        (within("x", Interval(1, 0.8, 1.2), 0.5, 1.5), HOLDS),
        (within("x", Interval(1, 0.4, 1.2), 0.5, 1.5), OPEN),
        (within("x", Interval(2, 1.6, 2.4), 0.5, 1.5), FAILS),
        (within("x", Interval(0.1, 0.0, 0.2), 0.5, 1.5), FAILS),
        (more("x", Interval(2, math.nan, math.nan)), OPEN),
        (more("x", Interval(2, -math.inf, math.inf)), OPEN),
        (exactly("x", 3, "= 3", True), HOLDS),
        (exactly("x", 4, "= 3", False), FAILS),
    ],
)
def test_parts(part: Part, verdict: Verdict) -> None:
    assert part.verdict == verdict


def _claim(*parts: Part, replications: int = 100) -> Claim:
    return Claim(3, "All is well.", parts, replications)


YES, NO, WHO_KNOWS = (
    more("y", Interval(2, 1, 3)),
    more("n", Interval(-2, -3, -1)),
    more("w", Interval(0, -1, 1)),
)


def test_one_part_that_fails_fails_the_claim() -> None:
    assert _claim(YES, YES).verdict == HOLDS
    assert _claim(YES, WHO_KNOWS).verdict == OPEN
    assert _claim(YES, WHO_KNOWS, NO).verdict == FAILS
    assert _claim().verdict == OPEN
    assert _claim(YES, WHO_KNOWS, NO, YES).counts() == "2 / 1 / 1"


def test_the_page_shows_what_decides() -> None:
    page = claims_as_markdown([_claim(YES, NO)], ["A note."])
    assert "- A note." in page
    row = page.splitlines()[-1]
    assert row == (
        "| 3 | All is well. | does not hold | 1 / 1 / 0 | "
        "n: -2 [-3, -1], asked > 0: does not hold |"
    )


def test_plain_data_has_no_nan() -> None:
    unbounded = more("z", Interval(2, -math.inf, math.inf))
    data = _claim(YES, exactly("x", 3, "= 3", True), unbounded).as_dict()
    assert data["verdict"] == "undecided"
    held = {"what": "y", "rule": "> 0", "interval": [2, 1, 3], "verdict": "holds"}
    assert data["parts"][0] == held
    assert [part["interval"] for part in data["parts"][1:]] == [[3, None, None], [2, None, None]]


def test_more_replications_may_revise_fewer() -> None:
    few, many = [_claim(YES, WHO_KNOWS)], [_claim(YES, NO, replications=2000)]
    assert revisions(few, many) == [
        'Claim 3: 100 replications said "undecided", 2000 say "does not hold".'
    ]
    assert revisions([_claim(NO, WHO_KNOWS)], [_claim(NO, NO)]) == [
        "Claim 3: the verdict stands, but 1 of its 2 parts are decided otherwise than by 100."
    ]
    assert revisions(few, few) == []
