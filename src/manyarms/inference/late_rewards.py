"""Compare early rewards with late ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)  # ends of bins (seconds)
_ENOUGH = 30  # rewards of a bin before its mean is used
_ALARM = 4.0  # standard deviations; so large because you may look often


def late_rewards_warning(delays: Sequence[Sequence[float]], *, hold: bool) -> str:
    """Return a warning if the mean reward depends on the delay by more than chance; else "".

    `delays` has the number, the sum and the sum of squares of the rewards reported within each
    delay, without rewards that were filled in at the end of a window. With `hold`, every reward
    counts when its window ends, so there is no warning.

    >>> late_rewards_warning([(1000, 900, 900), (1000, 100, 100)], hold=True)
    ''
    >>> late_rewards_warning([(1000, 900, 900), (1000, 100, 100)], hold=False)[:35]
    'The mean reward depends on the dela'
    """
    seen = [(count, total, squares) for count, total, squares in delays if count >= _ENOUGH]
    if hold or len(seen) < 2:
        return ""
    count = sum(s[0] for s in seen)
    mean = sum(s[1] for s in seen) / count
    spread = sum(s[2] for s in seen) / count - mean * mean
    if spread <= 0:
        return ""
    between = sum(s[0] * (s[1] / s[0] - mean) ** 2 for s in seen) / spread
    degrees = len(seen) - 1
    # the chance of a chi-square as large, by Wilson and Hilferty
    z = ((between / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    if z < _ALARM:
        return ""
    return (
        "The mean reward depends on the delay, so arms look better or worse than they are while "
        "their late rewards are missing. Start the next experiment with `window` and `hold`: then "
        "early and late rewards count at the same time."
    )
