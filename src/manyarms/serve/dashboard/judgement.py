"""The verdict, as pages show it."""

from __future__ import annotations

from typing import Any, NamedTuple

_KINDS = {"stop": "good", "go on": "open"}  # all others: the user has to decide


def thousands(value: float) -> str:
    """Format a count.

    >>> thousands(995918)
    '995,918'
    """
    return f"{value:,.0f}"


class Judgement(NamedTuple):
    """A statement about an experiment. `kind` is a CSS class."""

    kind: str  # "good": stop; "open": go on; "part": neither; "bad": worse, or biased
    title: str  # a few words
    why: str
    headline: str = ""  # what to do


def verdict(summary: Any) -> Judgement:
    """Return whether to go on, and why, in the words of `Live.verdict`.

    The warning about rewards is left out, because pages show it separately.
    """
    if summary.state == "empty":
        why = "Add some before the first ask."
        return Judgement("part", "No arms yet", why, "No arms yet.")
    if not summary.outcome:  # not loaded since it was created
        return Judgement("part", "Not known", "", "Not known yet.")
    title = summary.outcome[:1].upper() + summary.outcome[1:]
    kind = _KINDS.get(summary.outcome, "part")
    why = summary.advice
    if summary.warning:
        why = why.replace(summary.warning, "").strip()
    return Judgement(kind, title, why, summary.headline)
