"""Sets of pulls by their numbers, in 16 bytes for each run of numbers without a gap."""

from __future__ import annotations

from array import array
from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray


class PullRanges:
    """A set of numbers from 0 on, as the beginnings and the ends of its runs.

    To add one takes time in proportion to the runs above it: pulls are given up soon after they
    were asked for, so that these are few.

    >>> lost = PullRanges([3, 4, 9])
    >>> lost.add(5)
    >>> lost.add(7)
    >>> 5 in lost, 6 in lost, len(lost), lost.numbers().tolist()
    (True, False, 5, [3, 4, 5, 7, 9])
    """

    __slots__ = ("_begins", "_count", "_ends")

    def __init__(self, numbers: NDArray[np.int64] | list[int] | tuple[()] = ()) -> None:
        """Hold these numbers, each once, in any order."""
        ordered = np.sort(np.asarray(numbers, np.int64))
        gap, one = np.diff(ordered) > 1, np.ones(min(1, len(ordered)), np.bool_)
        self._begins = array("q", ordered[np.concatenate([one, gap])].tobytes())
        self._ends = array("q", (ordered[np.concatenate([gap, one])] + 1).tobytes())
        self._count = len(ordered)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        run = bisect_right(self._begins, number) - 1
        return run >= 0 and number < self._ends[run]

    def add(self, number: int) -> None:
        """Add a number that is not there yet."""
        begins, ends = self._begins, self._ends
        run = bisect_right(begins, number)  # that of the next larger one
        after = run < len(begins) and begins[run] == number + 1
        before = run > 0 and ends[run - 1] == number
        if before and after:
            ends[run - 1] = ends.pop(run)
            begins.pop(run)
        elif before:
            ends[run - 1] = number + 1
        elif after:
            begins[run] = number
        else:
            begins.insert(run, number)
            ends.insert(run, number + 1)
        self._count += 1

    def numbers(self) -> NDArray[np.int64]:
        """Return all numbers, in order."""
        begins = np.frombuffer(self._begins, np.int64)
        lengths = np.frombuffer(self._ends, np.int64) - begins
        first = np.cumsum(lengths) - lengths  # where each run begins in the result
        return np.asarray(
            np.arange(self._count, dtype=np.int64) + np.repeat(begins - first, lengths), np.int64
        )
