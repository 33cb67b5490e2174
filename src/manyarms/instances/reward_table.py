"""Arms with recorded rewards, from which each pull draws one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from manyarms.core.checks import refusal
from manyarms.core.memory import Floats, Ints
from manyarms.core.rng import below
from manyarms.errors import ParameterError
from manyarms.instances.columns import read_columns, read_numbers, split_place
from manyarms.instances.instance import Instance
from manyarms.instances.means import from_means
from manyarms.instances.rewards import reward


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
        the reward (default: arm and reward).
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
    place = ""
    if isinstance(table, str | os.PathLike):
        place, table = split_place(table)[0].name, _read(table)
    if not isinstance(table, Mapping) or not table:
        raise refusal("table", "a dictionary of each arm's rewards, or a file", table)
    rows = [_row(arm, rewards) for arm, rewards in table.items()]
    ends = np.cumsum([len(row) for row in rows])
    every = np.concatenate(rows)
    for array in (ends, every):
        array.flags.writeable = False
    law: Any = TableLaw(ends, every, float(every.min()), float(every.max()))  # type: ignore[arg-type]
    means = [min(max(float(row.mean()), law.low), law.high) for row in rows]  # rounding
    called = label or f"{place or 'from_rewards'}(n={len(rows)}, {law!r})"
    return from_means(means, rewards=law, label=called, epsilon=epsilon)


def _read(place: str | os.PathLike[str]) -> dict[Any, Any]:
    file, words = split_place(place)
    columns = read_columns("table", file)
    arm, _, reward = (words or "arm,reward").partition(",")
    rewards = read_numbers("table", columns, reward or "reward")
    if arm not in columns:
        raise ParameterError(
            f"`table` must name the columns of the arm and of the reward, such as "
            f"log.csv:item,revenue, got {arm!r}. It has {', '.join(columns)}.",
            parameter="table",
        )
    codes = columns[arm].combine_chunks().dictionary_encode()
    if codes.null_count:
        raise ParameterError(
            f"`table` must have an arm in each row, got rows without one in {arm!r}.",
            parameter="table",
        )
    numbers = codes.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    parts = np.split(rewards[order], np.cumsum(np.bincount(numbers))[:-1])
    return dict(zip(codes.dictionary.to_pylist(), parts, strict=True))


def _row(arm: Any, rewards: Any) -> Any:
    try:
        row = np.array(list(rewards), np.float64)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.ndim != 1 or row.size == 0 or not np.isfinite(row).all():
        raise refusal(
            "table", f"a list of at least one finite number for each arm (here {arm!r})", rewards
        )
    return row
