"""Whether the rewards that are reported can be all there are."""

from __future__ import annotations

from manyarms.inference.facts import Facts
from manyarms.inference.late_rewards import late_rewards_warning

_ENOUGH = 30  # rewards, before anything is said
_NEARLY_ALL = 0.99


def reward_warnings(facts: Facts) -> str:
    """Return what looks wrong with the rewards that are reported; empty if nothing does."""
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
    """Return a warning if nearly all rewards are the largest there can be, and most are missing.

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
        f"Nearly all {told} rewards told are {high:g}, the largest there can be, and "
        f"{missing} of {pulls} pulls have no reward. If these earned nothing, tell a "
        f"reward of {low:g} for them, or set `window` and `missing={low:g}`; else no arm can look "
        f"better than another."
    )
