"""The coordinates of charts, which `templates/charts.html` draws as SVG.

The SVG stretches to the width of the page. Labels are HTML, so that they stay readable on a phone.
Ticks are evenly spaced, so that CSS can place them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from manyarms.serve import messages as m

_WIDTH, _HEIGHT = 1000.0, 300.0
_POINTS = 80  # points of a line, at most: with more, it would be too noisy


class PlotScale(NamedTuple):
    """An axis from `low` to `high`, with evenly spaced round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return the position of a value, between 0 and 1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def scale_of(values: Sequence[float], most: int = 5) -> PlotScale:
    """Return a scale that shows all values.

    >>> scale_of([0.12, 0.48]).ticks
    (0.1, 0.2, 0.3, 0.4, 0.5)
    """
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= span / most * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    ticks = tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))
    return PlotScale(ticks[0], ticks[-1], ticks)


class Plot(NamedTuple):
    """A plot in coordinates of the SVG, and its labels."""

    line: list[tuple[str, str]]
    best: tuple[float, float, float] | None  # heights of the recommended arm's interval and mean
    grid: list[float]
    label: str
    y: tuple[float, ...]  # ticks, from the top
    x: tuple[float, ...]

    @property
    def path(self) -> str:
        """The line as an SVG path."""
        return "L".join(map(" ".join, self.line))


def reward_plots(points: Sequence[m.Point], best: m.ArmView | None) -> dict[str, Plot]:
    """Return the mean reward over time, and over rewards told; {} before the first reward."""
    told = _gathered([p for p in points if p.told])
    if not told:
        return {}
    means = [p.reward / p.told for p in told]
    ends = () if best is None else (best.low, best.high, best.estimate)
    y = scale_of([*means, *(end for end in ends if end is not None)])
    total, so_far = 0, []
    for p in told:
        so_far.append(total + p.told / 2)
        total += p.told
    at = [p.at for p in told]
    label = f"Mean reward, from {means[0]:.3g} to {means[-1]:.3g}"
    if best is not None and best.low is not None and best.high is not None:
        label += f"; the recommended arm's is between {best.low:.3g} and {best.high:.3g}"
    heights = None
    if best is not None and best.estimate is not None:
        low, high = (
            y.low if best.low is None else best.low,
            y.high if best.high is None else best.high,
        )
        heights = _height(y, low), _height(y, high), _height(y, best.estimate)
    grid = [_height(y, tick) for tick in y.ticks]
    by = {"time": (at, at[0], at[-1] or 1.0), "pulls": (so_far, 0.0, float(total))}
    return {
        name: Plot(
            _line(xs, means, begin, end, y), heights, grid, label, y.ticks[::-1], _even(begin, end)
        )
        for name, (xs, begin, end) in by.items()
    }


def _even(begin: float, end: float) -> tuple[float, ...]:
    return (begin,) if end <= begin else (begin, (begin + end) / 2, end)


def _gathered(points: Sequence[m.Point]) -> list[m.Point]:
    """Merge neighbouring points, so that a line has at most `_POINTS`."""
    size = -(-len(points) // _POINTS) or 1
    groups = [points[k : k + size] for k in range(0, len(points), size)]
    counts = ("asked", "told", "reward", "fresh")
    return [
        m.Point(
            at=sum(p.at for p in group) / len(group),
            **{name: sum(getattr(p, name) for p in group) for name in counts},
        )
        for group in groups
    ]


def _height(y: PlotScale, value: float) -> float:
    return _HEIGHT * (1 - y.at(value))


def _line(
    xs: Sequence[float], means: Sequence[float], begin: float, end: float, y: PlotScale
) -> list[tuple[str, str]]:
    heights = [f"{_height(y, mean):.1f}" for mean in means]
    if len(heights) == 1 or end <= begin:  # one point becomes a horizontal line
        return [("0", heights[0]), (f"{_WIDTH:.0f}", heights[0])]
    places = [f"{_WIDTH * (x - begin) / (end - begin):.1f}" for x in xs]
    return list(zip(places, heights, strict=True))
