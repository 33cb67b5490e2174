"""Warn if the reported rewards look incomplete or biased."""

from __future__ import annotations

from manyarms.inference.facts import Facts
from manyarms.inference.late_rewards import late_rewards_warning

_ENOUGH = 30  # rewards before a warning
_NEARLY_ALL = 0.99


def reward_warnings(facts: Facts) -> str:
    """Return warnings about the reported rewards; empty if nothing looks wrong."""
    late = late_rewards_warning(facts.delays, hold=facts.hold)
    best = only_best_reported(
        facts.reward_range,
        pulls=facts.pulls,
        told=facts.told,
        earned=facts.earned,
    )
    return " ".join(filter(None, (best, late)))


def only_best_reported(
    reward_range: tuple[float, float] | None,
    *,
    pulls: int,
    told: int,
    earned: float,
) -> str:
    """Return a warning if nearly all rewards are the largest possible, and most are missing.

    This happens if only clicks are reported. Then no arm can look better than another. A pull whose
    window ended without a reward counts as missing, and so does one that was abandoned.
    """
    missing = pulls - told
    if reward_range is None or told < _ENOUGH or 2 * missing <= pulls:
        return ""
    low, high = reward_range
    if earned - low * told < _NEARLY_ALL * (high - low) * told:
        return ""
    return (
        f"Nearly all {told} rewards told are {high:g}, the largest possible, and {missing} of "
        f"{pulls} pulls have no reward. If these failed, report a reward of {low:g} for each, or "
        f"start an experiment with `window` and `missing={low:g}`. Otherwise no arm can look "
        f"better than another."
    )
