"""The style of all figures: colours, lines, markers, names, sizes.

It is plain data and needs no plotting package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from manyarms.core.theme import LIGHT
from manyarms.protocol.colours import OTHER_COLOURS, OTHERS, POLICY_COLOURS, colour_of


class LineStyle(NamedTuple):
    """The style of a line. The lines of a figure are distinct in colour and in greyscale.

    `dashes` are the lengths of dashes and gaps in line widths, empty for a solid line. `size` is
    the marker's, in points.
    """

    colour: str
    dashes: tuple[float, ...] = ()
    marker: str = ""
    size: float = 4.0
    filled: bool = True

    def options(self, **others: Any) -> dict[str, Any]:
        """Return the style, with `others`, as keyword arguments of matplotlib's `plot`."""
        return {
            "color": self.colour,
            "linestyle": (0, self.dashes) if self.dashes else "-",
            "marker": self.marker,
            "markersize": self.size,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
            **others,
        }


# Dashes, markers and their sizes; colours are in `protocol.colours`. On hard problems the lines of
# MOSS, MOSS Oracle and Parallel coincide; a small diamond is visible on a large triangle.
_SHAPES: dict[str, tuple[tuple[float, ...], str, float]] = {
    "moss": ((1, 1), "^", 5.5),
    "moss-oracle": ((2.5, 1.2), "D", 3.0),
    "quantile": ((6, 1.2, 1, 1.2), "v", 4.5),
    "parallel": ((3, 1, 1, 1, 1, 1), "P", 4.5),
    "moss++": ((6, 1.5), "s", 4.0),
    "empmoss++": ((), "o", 4.0),
    "anytime-moss++": ((1.5, 1), "<", 4.5),
    "prospector": ((), "*", 6.0),
    "anytime-parallel": ((6, 1.2, 2, 1.2), ">", 4.5),
}
_NAMED = {name: LineStyle(POLICY_COLOURS[name], *shape) for name, shape in _SHAPES.items()}

# Rates that are not those of a policy.
MINIMAX_LINE = LineStyle("#000000", (4, 1.2))
SUBSET_LINE = LineStyle("#D55E00", (1, 1))
QUANTILE_LINE = _NAMED["quantile"]._replace(marker="")

_TITLES = {
    "moss": "MOSS",
    "moss-oracle": "MOSS Oracle",
    "quantile": "Quantile",
    "parallel": "Parallel",
    "moss++": "MOSS++",
    "empmoss++": "empMOSS++",
    "anytime-moss++": "anytime MOSS++",
    "anytime-parallel": "anytime Parallel",
    "patience": "Patience",
    "prospector": "Prospector",
    "scout": "Scout",
    "sequential-halving": "Sequential halving",
}

# For all other lines: hollow markers, which no named line has. 8 (colours), 5 and 7 have no common
# factor, so the first 280 combinations are all different.
_DASHES = ((), (5, 1.5), (1.5, 1), (7, 1.2, 1.5, 1.2), (3, 1, 1, 1, 1, 1))
_MARKERS = ("o", "s", "^", "D", "v", "p", "h")

# One hue from dark to light for an ordered family of lines; greyscale keeps the order.
_DARK, _LIGHT = (8, 48, 107), (158, 202, 235)

ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
HARDNESS = f"hardness {ALPHA}"

PAPER_BAND = 0.25  # standard deviations above and below the mean, as in the authors' code
BAND_OPACITY = 0.18
NARROW = (3.4, 2.6)  # inches: one of two columns
COLUMN, PAGE = 3.3, 6.8  # inches: widths of a page with two columns
WIDE = (5.0, 2.8)  # inches: one column, or a plot with its legend beside it
NOTE_SIZE = 6  # points
INSIDE_LEGEND: dict[str, Any] = {  # it covers some of the plot, so it is small
    "fontsize": 6.5,
    "handlelength": 2.6,
    "labelspacing": 0.35,
    "frameon": True,
    "framealpha": 0.8,
    "edgecolor": "none",
}

_TICKS = {
    "labelsize": 7,
    "direction": "out",
    "major.width": 0.6,
    "major.size": 2.5,
    "color": LIGHT["soft"],
    "labelcolor": LIGHT["ink"],
}
FONT = "DejaVu Sans"  # part of matplotlib, so layouts are the same on all machines
SETTINGS: dict[str, Any] = {
    "font.family": FONT,
    "font.size": 8,
    "mathtext.fontset": "dejavusans",
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["soft"],
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 0.5,
    **{f"{axis}tick.{key}": value for axis in "xy" for key, value in _TICKS.items()},
    "lines.linewidth": 1.3,
    "lines.markeredgewidth": 0.8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 3.4,
    "legend.labelspacing": 0.55,
    "legend.borderpad": 0.1,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,  # fonts that publishers accept
    "svg.fonttype": "none",  # text is not converted to paths, so that it can be searched
    "svg.hashsalt": "manyarms",  # otherwise the ids in an SVG file differ each time
    "savefig.dpi": 300,
}


def policy_styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each label: the policy's own if it has one, else the next free one.

    A policy of the package has the same style in every figure, with any parameters. If a figure has
    it with several parameters, these lines have different styles.

    >>> policy_styles(["moss", "moss++(beta=0.6)"])["moss++(beta=0.6)"].colour
    '#0072B2'
    >>> styles = policy_styles(["moss++", "moss++(beta=0.6)", "mine"])
    >>> len({style.colour for style in styles.values()})
    3
    """
    names = {label: label.partition("(")[0] for label in labels}
    forms = Counter(names.values())
    homes = {label: name if forms[name] == 1 else label for label, name in names.items()}
    styles = {label: _home(home) for label, home in homes.items()}
    used = Counter(style.colour for style in styles.values() if style)
    free = [_nth(len(OTHERS) + k) for k in range(len(styles) + len(OTHER_COLOURS))]
    for label, style in styles.items():
        if style is None:  # the least used colour
            styles[label] = next_free = min(free, key=lambda one: used[one.colour])
            free.remove(next_free)
            used[next_free.colour] += 1
    return {label: style for label, style in styles.items() if style}


def _home(name: str) -> LineStyle | None:
    """Return the style of a policy of the package; None for any other."""
    return _NAMED.get(name) or (_nth(OTHERS[name]) if name in OTHERS else None)


def _nth(place: int) -> LineStyle:
    dashes, marker = _DASHES[place % len(_DASHES)], _MARKERS[place % len(_MARKERS)]
    return LineStyle(colour_of(place), dashes, marker, filled=False)


def policy_titles(labels: Iterable[str]) -> dict[str, str]:
    """Return the title of each label; labels that would have the same title keep their text.

    >>> policy_titles(["moss", "moss++", "MOSS"])
    {'moss': 'moss', 'moss++': 'MOSS++', 'MOSS': 'MOSS'}
    """
    titles = {label: policy_title(label) for label in labels}
    count = Counter(titles.values())
    return {label: title if count[title] == 1 else label for label, title in titles.items()}


def policy_title(label: str) -> str:
    """Return a policy's name as the paper writes it, with the parameters in `label`.

    >>> policy_title("moss-oracle"), policy_title("moss++(beta=0.6)"), policy_title("mine")
    ('MOSS Oracle', 'MOSS++ (β = 0.6)', 'mine')
    """
    name, bracket, parameters = label.partition("(")
    title = _TITLES.get(name, name)
    if not bracket:
        return title
    for word, letter in (("alpha", ALPHA), ("beta", "β")):
        parameters = parameters.replace(f"{word}=", f"{letter}=")
    return f"{title} ({parameters.replace('=', ' = ')}"


def shades(number: int) -> list[str]:
    """Return shades of one hue from dark to light, for an ordered family of lines.

    >>> shades(3)
    ['#08306B', '#537DAB', '#9ECAEB']
    """
    steps = [k / max(1, number - 1) for k in range(number)]
    ends = list(zip(_DARK, _LIGHT, strict=True))
    return ["#" + "".join(f"{round(a + t * (b - a)):02X}" for a, b in ends) for t in steps]


def thousands(value: float, position: float | None = None) -> str:
    """Return a number as an axis shows it; matplotlib passes `position`, which is not used.

    >>> [thousands(value) for value in (0, 2.5, 50_000, 25_000_000)]
    ['0', '2.5', '50,000', '25M']
    """
    if abs(value) >= 1e7:
        return f"{value / 1e6:,g}M"
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"
