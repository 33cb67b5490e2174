"""The figures of a page, as plain data: how lines look, and which settings a figure shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from manyarms.lab.results import Result
from manyarms.report.page.words import plainly
from manyarms.report.style import LineStyle, policy_styles, policy_title

__all__ = ["curves", "looks", "over_time", "swept"]

_DARK_PAPER = 0.015  # relative luminance of the page's background in the dark
_CONTRAST = 4.0  # of a line with it, at least: WCAG asks 3


def looks(policies: Iterable[str]) -> dict[str, Any]:
    """Return how each policy looks, as in all figures."""
    return {
        label: _look(policy_title(label), style) for label, style in policy_styles(policies).items()
    }


def _look(title: str, style: LineStyle) -> dict[str, Any]:
    """Return one line's title and style as plain data, with a colour for dark screens."""
    return {
        "title": title,
        "light": style.colour,
        "dark": _lighter(style.colour),
        "dashes": style.dashes,
        "marker": style.marker,
        "filled": style.filled,
    }


def _lighter(colour: str) -> str:
    """Mix a colour with white until it can be seen on a dark page; what was black is white.

    >>> _lighter("#000000"), _lighter("#E69F00"), _lighter("#332288")
    ('#FFFFFF', '#E69F00', '#857AB8')
    """
    channels = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    if not any(channels):
        return "#FFFFFF"
    for white in range(0, 101, 5):
        mixed = [round(c + (255 - c) * white / 100) for c in channels]
        if (_luminance(mixed) + 0.05) / (_DARK_PAPER + 0.05) >= _CONTRAST:
            break
    return "#" + "".join(f"{c:02X}" for c in mixed)


def _luminance(channels: Sequence[int]) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def over_time(results: Sequence[Result], first: int) -> dict[str, Any] | None:
    """Return a figure of regret over time; None if no setting has more than its end.

    Parameters
    ----------
    results, first
        What was played, and the place of its first setting among those of the page.
    """
    choices = [
        {"label": plainly(result.parameters), "settings": [place]}
        for place, result in enumerate(results, first)
        if len(result.times) > 1
    ]
    return {"kind": "time", "choices": choices} if choices else None


def swept(results: Sequence[Result], first: int, axes: Iterable[str]) -> dict[str, Any] | None:
    """Return a figure of final regret against each swept parameter; None if nothing is swept.

    Parameters
    ----------
    results, first
        What was played, and the place of its first setting among those of the page.
    axes
        The parameters to draw against, each where all others are equal.
    """
    choices = []
    for axis in axes:
        groups: dict[tuple[Any, ...], list[tuple[Any, int]]] = {}
        for place, result in enumerate(results, first):
            if axis in result.parameters:
                others = tuple((k, v) for k, v in result.parameters.items() if k != axis)
                groups.setdefault(others, []).append((result.parameters[axis], place))
        choices += [
            _choice(axis, dict(others), points)
            for others, points in groups.items()
            if len(points) > 1
        ]
    return {"kind": "sweep", "choices": choices} if choices else None


def _choice(axis: str, others: Mapping[str, Any], points: list[tuple[Any, int]]) -> dict[str, Any]:
    numbers = all(isinstance(value, int | float) for value, _ in points)
    if numbers:
        points = sorted(points)
    return {
        "label": f"{axis}, at {plainly(others)}" if others else axis,
        "axis": axis,
        "settings": [place for _, place in points],
        "x": [value if numbers else place for place, (value, _) in enumerate(points)],
        "names": None if numbers else [str(value) for value, _ in points],
    }


def curves(
    title: str,
    text: str,
    *,
    axis: str,
    value: str,
    x: Iterable[float],
    lines: Mapping[str, tuple[Iterable[float], LineStyle]],
) -> dict[str, Any]:
    """Return a figure of lines that are not regrets, such as rates, for a `Presentation`.

    Parameters
    ----------
    title, text, axis, value
        Above the figure, and at its axes.
    x, lines
        Where the lines have values; by name, a line's values and look.

    Examples
    --------
    >>> style = LineStyle("#000000")
    >>> lines = {"half": ([0.0, 0.5], style)}
    >>> made = curves("Half", "x/2.", axis="x", value="y", x=[0, 1], lines=lines)
    >>> made["figure"]["title"], made["setting"]["policies"]
    ('Half', ['Half: half'])
    """
    named = {f"{title}: {name}": line for name, line in lines.items()}  # unlike any policy's label
    return {
        "setting": {
            "times": [float(place) for place in x],
            "replications": 0,
            "policies": list(named),
            "series": [{"mean": [float(y) for y in ys]} for ys, _ in named.values()],
        },
        "figure": {"kind": "curves", "title": title, "text": text, "axis": axis, "value": value},
        "looks": {
            label: _look(name, style)
            for name, (label, (_, style)) in zip(lines, named.items(), strict=True)
        },
    }
