"""Names, numbers and seats: how the user, the experiment and the policy refer to an arm."""

from __future__ import annotations

import difflib
import numbers
import reprlib
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from itertools import islice, pairwise
from typing import Any

from manyarms.core.checks import check_int, shown
from manyarms.errors import ParameterError, UnknownArmError
from manyarms.protocol.policy import MOST_ARMS
from manyarms.store import check_name as check_text

MOST_NAMES = 10_000_000  # about 2 GB
_DIGITS = 640  # of an integer: the smallest limit that sys.set_int_max_str_digits accepts
_LARGEST = 10**_DIGITS
_LONGEST_HINT = 100  # characters; finding similar names takes too long for longer ones
_MOST_COMPARED = 10_000  # names, for the same reason


class ArmNumbers:
    """Arms without names, called by their numbers."""

    def __init__(self, count: int) -> None:
        self.count = check_int("n_arms", count, at_least=1, at_most=MOST_ARMS)

    def name(self, number: int) -> Any:
        """Return what the user calls the arm."""
        return number

    def number(self, arm: Any) -> int:
        """Return the arm's number, or raise."""
        try:
            return check_int("arm", arm, at_most=self.count - 1)
        except ParameterError:
            raise UnknownArmError(
                f"Unknown arm {_short(arm)}. Arms are numbered from 0 to {self.count - 1}."
            ) from None

    def fresh(self, arms: Any) -> range:
        """Return the numbers of new arms, given their count or exactly the next numbers."""
        least = 1
        if isinstance(arms, Iterable) and not isinstance(arms, str | bytes):
            wanted = arms if isinstance(arms, range) else _listed(arms, 0)
            new = range(self.count, self.count + len(wanted))
            if wanted != new and list(wanted) != list(new):
                raise ParameterError(
                    f"`arms` must be the number of arms to add, because these arms are called by "
                    f"number, got {_short(wanted)}. To use names, begin an experiment with names."
                )
            arms, least = len(wanted), 0
        added = check_int("arms", arms, at_least=least, at_most=MOST_ARMS - self.count)
        return range(self.count, self.count + added)

    def add(self, numbers: range) -> None:
        """Add what `fresh` returned."""
        self.count = numbers.stop


class ArmNames:
    """Arms with names: all strings, or all integers."""

    def __init__(self, names: Iterable[Any]) -> None:
        self.names: list[str | int] = []
        self._numbers: dict[Hashable, int] = {}
        self.add(self.fresh(names))

    @property
    def count(self) -> int:
        """The number of arms, retired ones included."""
        return len(self.names)

    @property
    def kind(self) -> str:
        """The type of the names: "text" or "integers"."""
        return "integers" if self.names and not isinstance(self.names[0], str) else "text"

    def name(self, number: int) -> Any:
        """Return what the user calls the arm."""
        return self.names[number]

    def number(self, arm: Any) -> int:
        """Return the arm's number, or raise."""
        # True and 1.0 equal 1, but are not names
        named = isinstance(arm, str | numbers.Integral) and not isinstance(arm, bool)
        number = self._numbers.get(arm) if named else None
        if number is None:
            text = arm if isinstance(arm, str) else shown(arm)
            raise UnknownArmError(f"Unknown arm {_short(arm)}.{self._hint(text)}")
        return number

    def _hint(self, name: str) -> str:
        if len(name) > _LONGEST_HINT:
            return ""
        known = {str(near)[:_LONGEST_HINT]: near for near in islice(self.names, _MOST_COMPARED)}
        near = difflib.get_close_matches(name, known, n=1)
        if near:
            return f" Did you mean {_short(known[near[0]])}?"
        return " Correct the name, or add it with `add_arms`."

    def fresh(self, arms: Any) -> list[str | int]:
        """Return the names of new arms, or raise."""
        names = self.listed(arms)
        for name in names:
            if name in self._numbers:
                raise ParameterError(
                    f"`arms` must be new names, got {_short(name)}, which is already an arm. A "
                    f"retired arm keeps its name; restore it to bring it back."
                )
        return names

    def listed(self, arms: Any) -> list[str | int]:
        """Return a list of names, known or new, or raise."""
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise ParameterError(f"`arms` must be a list of names, got {_short(arms)}.")
        if isinstance(arms, set | frozenset):
            raise ParameterError(
                "`arms` must be in an order that is the same in every run, got a set, which has no "
                "order. Sort it first."
            )
        names = [check_name(name) for name in _listed(arms, self.count)]
        kind = type(self.names[0] if self.names else names[0]) if names else str
        seen: set[Hashable] = set()
        for name in names:
            if type(name) is not kind:
                raise ParameterError(
                    f"`arms` must hold names of one kind, all strings or all integers, got "
                    f"{_short(name)} among {'strings' if kind is str else 'integers'}."
                )
            if name in seen:
                raise ParameterError(f"`arms` must not repeat a name, got {_short(name)} twice.")
            seen.add(name)
        return names

    def known(self, name: str | int) -> int | None:
        """Return the number of the arm with this name, or None."""
        return self._numbers.get(name)

    def add(self, names: list[str | int]) -> None:
        """Add what `fresh` returned."""
        self._numbers.update(zip(names, range(self.count, self.count + len(names)), strict=True))
        self.names += names


Arms = ArmNumbers | ArmNames


def arms_of(n_arms: Any, names: Any) -> Arms:
    """Return the arms that are given by `n_arms` or by names, or raise."""
    if (n_arms is None) == (names is None):
        got = "neither. Pass the number of arms, or their names."
        if names is not None:
            got = "both. Leave out `n_arms`: it is the number of names."
        raise ParameterError(f"Exactly one of `n_arms` and `arms` must be given, got {got}")
    if names is None:
        return ArmNumbers(n_arms)
    arms = ArmNames(names)
    if not arms.names:
        raise ParameterError("`arms` must hold at least one name, got none.")
    return arms


class Seats:
    """The numbers by which the policy knows arms, called seats. At first, arm k has seat k.

    Two arms swap seats if one of them must be drawn next. A restored arm gets a new seat, because a
    policy never chooses a retired seat again. So the seats of arms that are added later are larger
    than their numbers, by a `shift`.

    >>> seats = Seats(3)
    >>> seats.swap(0, 2)
    >>> seats.move_to_new_seat(1)
    >>> seats.add(3, 2)  # arms 3 and 4
    >>> [seats.arm(seat) for seat in (0, 2, 3, 4, 5)]  # seat 1 is empty
    [2, 0, 1, 3, 4]
    """

    __slots__ = ("_begins", "_shifts", "arm_at", "count", "seat_of")

    def __init__(self, count: int) -> None:
        self.count = count  # of all seats, including empty ones
        self.arm_at: dict[int, int] = {}  # by seat; only where it differs from seat - shift
        self.seat_of: dict[int, int] = {}  # by arm; only where it differs from arm + shift
        self._begins = [0]  # the first arm of each shift
        self._shifts = [0]

    def arm(self, seat: int) -> int:
        arm = self.arm_at.get(seat)
        if arm is not None:
            return arm
        firsts = [begin + shift for begin, shift in zip(self._begins, self._shifts, strict=True)]
        return seat - self._shifts[bisect_right(firsts, seat) - 1]

    def seat(self, arm: int) -> int:
        seat = self.seat_of.get(arm)
        return self._own(arm) if seat is None else seat

    def _own(self, arm: int) -> int:
        return arm + self._shifts[bisect_right(self._begins, arm) - 1]

    def swap(self, one: int, other: int) -> None:
        first, second = self.seat(one), self.seat(other)
        self._place(one, second)
        self._place(other, first)

    def move_to_new_seat(self, arm: int) -> None:
        self._place(arm, self.count)
        self.count += 1

    def _place(self, arm: int, seat: int) -> None:
        self.arm_at[seat], self.seat_of[arm] = arm, seat

    def add(self, first: int, count: int) -> None:
        """Give seats to `count` new arms, numbered from `first`."""
        if self.count - first != self._shifts[-1]:
            self._begins.append(first)
            self._shifts.append(self.count - first)
        self.count += count

    def shifts(self) -> tuple[list[int], list[int]]:
        """Return the first arm of each shift, and the shifts."""
        return self._begins[1:], self._shifts[1:]

    @classmethod
    def restored(
        cls,
        arms: int,
        returned: int,
        seated: Iterable[tuple[int, int]],
        shifts: tuple[list[int], list[int]],
    ) -> Seats:
        """Return the seats that a snapshot describes, or raise.

        `returned` is how often an arm was restored. `seated` are pairs of an arm and its seat.
        """
        seats = cls(arms + returned)
        seats._begins += shifts[0]
        seats._shifts += shifts[1]
        for arm, seat in seated:
            if arm in seats.seat_of or seat in seats.arm_at or not 0 <= arm < arms:
                raise ValueError("two arms have the same position")
            seats._place(arm, seat)
        rising = all(a < b for row in (seats._begins, seats._shifts) for a, b in pairwise(row))
        if not (rising and seats._begins[-1] <= arms and seats._shifts[-1] <= returned):
            raise ValueError("positions of arms are out of order")
        ends = [*seats._begins[1:], arms]
        firsts = [begin + shift for begin, shift in zip(seats._begins, seats._shifts, strict=True)]
        for seat in seats.arm_at:
            part = bisect_right(firsts, seat) - 1
            own = seat - seats._shifts[part]
            free = own >= ends[part] or own in seats.seat_of  # no arm of its own, or that arm moved
            if not (0 <= seat < seats.count and free):
                raise ValueError("an arm has an invalid position")
        return seats


def check_name(name: Any, parameter: str = "arms", must: str = "strings or integers") -> str | int:
    """Return a name as a plain string or integer, or raise."""
    if isinstance(name, str):
        text = str.__str__(name)  # also of NumPy strings and of members of a StrEnum
        check_text(text)
        return text
    if isinstance(name, numbers.Integral) and not isinstance(name, bool):
        if abs(int(name)) < _LARGEST:
            return int(name)
        raise ParameterError(
            f"`{parameter}` must hold integers of at most {_DIGITS} digits, got {_short(name)}. "
            f"Use strings instead."
        )
    verb = "hold" if parameter == "arms" else "be"
    raise ParameterError(
        f"`{parameter}` must {verb} {must}, got {_short(name)}. They are stored with the "
        f"experiment; use the item's id."
    )


def _listed(arms: Iterable[Any], existing: int) -> list[Any]:
    """Return a list of the arms, or raise if there are too many (an iterator may be endless)."""
    most = max(0, MOST_NAMES - existing)
    listed = list(islice(arms, most + 1))
    if len(listed) > most:
        raise ParameterError(
            f"`arms` must hold at most {MOST_NAMES} names in all, got more. Call arms by number "
            f"(`n_arms`), and keep the names elsewhere."
        )
    return listed


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlist = 3

    def repr_int(self, number: int, level: int) -> str:
        return shown(number, 60)


_short = _Short().repr
