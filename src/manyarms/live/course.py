"""A time series of an experiment for charts, of bounded length."""

from __future__ import annotations

MOST_POINTS = 600
_FIRST_STEP = 60  # seconds


class Course:
    """Counts in time intervals of equal length, which doubles if there are too many intervals.

    Attributes
    ----------
    step
        The length of an interval (seconds).
    points
        By the number of the interval since 1970: the number of pulls, the number of rewards and
        their sum, and the number of arms that were pulled for the first time.
    begin, end, point
        The last interval that `at` returned, and its counts.

    Examples
    --------
    >>> course = Course()
    >>> for minute in range(700):
    ...     course.at(60.0 * minute)[0] += 1
    >>> course.step, len(course.points), course.points[0]
    (120, 350, [2, 0, 0.0, 0])
    """

    __slots__ = ("begin", "end", "point", "points", "step")

    def __init__(
        self, step: int = _FIRST_STEP, points: dict[int, list[float]] | None = None
    ) -> None:
        self.step, self.points = step, points or {}
        self.begin = self.end = 0.0
        self.point: list[float] = []

    def at(self, time: float) -> list[float]:
        """Return the counts of the interval that contains a time."""
        if self.begin <= time < self.end:
            return self.point
        while time // self.step not in self.points and len(self.points) >= MOST_POINTS:
            self._double()
        number = int(time // self.step)
        self.begin, self.end = float(number * self.step), float((number + 1) * self.step)
        self.point = self.points.setdefault(number, [0, 0, 0.0, 0])
        return self.point

    def _double(self) -> None:
        """Merge pairs of intervals."""
        joined: dict[int, list[float]] = {}
        for at, counts in self.points.items():
            sums = joined.setdefault(at // 2, [0, 0, 0.0, 0])
            for place, count in enumerate(counts):
                sums[place] += count
        self.step, self.points = 2 * self.step, joined
