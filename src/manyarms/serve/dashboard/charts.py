"""Pictures as SVG, without scripts, styles or sizes of their own.

They stretch to the width they get; what is written beside them is HTML, so that it stays readable
on a phone. Ticks are evenly spaced, which lets plain CSS place them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from manyarms.serve import messages as m

__all__ = ["Plot", "PlotScale", "bar", "interval", "parts_bar", "reward_plots", "scale_of"]

_WIDTH, _HEIGHT = 1000.0, 300.0
_POINTS = 80  # of a line: more is noise
_OPEN = '<svg viewBox="0 0 {w} {h}" preserveAspectRatio="none" class="{kind}"'


class PlotScale(NamedTuple):
    """From `low` to `high`, with evenly spaced round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return a place between 0 and 1."""
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


def bar(part: float, whole: float, kind: str = "bar") -> Markup:
    """Return a bar of a table's row."""
    width = 100 * part / whole if whole else 0.0
    return Markup(_OPEN + ' aria-hidden="true"><rect width="{x:.2f}" height="10"/></svg>').format(
        w=100, h=10, kind=kind, x=max(width, 0.6 if part else 0.0)
    )


def parts_bar(parts: Sequence[tuple[str, float]], whole: float, label: str) -> Markup:
    """Return a bar of several parts, each with its class."""
    left, drawn = 0.0, []
    for kind, part in parts:
        width = 100 * part / whole if whole else 0.0
        drawn.append(
            Markup('<rect class="{}" x="{:.3f}" width="{:.3f}" height="10"/>').format(
                kind, left, width
            )
        )
        left += width
    return Markup(_OPEN + ' role="img" aria-label="{label}">{drawn}</svg>').format(
        w=100, h=10, kind="parts", label=label, drawn=Markup("").join(drawn)
    )


def interval(arm: m.ArmView, scale: PlotScale) -> Markup:
    """Return an arm's interval and its mean, on the scale that a table's rows share."""
    if arm.estimate is None:
        return Markup("")
    low = 100 * scale.at(scale.low if arm.low is None else arm.low)
    high = 100 * scale.at(scale.high if arm.high is None else arm.high)
    middle = 100 * scale.at(arm.estimate)
    return Markup(
        _OPEN + ' aria-hidden="true"><path class="rail" d="M0 5H100"/>'
        '<path class="range" d="M{low:.2f} 5H{high:.2f}"/>'
        '<path class="dot" d="M{x:.2f} 1V9"/></svg>'
    ).format(w=100, h=10, kind="interval", low=low, high=high, x=middle)


class Plot(NamedTuple):
    """A plot and the words around it: `x` is its axis, (kind, value) at even distances."""

    svg: Markup
    y: tuple[float, ...]  # from the top
    x: tuple[float, ...]


def reward_plots(points: Sequence[m.Minute], best: m.ArmView | None) -> dict[str, Plot]:
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
    by = {"time": (at, at[0], at[-1] or 1.0), "pulls": (so_far, 0.0, float(total))}
    return {
        name: Plot(_lines(xs, means, begin, end, y, best, label), y.ticks[::-1], _even(begin, end))
        for name, (xs, begin, end) in by.items()
    }


def _even(begin: float, end: float) -> tuple[float, ...]:
    return (begin,) if end <= begin else (begin, (begin + end) / 2, end)


def _gathered(points: Sequence[m.Minute]) -> list[m.Minute]:
    """Return neighbours together, so that a line has some tens of points."""
    size = -(-len(points) // _POINTS) or 1
    groups = [points[k : k + size] for k in range(0, len(points), size)]
    return [
        m.Minute(
            at=sum(p.at for p in group) / len(group),
            asked=sum(p.asked for p in group),
            told=sum(p.told for p in group),
            abandoned=sum(p.abandoned for p in group),
            reward=sum(p.reward for p in group),
            fresh=sum(p.fresh for p in group),
        )
        for group in groups
    ]


def _lines(
    xs: Sequence[float],
    means: Sequence[float],
    begin: float,
    end: float,
    y: PlotScale,
    best: m.ArmView | None,
    label: str,
) -> Markup:
    def place(x: float, value: float) -> str:
        across = (x - begin) / (end - begin) if end > begin else 0.5
        return f"{_WIDTH * across:.1f} {_HEIGHT * (1 - y.at(value)):.1f}"

    places = [place(x, mean) for x, mean in zip(xs, means, strict=True)]
    if len(places) == 1 or end <= begin:  # one point: a line of its height
        height = places[0].split()[1]
        places = [f"0 {height}", f"{_WIDTH:.0f} {height}"]
    line = "L".join(places)
    parts: list[Any] = []
    if best is not None and best.estimate is not None:
        low = _HEIGHT * (1 - y.at(y.low if best.low is None else best.low))
        high = _HEIGHT * (1 - y.at(y.high if best.high is None else best.high))
        middle = _HEIGHT * (1 - y.at(best.estimate))
        first, last = places[0].split()[0], places[-1].split()[0]
        # the gap covers the band, whose edges stay: so both have the colours of the key
        parts += [
            Markup('<rect class="band" y="{:.1f}" width="{:.0f}" height="{:.1f}"/>').format(
                high, _WIDTH, max(low - high, 1.0)
            ),
            Markup('<path class="gap" d="M{} {:.1f}L{}L{} {:.1f}Z"/>').format(
                first, middle, line, last, middle
            ),
            _grid(y),
            Markup('<path class="edge" d="M0 {:.1f}H{w:.0f}M0 {:.1f}H{w:.0f}"/>').format(
                low, high, w=_WIDTH
            ),
            Markup('<path class="best" d="M0 {:.1f}H{:.0f}"/>').format(middle, _WIDTH),
        ]
    else:
        parts.append(_grid(y))
    parts.append(Markup('<path class="line" d="M{}"/>').format(line))
    return Markup(_OPEN + ' role="img" aria-label="{label}">{parts}</svg>').format(
        w=f"{_WIDTH:.0f}",
        h=f"{_HEIGHT:.0f}",
        kind="lines",
        label=label,
        parts=Markup("").join(parts),
    )


def _grid(y: PlotScale) -> Markup:
    heights = [_HEIGHT * (1 - y.at(tick)) for tick in y.ticks]
    path = "".join(f"M0 {h:.1f}H{_WIDTH:.0f}" for h in heights)
    return Markup('<path class="grid" d="{}"/>').format(path)
