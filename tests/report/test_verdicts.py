"""Verdicts: an interval decides, or leaves it open."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from manyarms.report.verdicts import (
    Ask,
    Claim,
    Part,
    Verdict,
    claims_as_markdown,
    conclusion,
    counted,
    decided,
    either,
    exactly,
    less,
    more,
    revisions,
    tally,
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


def test_there_are_four_verdicts_on_a_claim() -> None:
    assert _claim(YES, YES).verdict == HOLDS
    assert _claim(YES, WHO_KNOWS).verdict == OPEN
    assert _claim(YES, WHO_KNOWS, NO).verdict == Verdict.PARTLY
    assert _claim(WHO_KNOWS, NO).verdict == FAILS
    assert _claim().verdict == OPEN
    assert _claim(YES, WHO_KNOWS, NO, YES).counts() == "2 / 1 / 1"


def test_an_undecided_claim_says_why() -> None:
    assert _claim(YES, WHO_KNOWS).why.startswith("No part fails, but 1 of 2 are undecided")
    assert _claim().why == "Nothing was measured for it here."
    assert _claim(YES, NO).why == ""


def test_a_stand_in_decides_nothing() -> None:
    claim = replace(_claim(YES), stand_in=True)
    assert (claim.verdict, claim.said) == (OPEN, "not checked (only a stand-in)")
    assert (claim.counts(), claim.notes[-1]) == (
        "0 / 0 / 1",
        "On the stand-in, of its parts 1 holds, 0 fail, 0 are undecided.",
    )
    page = claims_as_markdown([claim])
    assert "| not checked (only a stand-in) |" in page
    assert "whose data are not on this machine" in page
    assert "not on this machine" in claim.as_dict()["why"]


def test_parts_that_depend_on_chance_share_the_error() -> None:
    asked: list[float] = []

    def ask(confidence: float) -> Part:
        asked.append(confidence)
        return YES

    assert decided([ask, exactly("x", 3, "= 3", True), *[ask] * 4])[1].what == "x"
    assert asked == [pytest.approx(0.99)] * 5
    decided([ask])
    assert asked[-1] == 0.95


@pytest.mark.slow
def test_a_family_of_true_parts_is_rarely_wrong() -> None:
    """Of 120 claims with 20 true parts each, at most 16 have a part that is said to fail.

    With probability 0.05 each, more than 16 do with probability 1e-4; uncorrected, 64 % would.
    """
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(120):
        runs = np.where(rng.random((20, 40)) < 0.02, 1000.0, rng.normal(10.0, 3.0, (20, 40)))
        truth = 0.02 * 1000.0 + 0.98 * 10.0

        def ask(own: NDArray[np.float64], truth: float = truth) -> Ask:
            bounds = (-20.0, 1000.0)
            return lambda sure: within(
                "mean", mean_interval(own, bounds=bounds, confidence=sure), truth, truth
            )

        wrong += any(part.verdict == FAILS for part in decided(map(ask, runs)))
    assert wrong <= 16


def test_one_of_two_is_enough() -> None:
    asked: list[float] = []

    def give(part: Part) -> Ask:
        def ask(sure: float) -> Part:
            asked.append(sure)
            return part

        return ask

    assert either(give(WHO_KNOWS), give(YES))(0.9) is YES
    assert either(give(NO), give(WHO_KNOWS))(0.9) is WHO_KNOWS
    assert either(give(NO), give(NO))(0.9) is NO
    assert asked == [pytest.approx(0.95)] * 6


def test_counts_in_words() -> None:
    assert counted([]) == "0 hold, 0 fail, 0 are undecided"
    some = [HOLDS, Verdict.PARTLY, FAILS, OPEN]
    assert counted(some) == "1 holds, 1 holds in part, 1 fails, 1 is undecided"


def test_the_page_shows_what_decides() -> None:
    page = claims_as_markdown([_claim(YES, NO)], ["A note."])
    assert "- A note." in page
    row = page.splitlines()[-1]
    assert row == (
        "| 3 | All is well. | holds in part | holds in part | holds in part | 1 / 1 / 0 | "
        "n: -2 [-3, -1], required > 0: fails |"
    )
    many = claims_as_markdown([replace(_claim(*[NO] * 8), reading="Roughly.", notes=("Beside.",))])
    assert "| All is well.<br>*Roughly.* | fails | fails | fails |" in many
    assert "<br>and 2 more<br>Beside. |" in many


def test_plain_data_has_no_nan() -> None:
    unbounded = more("z", Interval(2, -math.inf, math.inf))
    data = _claim(YES, exactly("x", 3, "= 3", True), unbounded).as_dict()
    assert data["verdict"] == "undecided"
    held = {"what": "y", "rule": "> 0", "interval": [2, 1, 3], "verdict": "holds"}
    assert data["parts"][0] | held == data["parts"][0]
    json.dumps(data, allow_nan=False)
    assert [part["interval"] for part in data["parts"][1:]] == [[3, None, None], [2, None, None]]


def test_more_replications_may_revise_fewer() -> None:
    few, many = [_claim(YES, WHO_KNOWS)], [_claim(YES, NO, replications=2000)]
    assert revisions(few, many) == [
        'Claim 3: 100 replications said "undecided", up to 2000 say "holds in part".'
    ]
    assert revisions([_claim(NO, WHO_KNOWS)], [_claim(NO, NO)]) == [
        "Claim 3: the verdict stands, but 1 of its 2 parts are decided differently than by 100."
    ]
    assert revisions(few, few) == []


def test_a_claim_is_told_in_three_ways() -> None:
    """On average it is open; the paper's means hold; so do nearly all runs."""
    part = replace(WHO_KNOWS, usual=HOLDS, kept=98, runs=100, reads=True, needed=1234.0)
    claim = _claim(part)
    assert (claim.verdict, claim.usually, claim.reads) == (OPEN, HOLDS, HOLDS)
    assert claim.in_nearly_every_run
    assert not _claim(replace(part, kept=94)).in_nearly_every_run
    assert "in 98 of 100 runs" in str(part)
    told = " ".join(conclusion([claim, replace(_claim(YES, NO), number=5)], seconds=0.1))
    assert "nearly every run (95 % of them, for each part): claim 3." in told
    assert "rare misses included: none; in part claim 5; what fails: none." in told
    assert "As the paper reads, by means of 100 runs as they are: claim 3 hold" in told
    assert "cannot tell: claim 3. About 1,200 runs and 2 minutes of one processor" in told
    never = conclusion([_claim(replace(part, needed=math.inf))])[-1]
    assert "More than a million runs" in never


def test_what_a_stand_in_says_is_not_counted() -> None:
    claims = [_claim(YES), replace(_claim(YES, WHO_KNOWS), number=10, stand_in=True)]
    assert tally(claims).startswith("Of 1 claims, 1 holds, 0 fail, 0 are undecided.")
    told = conclusion(claims)
    assert told[-1].startswith("Not counted: claim 10. Their data are not on this machine")
    assert not any("cannot tell" in line for line in told)


def test_one_failing_part_decides_a_claim_and_holding_needs_all() -> None:
    def left(reads: bool, needed: float) -> Part:
        return replace(WHO_KNOWS, reads=reads, needed=needed)

    assert _claim(YES, left(True, 500.0), left(True, 900.0)).needed == 900.0
    assert _claim(YES, left(True, 500.0), left(False, 700.0), left(False, 600.0)).needed == 600.0
