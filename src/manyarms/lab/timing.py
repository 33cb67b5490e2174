"""When regret is recorded, and when rewards come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from manyarms.core.checks import check_int, refusal
from manyarms.errors import ParameterError

__all__ = ["MOST_PULLS", "MOST_TIMES", "check_late", "checkpoint_times"]

MOST_PULLS = 1 << 40  # of one replication, and of replications
MOST_TIMES = 10**6  # at which regret is recorded
_CHECKPOINTS = 100


def checkpoint_times(checkpoints: Any, horizon: int) -> tuple[int, ...]:
    """Return the times at which regret is recorded. The horizon is always one of them.

    `checkpoints` is the number of times, spread evenly, or a list of times.

    >>> checkpoint_times(4, 200)
    (50, 100, 150, 200)
    >>> checkpoint_times((7, 3), 200)
    (3, 7, 200)
    """
    if checkpoints is None:
        checkpoints = min(_CHECKPOINTS, horizon)
    if not isinstance(checkpoints, Iterable) or getattr(checkpoints, "ndim", 1) == 0:
        most = min(horizon, MOST_TIMES)
        count = check_int("checkpoints", checkpoints, at_least=1, at_most=most)
        times = [horizon * (k + 1) // count for k in range(count)]
    else:
        given = list(itertools.islice(checkpoints, MOST_TIMES + 1))
        if len(given) > MOST_TIMES:
            raise refusal("checkpoints", f"at most {MOST_TIMES} times", given)
        times = [check_int("checkpoints", time, at_least=1, at_most=horizon) for time in given]
    return tuple(sorted({*times, horizon}))


def check_late(delay: Any, batch: Any) -> tuple[int, int]:
    """Check how late rewards come: after some further pulls, or in batches."""
    delay = check_int("delay", delay, at_most=MOST_PULLS)
    batch = check_int("batch", batch, at_least=1, at_most=MOST_PULLS)
    if delay > 0 and batch > 1:
        raise ParameterError(
            f"`delay` or `batch` must be left out, got delay={delay} and batch={batch}. Rewards "
            f"come late one by one, or in batches."
        )
    return delay, batch
