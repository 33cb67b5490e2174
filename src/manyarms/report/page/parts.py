"""What the pages of both kinds of folders share: looks, figures, and what is said of versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from manyarms.report.page.settings import Setting
from manyarms.report.style import LineStyle, policy_styles, policy_title, thousands

__all__ = [
    "count_of",
    "look_of",
    "looks",
    "over_time",
    "plainly",
    "spread",
    "swept",
    "titles",
    "versions",
]

_DARK_PAPER = 0.015  # relative luminance of the page's background in the dark
_CONTRAST = 4.0  # of a line with it, at least: WCAG asks 3


def looks(policies: Iterable[str]) -> dict[str, Any]:
    """Return how each policy looks, as in all figures."""
    return {
        label: look_of(policy_title(label), style)
        for label, style in policy_styles(policies).items()
    }


def look_of(title: str, style: LineStyle) -> dict[str, Any]:
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


def over_time(title: str, text: str, places: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Return a figure of regret over time, for a choice of settings."""
    return {
        "kind": "time",
        "title": title,
        "text": text,
        "choices": [
            {"label": name, "settings": [place]} for place, name in zip(places, names, strict=True)
        ],
    }


def swept(
    title: str, text: str, settings: Sequence[Setting], axes: Sequence[str], *, first: int = 0
) -> dict[str, Any] | None:
    """Return a figure of final regret against each swept parameter; None if nothing is swept.

    Parameters
    ----------
    title, text
        Above the figure.
    settings, axes
        What was played, and the parameters that tell the settings apart.
    first
        The place of the first setting among those of the page.
    """
    choices = []
    for axis in axes:
        groups: dict[tuple[Any, ...], list[tuple[Any, int]]] = {}
        for place, setting in enumerate(settings, first):
            others = tuple((k, v) for k, v in setting.values.items() if k in axes and k != axis)
            groups.setdefault(others, []).append((setting.values[axis], place))
        for others, points in groups.items():
            if len(points) > 1:
                choices.append(_choice(axis, others, points))
    if not choices:
        return None
    return {"kind": "sweep", "title": title, "text": text, "choices": choices}


def _choice(
    axis: str, others: tuple[tuple[str, Any], ...], points: list[tuple[Any, int]]
) -> dict[str, Any]:
    fixed = ", ".join(f"{name} = {plainly(value)}" for name, value in others)
    numbers = all(isinstance(value, int | float) for value, _ in points)
    if numbers:
        points = sorted(points)
    return {
        "label": f"{axis}, at {fixed}" if fixed else axis,
        "axis": axis,
        "settings": [place for _, place in points],
        "x": [value if numbers else place for place, (value, _) in enumerate(points)],
        "names": None if numbers else [str(value) for value, _ in points],
    }


def titles(settings: Iterable[Setting]) -> str:
    """Name the policies that were played, each once."""
    return ", ".join(policy_title(label) for label in {p: None for s in settings for p in s.regret})


def versions(provenance: dict[str, Any]) -> str:
    """Say what software computed it; the machine does not matter, and is left out."""
    found = provenance.get("versions", {})
    ordered = sorted(found, key=lambda name: (name != "manyarms", name))
    return ", ".join(f"{name} {found[name]}" for name in ordered if found[name])


def plainly(value: Any) -> str:
    """Return a parameter's value as one would write it.

    >>> plainly(1.0), plainly(0.25), plainly("[0.9, 0.5]")
    ('1', '0.25', '[0.9, 0.5]')
    """
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def count_of(number: int, one: str, many: str) -> str:
    """Say how many, in words that fit.

    >>> count_of(1, "policy", "policies"), count_of(12000, "pull", "pulls")
    ('1 policy', '12,000 pulls')
    """
    return f"{thousands(number)} {one if number == 1 else many}"


def spread(values: Iterable[Any]) -> str:
    """Say which values there are: each once, or the ends of many.

    >>> spread([20, 10, 20]), spread(range(9)), spread(["a"])
    ('10, 20', '0 to 8', 'a')
    """
    different = sorted(set(values), key=lambda v: (isinstance(v, str), v))
    words = [thousands(v) if isinstance(v, int | float) else str(v) for v in different]
    return ", ".join(words) if len(words) <= 4 else f"{words[0]} to {words[-1]}"
