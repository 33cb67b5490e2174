"""Warn if the reported rewards look incomplete or biased."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from manyarms.inference.facts import Facts

DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)  # ends of bins (seconds)
_ENOUGH = 30  # rewards (of a bin) that a warning needs
_SUCCESSES = 5  # of rewards 0 and 1, and as many failures, for a chi-square distribution
_ALARM = 4.0  # standard deviations; large, because verdicts are asked for often
_NEARLY_ALL = 0.99


def no_delays() -> list[list[float]]:
    """Return empty bins: for each, the number, the sum and the sum of squares of its rewards."""
    return [[0, 0.0, 0.0] for _ in range(len(DELAYS) + 1)]


def count_delay(delays: list[list[float]], delay: float, reward: float) -> None:
    """Count a reward that was reported after a delay (seconds)."""
    seen = delays[bisect_right(DELAYS, delay)]
    seen[0] += 1
    seen[1] += reward
    seen[2] += reward * reward


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
    delays: Sequence[Sequence[float]],
    *,
    hold: bool,
    reward_range: tuple[float, float] | None = (0.0, 1.0),
) -> str:
    """Return a warning if the mean reward depends on the delay by more than chance.

    `delays` has the number, the sum and the sum of squares of the rewards reported within each
    delay, without the rewards of pulls that expired. With `hold`, every reward counts when its
    window ends, so there is no warning. Without a warning, the text is empty.

    >>> late_rewards_warning([(1000, 900, 900), (1000, 100, 100)], hold=True)
    ''
    >>> late_rewards_warning([(1000, 900, 900), (1000, 100, 100)], hold=False)[:35]
    'The mean reward depends on the dela'
    """
    if hold:
        return ""
    enough = _ENOUGH
    mean, spread = _pooled(delays)
    if reward_range is not None and spread > 0 and (above := mean - reward_range[0]) > 0:
        size = (spread + above * above) / above  # of a success: 1 if rewards are 0 or 1
        enough = max(_ENOUGH, math.ceil(_SUCCESSES * size * size / spread))
    seen = [bin_ for bin_ in delays if bin_[0] >= enough]
    mean, spread = _pooled(seen)
    if len(seen) < 2 or spread <= 0:
        return ""
    between = sum(s[0] * (s[1] / s[0] - mean) ** 2 for s in seen) / spread
    degrees = len(seen) - 1
    # the chi-square statistic as a normal deviate (Wilson and Hilferty)
    z = ((between / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    if z < _ALARM:
        return ""
    return (
        "The mean reward depends on the delay, so arms look better or worse than they are while "
        "their late rewards are missing. Start the next experiment with `window` and `hold`: then "
        "early and late rewards count at the same time."
    )


def _pooled(delays: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the mean and the variance of the rewards of all bins."""
    count = sum(bin_[0] for bin_ in delays)
    if count == 0:
        return 0.0, 0.0
    mean = sum(bin_[1] for bin_ in delays) / count
    return mean, sum(bin_[2] for bin_ in delays) / count - mean * mean
