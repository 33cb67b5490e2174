"""Whether to go on, from what a service says of an experiment: for its page and for a terminal."""

from __future__ import annotations

from typing import Any, NamedTuple


def thousands(value: float) -> str:
    """Return a count.

    >>> thousands(995918)
    '995,918'
    """
    return f"{value:,.0f}"


class Judgement(NamedTuple):
    """What is said of an experiment: `kind` is a class of the page's styles."""

    kind: str  # good: may stop; open: go on; part: nothing known
    title: str
    why: str


def verdict(summary: Any) -> Judgement:
    """Return whether to go on, and why."""
    if summary.state == "empty":
        return Judgement("part", "No arms yet", "Add some: then the first ask is answered.")
    if summary.recommended is None:
        return Judgement("part", "Too early", "No reward was told yet.")
    over = summary.horizon is not None and summary.pulls >= summary.horizon
    if summary.state == "stopped" or over:
        why = "The experiment was stopped." if not over else "All pulls of the horizon were made."
        if summary.may_stop:
            return Judgement("good", "Done: deploy it", f"{why} {summary.advice}")
        unsure = "It is not shown to be good enough." if summary.may_stop is False else ""
        title = "Done: the best arm found"
        return Judgement("part", title, " ".join(filter(None, (why, unsure, _rivals(summary)))))
    if summary.may_stop is not None:
        title = "You may stop" if summary.may_stop else "Go on"
        why = f"{summary.advice} {_rivals(summary)}"
        return Judgement("good" if summary.may_stop else "open", title, why)
    if summary.rivals == 0:
        title = "Best of those tried" if summary.untried else "You may stop"
        return Judgement("good", title, _rivals(summary))
    return Judgement("open", "Go on", _rivals(summary))


def _rivals(summary: Any) -> str:
    """Return what speaks against the recommended arm."""
    if summary.rivals:
        arms = "1 tried arm" if summary.rivals == 1 else f"{thousands(summary.rivals)} tried arms"
        said = f"{arms} may still be better: the intervals overlap"
    else:
        said = "No tried arm may still be better: no interval overlaps with that of the best arm"
    if not summary.untried:
        return f"{said}. All arms were tried."
    arms = "1 arm was" if summary.untried == 1 else f"{thousands(summary.untried)} arms were"
    return f"{said}. {arms} never tried."
