"""Whether the rewards that are reported can be all there are."""

from __future__ import annotations

from manyarms.inference.facts import Facts
from manyarms.inference.late_rewards import late_rewards_warning

_ENOUGH = 30  # rewards, before anything is said
_NEARLY_ALL = 0.99


def reward_warnings(facts: Facts) -> str:
    """Return what looks wrong with the rewards that are reported; empty if nothing does."""
    late = late_rewards_warning(facts.delays, hold=facts.hold)
    return " ".join(filter(None, (only_best_reported(facts), late)))


def only_best_reported(facts: Facts) -> str:
    """Return a warning if nearly all rewards are the largest there can be, and most are missing.

    This is what happens if only clicks are told, and not that there was none: then no arm can look
    better than another, and nothing is learned.
    """
    if facts.reward_range is None or facts.told < _ENOUGH or 2 * facts.pending <= facts.pulls:
        return ""
    low, high = facts.reward_range
    if facts.earned - low * facts.told < _NEARLY_ALL * (high - low) * facts.told:
        return ""
    return (
        f"Nearly all {facts.told} rewards told are {high:g}, the largest there can be, and "
        f"{facts.pending} of {facts.pulls} pulls have no reward. If these earned nothing, tell a "
        f"reward of {low:g} for them, or set `window` and `missing={low:g}`; else no arm can look "
        f"better than another."
    )
