"""Warn if missing rewards could make a verdict wrong."""

from __future__ import annotations

from manyarms.inference.facts import CONTROL
from manyarms.inference.question import Question
from manyarms.inference.tried_arms import TriedArms


def lost_rewards_warning(
    tried: TriedArms, best: int, name: str, slack: float, question: Question
) -> str:
    """Return a warning if so many pulls have no reward that the verdict could be wrong.

    If a share s of an arm's pulls has no reward, the mean over all its pulls could be smaller by up
    to s times the range of rewards, and that of a rival larger. A warning is returned if this
    reaches half of `slack`, the distance that decided the verdict.
    """
    facts, control = tried.facts, tried.facts.control
    scale = facts.scale
    own = _share_missing(tried, best)
    all_pulls = (facts.abandoned + facts.pending) / facts.pulls if facts.pulls else 0.0
    rival = 0.0
    if question.rival == CONTROL and control is not None:
        rival = control.missing / max(1, control.asked)
        if question.margin.relative:  # then `slack` is a share of the control's mean
            slack *= control.total / control.told
    elif question.rival is not None:
        rival = _share_missing(tried, tried.place(question.rival))
    if max(own, rival, all_pulls) * (scale.width or 2.0 * scale.sigma) < slack / 2.0:
        return ""
    beside = "" if question.rival is None else f", {100 * rival:.0f} % of those of the target"
    return (
        f"{100 * own:.0f} % of the pulls of arm {name}{beside} and {100 * all_pulls:.0f} % of all "
        f"pulls have no reward: they are pending or were abandoned. If failures are missing more "
        f"often than successes, or the other way round, this verdict can be wrong."
    )


def _share_missing(tried: TriedArms, place: int | None) -> float:
    """Return the share of an arm's pulls that have no reward."""
    if place is None or tried.asked[place] == 0:
        return 0.0
    return float(tried.missing[place] / tried.asked[place])
