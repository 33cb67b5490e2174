"""Sentences of the pages that must agree with what is proved and measured."""

from __future__ import annotations

from pathlib import Path

from manyarms.core import statistics

DOCS = Path(__file__).parents[2] / "docs"


def _page(name: str) -> str:
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


def test_pages_claim_no_more_of_our_interval_than_is_proved() -> None:
    assert "conjectured" in (statistics.__doc__ or "")
    start = _page("start.md")
    assert "conjectured for all others" in start
    assert "holds for every distribution of regret" not in start


def test_pareto_optimality_is_about_rates() -> None:
    assert "a policy whose *rate* is lower at one hardness has a higher rate at another" in _page(
        "theory.md"
    )


def test_choosing_has_its_numbers() -> None:
    choosing = _page("choosing.md")
    assert "1.14 [0.92, 1.42]" in choosing
    assert "195 times the least regret in its worst case, and Prospector 14 times" in choosing
    assert "up to 19 times as much as `ss-greedy`, and up to 49 times without" in choosing
