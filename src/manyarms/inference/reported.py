"""Warn if the reported rewards look incomplete or biased."""

from __future__ import annotations

from manyarms.inference.delays import Delays, depends_on_delay
from manyarms.inference.facts import Facts

_ENOUGH = 30  # rewards that a warning needs
_NEARLY_ALL = 0.99


def reward_warnings(facts: Facts) -> str:
    """Return warnings about the reported rewards; empty if nothing looks wrong."""
    late = late_rewards_warning(facts.delays, hold=facts.hold, reward_range=facts.reward_range)
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

    This happens if only clicks are reported. Then no arm can look better than another. Expired and
    abandoned pulls count as missing.
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


def late_rewards_warning(
    delays: Delays, *, hold: bool, reward_range: tuple[float, float] | None = (0.0, 1.0)
) -> str:
    """Return a warning if an arm's rewards depend on their delays by more than chance.

    Rewards that were filled in when a window ended are not compared. With `hold`, every reward
    counts when its window ends, so there is no warning. Without a warning, the text is empty. The
    probability that there is ever a false alarm is at most 1 %, if rewards are 0 or 1.
    """
    if hold or not depends_on_delay(delays, reward_range):
        return ""
    return (
        "The mean reward depends on the delay, so arms look better or worse than they are while "
        "their late rewards are missing. Start the next experiment with `window` and `hold`: then "
        "early and late rewards count at the same time."
    )
