"""Arms with recorded rewards, from which each pull draws one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import refusal
from manyarms.core.memory import Floats, Ints
from manyarms.core.rng import below
from manyarms.errors import ParameterError
from manyarms.instances.columns import read_names, read_numbers, read_table, split_place
from manyarms.instances.instance import Instance
from manyarms.instances.means import from_means
from manyarms.instances.rewards import reward
from manyarms.theory.arrays import check_unmasked

_SUCH_AS = "log.csv:item,revenue"
_BITS = 24


class TableLaw(NamedTuple):
    """Recorded rewards, arm by arm; a pull draws one of its arm's uniformly."""

    ends: Ints  # by arm: where its rewards end
    rewards: Floats
    low: float
    high: float

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward, or 0 and 1 if all are in [0, 1]."""
        return (0.0, 1.0) if 0.0 <= self.low <= self.high <= 1.0 else (self.low, self.high)

    def __repr__(self) -> str:
        return f"{len(self.rewards)} rewards"


@reward.register(TableLaw)
def reward_of_table(law: TableLaw, arm: int, mean: float, word: int) -> float:
    start = int(law.ends[arm - 1]) if arm > 0 else 0
    return float(law.rewards[start + below(word, int(law.ends[arm]) - start)])


def from_rewards(
    table: Mapping[Any, Iterable[float]] | str | os.PathLike[str],
    *,
    label: str | None = None,
    epsilon: float = 0.0,
) -> Instance:
    """Make an instance from recorded rewards; a pull draws one of its arm's, with replacement.

    Parameters
    ----------
    table
        The rewards of each arm by name, such as `{"a": [0, 3.5], "b": [1]}`, or a CSV or Parquet
        file with a row for each reward: "log.csv:item,revenue" names the columns of the arm and of
        the reward (default: arm and reward). Names in CSV files are text: 007 and 7 are two arms.
    label, epsilon
        As for `grouped`.

    Notes
    -----
    Arms are numbered in the order of the table, or of their first row. An arm's mean is that of its
    rewards, a poor estimate if they are few. Policies for rewards in [0, 1] refuse others. A
    `sigma` of 1/2 is replaced by half the width of the table's range.

    Examples
    --------
    >>> import manyarms as ma
    >>> shop = ma.instances.from_rewards({"umbrella": [0, 0, 12], "coat": [0, 80], "hat": [5]})
    >>> [shop.mean(arm) for arm in range(shop.n_arms)]
    [4.0, 40.0, 5.0]
    """
    if isinstance(table, str | os.PathLike):
        place = split_place(table)[0].name
        rewards, counts = _read(table)
    elif isinstance(table, Mapping) and table:
        place = "from_rewards"
        rows = [_row(arm, row) for arm, row in table.items()]
        rewards, counts = np.concatenate(rows), np.array([len(row) for row in rows])
    else:
        raise refusal("table", "a dictionary of each arm's rewards, or a file", table)
    low, high = float(rewards.min()), float(rewards.max())
    if low == high:
        raise ParameterError(
            f"`table` must have rewards that differ, got {low:g} in all {len(rewards)} "
            f"rows. With equal rewards, all arms are alike and no policy loses anything.",
            parameter="table",
        )
    ends = np.cumsum(counts)
    for array in (ends, rewards):
        array.flags.writeable = False
    law: Any = TableLaw(ends, rewards, low, high)  # type: ignore[arg-type]
    return from_means(
        _exact_means(rewards, counts),
        rewards=law,
        label=label or f"{place}(n={len(counts)}, {law!r})",
        epsilon=epsilon,
    )


def _read(place: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return the rewards in a file, arm by arm, and the number of each arm's rewards."""
    file, columns = split_place(place)
    arm, _, reward = (columns or "arm,reward").partition(",")
    table = read_table("table", file, names=[arm])
    rewards = read_numbers("table", table, reward or "reward", such_as=_SUCH_AS)
    numbers = read_names("table", table, arm, such_as=_SUCH_AS)
    return rewards[np.argsort(numbers, kind="stable")], np.bincount(numbers)


def _row(arm: Any, rewards: Any) -> Any:
    check_unmasked("table", rewards)
    try:
        row = np.array(list(rewards), np.float64)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.ndim != 1 or row.size == 0 or not np.isfinite(row).all():
        raise refusal(
            "table", f"a list of at least one finite number for each arm (here {arm!r})", rewards
        )
    return row


def _exact_means(rewards: NDArray[np.float64], counts: NDArray[np.int64]) -> list[float]:
    """Return the mean of each arm's rewards, computed exactly and then rounded once.

    Arms with the same rewards, in any order and number, so have the same mean. Rewards are cut into
    integers of 24 bits, whose sums are exact for up to 2^29 rewards of an arm.

    >>> _exact_means(np.full(9, 19.99), np.array([2, 7]))
    [19.99, 19.99]
    """
    starts = np.cumsum(counts) - counts
    place = int(np.frexp(np.abs(rewards).max())[1])  # no reward reaches 2 ** place
    totals, rest = [0] * len(counts), rewards  # in units of 2 ** place
    while rest.any():
        place -= _BITS
        parts = np.trunc(np.ldexp(rest, -place))
        rest = rest - np.ldexp(parts, place)
        sums = np.add.reduceat(parts, starts).tolist()
        totals = [(total << _BITS) + int(part) for total, part in zip(totals, sums, strict=True)]
    above, below = max(place, 0), max(-place, 0)
    return [  # Python rounds a quotient of integers once
        (total << above) / (count << below)
        for total, count in zip(totals, counts.tolist(), strict=True)
    ]
