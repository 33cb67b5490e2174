"""The memory of states: NumPy arrays for Numba, zero-default dicts for CPython.

The same policy code indexes both. Dicts make a live call about three times as fast as arrays do,
because CPython need not wrap every number it reads. They hold only touched entries, so a live
policy with room for 2^40 pulls takes memory only for the pulls it makes.

`SPARSE` is the memory of live handles. It has no bounds, because arms may be added. `BOUNDED` is
the same with bounds, for simulations in CPython: an index that would corrupt the memory of compiled
code raises an error.

`lanes` makes templates for a GPU, where memory is scarce.

`records` gives rows of named fields, so that a pull touches one cache line instead of one for each
field.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, MutableSequence
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray

from manyarms.core.jit import twin
from manyarms.errors import ParameterError

Word: TypeAlias = Annotated[int, np.uint64]  # a key, or 64 random bits
Ints: TypeAlias = MutableSequence[int]  # int64
Floats: TypeAlias = MutableSequence[float]  # float64

NO_ROOM = -(1 << 61)  # instead of an arm, if a policy meets more arms than its memory was made for
_END = 1 << 62
_LOGS = 4096  # logarithms of smaller numbers are computed once

R = TypeVar("R", bound="Record")
Records: TypeAlias = MutableSequence[R]


class Record:
    """A row of numbers. Subclasses only annotate fields, with int, float or Word.

    >>> class Point(Record):
    ...     x: float
    ...     visits: int
    >>> SPARSE.records(3, Point)[2].visits
    0
    """

    def __init_subclass__(cls) -> None:
        for field, dtype in _fields(cls):
            setattr(cls, field, 0.0 if dtype is np.float64 else 0)


class Memory(Protocol):
    """Allocates arrays of zeros, because kernels never allocate. Kernels never ask for a length."""

    endless: bool  # whether indices may exceed the lengths
    arms_may_come: bool  # whether there must be room for more arms than there are
    arms_met: int  # different arms that there must be room for; beyond, `ask` may return NO_ROOM
    changes: int  # arms that may be added, retired or credited known rewards, if lengths are bounds

    def ints(self, length: int, *, most: int | None = None) -> Ints:
        """Return `length` signed integers; if none is above `most`, they may take less memory."""

    def floats(self, length: int) -> Floats:
        """Return `length` floats."""

    def records(self, length: int, kind: type[R], *, most: int | None = None) -> Records[R]:
        """Return `length` rows; if no integer in them is above `most`, they may take less."""

    def logs(self) -> Floats:
        """Return a table of log 0, log 1, …; entries that are 0 are computed when needed."""


class _Arrays:
    endless = False
    arms_may_come = True
    arms_met = _END

    def __init__(self, changes: int = 0) -> None:
        self.changes = changes

    # np.zeros maps pages lazily, so memory that a run never touches is never allocated.
    def ints(self, length: int, *, most: int | None = None) -> Ints:
        return cast(Ints, np.zeros(length, np.int64))

    def floats(self, length: int) -> Floats:
        return cast(Floats, np.zeros(length, np.float64))

    def records(self, length: int, kind: type[R], *, most: int | None = None) -> Records[R]:
        return cast(Records[R], np.zeros(length, np.dtype(_fields(kind), align=True)))

    def logs(self) -> Floats:
        return self.floats(_LOGS)


class _Lanes(_Arrays):
    arms_may_come = False

    def __init__(self, arms_met: int) -> None:
        super().__init__()
        self.arms_met = arms_met

    def ints(self, length: int, *, most: int | None = None) -> Ints:
        return cast(Ints, np.zeros(length, np.int32 if _are_small(most) else np.int64))

    def records(self, length: int, kind: type[R], *, most: int | None = None) -> Records[R]:
        fields = _fields(kind)
        if _are_small(most):
            fields = [(name, np.int32 if one is np.int64 else one) for name, one in fields]
        return cast(Records[R], np.zeros(length, np.dtype(fields, align=True)))

    def logs(self) -> Floats:
        return cast(Floats, logarithms(_LOGS))


class _Zeros(dict[int, Any]):
    """A sequence of zeros that stores only the places that were touched."""

    def __init__(self, zero: Callable[[], Any], length: int) -> None:
        self.zero = zero
        self.number: Any = None if issubclass(cast(type, zero), Record) else zero()
        self.length = length
        self.by_arm: dict[int, _ArmIndex] = {}  # by the first row, for `place_of_arm`

    def __missing__(self, place: int) -> Any:
        if not 0 <= place < self.length:  # a stored index was checked when it was stored
            raise IndexError(f"place {place} of {self.length}")
        if self.number is not None:
            return self.number
        value = self[place] = self.zero()  # stored, because the caller may change its fields
        return value


class _ArmIndex:
    """Which of the rows from `first` on has which arm."""

    __slots__ = ("first", "place", "renewed", "rows")

    def __init__(self, first: int) -> None:
        self.first = first
        self.rows = 0  # rows that were looked at
        self.place: dict[int, int] = {}  # by arm; a row that was wiped may still be here
        self.renewed: list[int] = []  # rows that were wiped since


class _Sparse:
    arms_may_come = True
    arms_met = _END
    changes = 0

    def __init__(self, *, endless: bool) -> None:
        self.endless = endless

    def ints(self, length: int, *, most: int | None = None) -> Ints:
        return cast(Ints, self._zeros(int, length))

    def floats(self, length: int) -> Floats:
        return cast(Floats, self._zeros(float, length))

    def records(self, length: int, kind: type[R], *, most: int | None = None) -> Records[R]:
        return cast(Records[R], self._zeros(kind, length))

    def logs(self) -> Floats:
        return cast(Floats, _Zeros(float, _LOGS))

    def _zeros(self, zero: Callable[[], Any], length: int) -> _Zeros:
        return _Zeros(zero, _END if self.endless else length)


@functools.cache
def logarithms(count: int) -> NDArray[np.float64]:
    """Return log 0 (as 0), log 1, … of `count` numbers, in an array that all callers share."""
    return np.array([math.log(max(1, k)) for k in range(count)])


def is_shared(array: NDArray[Any]) -> bool:
    """Return whether all states share the array, which is never changed."""
    return array is logarithms(_LOGS)


def _are_small(most: int | None) -> bool:
    return most is not None and most <= np.iinfo(np.int32).max


def _fields(kind: type) -> list[tuple[str, Any]]:
    """Return names and NumPy types of a record's fields."""
    hints = get_type_hints(kind, localns={"Word": Word}, include_extras=True)
    types = {int: np.int64, float: np.float64, Word: np.uint64}
    for field, hint in hints.items():
        if hint not in types:
            raise ParameterError(
                f"`{kind.__name__}.{field}` must be an int, a float or a Word, got {hint!r}."
            )
    return [(field, types[hint]) for field, hint in hints.items()]


ARRAYS: Memory = _Arrays()
SPARSE: Memory = _Sparse(endless=True)
BOUNDED: Memory = _Sparse(endless=False)


def changing(changes: int) -> Memory:
    """Return memory for compiled code in which `changes` arms may be added, and as many retired.

    Known rewards of as many arms may be credited.
    A state's `n_arms` must count the arms to be added.
    """
    return _Arrays(changes)


def lanes(arms_met: int) -> Memory:
    """Return memory for templates of a GPU's lanes, which meet at most `arms_met` arms."""
    return _Lanes(arms_met)


def _compiled_release() -> Callable[..., Any]:
    def release(sequence: Any, place: int) -> None:
        pass  # arrays are made once

    return release


@twin(_compiled_release)
def release(sequence: MutableSequence[Any], place: int) -> None:
    """Free a place that holds only zeros, so that memory does not grow in a long experiment.

    >>> numbers = SPARSE.ints(10)
    >>> numbers[3] = 5
    >>> numbers[3] = 0
    >>> release(numbers, 3)
    >>> len(numbers)
    0
    """
    if isinstance(sequence, dict):
        sequence.pop(place, None)


def _compiled_wipe(records: Any, place: Any) -> Callable[..., Any]:
    known: dict[str, Any] = {}
    lines = [f"records[place].{field} = 0" for field in records.dtype.fields]
    exec("\n    ".join(["def wipe(records, place):", *lines]), known)
    return cast(Callable[..., Any], known["wipe"])


@twin(_compiled_wipe, typed=True)
def wipe(records: Records[Any], place: int) -> None:
    """Set all numbers of a row to zero. References to the row become invalid.

    >>> class Visits(Record):
    ...     count: int
    >>> visits = SPARSE.records(3, Visits)
    >>> visits[1].count = 5
    >>> wipe(visits, 1)
    >>> visits[1].count
    0
    """
    known = cast(Any, records)
    if known.pop(place, None) is not None:
        for index in known.by_arm.values():
            if index.first <= place < index.first + index.rows:
                index.renewed.append(place)


def _compiled_place_of_arm() -> Callable[..., Any]:
    def place_of_arm(records: Any, arm: int, count: int, first: int) -> int:
        place = first + count - 1
        while place >= first and records[place].arm != arm:
            place -= 1
        return place if place >= first else -1

    return place_of_arm


@twin(_compiled_place_of_arm)
def place_of_arm(records: Records[Any], arm: int, count: int, first: int) -> int:
    """Return which of `count` rows from `first` on has this arm, or -1.

    The rows must have different arms. A row's arm may only change to a negative number until the
    row is wiped, because CPython keeps an index by arm to avoid searches.

    >>> class Seen(Record):
    ...     arm: int
    >>> seen = SPARSE.records(3, Seen)
    >>> seen[0].arm, seen[1].arm = 7, 5
    >>> place_of_arm(seen, 5, 2, 0), place_of_arm(seen, 6, 2, 0), place_of_arm(seen, 7, 1, 1)
    (1, -1, -1)
    >>> wipe(seen, 1)
    >>> seen[1].arm = 6
    >>> place_of_arm(seen, 5, 2, 0), place_of_arm(seen, 6, 2, 0)
    (-1, 1)
    """
    indices = cast(Any, records).by_arm
    if first not in indices:
        indices[first] = _ArmIndex(first)
    index = indices[first]
    for place in (*index.renewed, *range(first + index.rows, first + count)):
        index.place[records[place].arm] = place
    index.renewed.clear()
    index.rows = max(index.rows, count)
    found: int = index.place.get(arm, -1)
    return found if 0 <= found < first + count and records[found].arm == arm else -1


def _compiled_places() -> Callable[..., Any]:
    def places(sequence: Any) -> int:
        return len(sequence)

    return places


@twin(_compiled_places)
def places(sequence: Any) -> int:
    """Return the number of places."""
    return cast(int, sequence.length)


def power_of_two(at_least: int) -> int:
    """Return the smallest power of two that is not below `at_least` (and not below 1).

    >>> [power_of_two(k) for k in (0, 1, 2, 3, 1000)]
    [1, 1, 2, 4, 1024]
    """
    return 1 << max(0, at_least - 1).bit_length()
