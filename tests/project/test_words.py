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


def test_advice_in_words_has_its_numbers() -> None:
    choosing = _page("choosing.md")
    assert "1.11 [0.79, 1.56]" in choosing
    assert "about 10^4 pulls or more for each arm" in choosing
    assert "up to 19 times as much with the horizon, and up to 49 times without it" in choosing
