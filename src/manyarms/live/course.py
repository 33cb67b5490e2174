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

    Examples
    --------
    >>> course = Course()
    >>> for minute in range(700):
    ...     course.at(60.0 * minute)[0] += 1
    >>> course.step, len(course.points), course.points[0]
    (120, 350, [2, 0, 0.0, 0])
    """

    __slots__ = ("_at", "_point", "points", "step")

    def __init__(
        self, step: int = _FIRST_STEP, points: dict[int, list[float]] | None = None
    ) -> None:
        self.step, self.points = step, points or {}
        self._at = -1.0
        self._point: list[float] = []

    def at(self, time: float) -> list[float]:
        """Return the counts of the interval that contains a time."""
        if time // self.step != self._at:
            while time // self.step not in self.points and len(self.points) >= MOST_POINTS:
                self._double()
            self._at = time // self.step
            self._point = self.points.setdefault(int(self._at), [0, 0, 0.0, 0])
        return self._point

    def _double(self) -> None:
        """Merge pairs of intervals."""
        joined: dict[int, list[float]] = {}
        for at, counts in self.points.items():
            sums = joined.setdefault(at // 2, [0, 0, 0.0, 0])
            for place, count in enumerate(counts):
                sums[place] += count
        self.step, self.points = 2 * self.step, joined
