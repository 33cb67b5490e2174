"""Pulls without a reward: whether a verdict could be wrong because of them."""

from __future__ import annotations

from manyarms.inference.facts import CONTROL
from manyarms.inference.question import Question
from manyarms.inference.tallies import Tallies


def lost_rewards_warning(
    tallies: Tallies, best: int, name: str, slack: float, question: Question
) -> str:
    """Return how many pulls have no reward, if so many that the verdict could be wrong by `slack`.

    If the share s of pulls has no reward, and all of these would have been as small as can be, the
    mean is smaller by s times the range of rewards at most; that of a rival could be larger by as
    much. Half of `slack` is worth a warning.
    """
    facts, control = tallies.facts, tallies.facts.control
    scale = facts.scale
    own = _share_missing(tallies, best)
    all_pulls = (facts.abandoned + facts.pending) / facts.pulls if facts.pulls else 0.0
    rival = 0.0
    if question.rival == CONTROL and control is not None:
        rival = control.missing / max(1, control.asked)
        if question.margin.relative:  # then so is `slack`
            slack *= control.total / control.told
    elif question.rival is not None:
        rival = _share_missing(tallies, tallies.place(question.rival))
    if max(own, rival, all_pulls) * (scale.width or 2.0 * scale.sigma) < slack / 2.0:
        return ""
    beside = "" if question.rival is None else f", {100 * rival:.0f} % of those of its rival"
    return (
        f"{100 * own:.0f} % of the pulls of arm {name}{beside}, and {100 * all_pulls:.0f} % of all "
        f"pulls, have no reward: they were abandoned, or their rewards are still to come. The "
        f"verdict holds only if that does not depend on the reward."
    )


def _share_missing(tallies: Tallies, place: int | None) -> float:
    """Return the share of an arm's pulls that have no reward."""
    if place is None or tallies.asked[place] == 0:
        return 0.0
    return float(tallies.missing[place] / tallies.asked[place])
