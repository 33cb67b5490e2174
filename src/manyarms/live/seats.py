"""Which arm is which to the policy: it numbers its arms by itself, from 0 on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

__all__ = ["Seats"]


class Seats:
    """The seats of a policy's arms: at first arm k has seat k.

    Two arms change seats where one of them shall be drawn next. An arm that comes back takes a new
    seat, because a policy never looks at a retired one again; arms that are added later then sit
    some seats further on, by a `shift`.

    >>> seats = Seats(3)
    >>> seats.swap(0, 2)
    >>> seats.come_back(1)
    >>> seats.add(3, 2)  # arms 3 and 4
    >>> [seats.arm(seat) for seat in (0, 2, 3, 4, 5)], sorted(seats.left)
    ([2, 0, 1, 3, 4], [1])
    """

    __slots__ = ("_begins", "_shifts", "arm_at", "count", "left", "seat_of")

    def __init__(self, count: int) -> None:
        self.count = count  # of seats that ever were
        self.arm_at: dict[int, int] = {}  # by seat, where the shift does not say it; at first none
        self.seat_of: dict[int, int] = {}  # by arm
        self.left: set[int] = set()  # seats whose arms have others now
        self._begins = [0]  # the arms from which on ...
        self._shifts = [0]  # ... a seat is the arm's number and this

    def arm(self, seat: int) -> int:
        """Return the arm that sits there."""
        arm = self.arm_at.get(seat)
        if arm is not None:
            return arm
        firsts = [begin + shift for begin, shift in zip(self._begins, self._shifts, strict=True)]
        return seat - self._shifts[bisect_right(firsts, seat) - 1]

    def seat(self, arm: int) -> int:
        """Return where an arm sits."""
        seat = self.seat_of.get(arm)
        return self._own(arm) if seat is None else seat

    def _own(self, arm: int) -> int:
        return arm + self._shifts[bisect_right(self._begins, arm) - 1]

    def swap(self, one: int, other: int) -> None:
        """Let two arms change seats."""
        first, second = self.seat(one), self.seat(other)
        self._sit(one, second)
        self._sit(other, first)

    def come_back(self, arm: int) -> None:
        """Give an arm a new seat."""
        self.left.add(self.seat(arm))
        self._sit(arm, self.count)
        self.count += 1

    def _sit(self, arm: int, seat: int) -> None:
        self.arm_at[seat], self.seat_of[arm] = arm, seat

    def add(self, first: int, count: int) -> None:
        """Seat `count` new arms, numbered on from `first`."""
        if self.count - first != self._shifts[-1]:
            self._begins.append(first)
            self._shifts.append(self.count - first)
        self.count += count

    def shifts(self) -> tuple[list[int], list[int]]:
        """Return the arms from which on seats are shifted, and by how many."""
        return self._begins[1:], self._shifts[1:]

    @classmethod
    def restored(
        cls,
        arms: int,
        returned: int,
        seated: Iterable[tuple[int, int]],
        shifts: tuple[list[int], list[int]],
    ) -> Seats:
        """Return the seats of arms that came, `returned` of them a second time, or raise.

        `seated` are pairs of an arm and its seat.
        """
        seats = cls(arms + returned)
        seats._begins += shifts[0]
        seats._shifts += shifts[1]
        for arm, seat in seated:
            if arm in seats.seat_of or seat in seats.arm_at or not 0 <= arm < arms:
                raise ValueError("two arms have one seat")
            seats._sit(arm, seat)
        rising = all(a < b for row in (seats._begins, seats._shifts) for a, b in pairwise(row))
        if not (rising and seats._begins[-1] <= arms and seats._shifts[-1] <= returned):
            raise ValueError("seats are in no order")
        ends, steps = [*seats._begins, arms], [*seats._shifts, returned]
        gaps = {  # that no arm had when it came
            seat
            for k, begin in enumerate(ends[1:])
            for seat in range(begin + steps[k], begin + steps[k + 1])
        }
        free = gaps | {seats._own(arm) for arm in seats.seat_of}
        seats.left = free - seats.arm_at.keys()
        if not seats.arm_at.keys() <= free or len(seats.left) != returned:
            raise ValueError("arms sit where there are no seats")
        return seats
