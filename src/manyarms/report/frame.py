"""What all plots have: a size or the user's axes, bands, and a legend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_choice, check_number, refusal
from manyarms.core.theme import LIGHT
from manyarms.report.drawing import Axes, Figure, Line2D, Patch, drawing
from manyarms.report.style import (
    BAND_OPACITY,
    COLUMN,
    INSIDE_LEGEND,
    NOTE_SIZE,
    PAGE,
    WIDE,
)
from manyarms.simulation.results import Result

Width: TypeAlias = Literal["column", "page"] | float
Band: TypeAlias = Literal["se", "sd", "quantiles", "gaffke"] | float | None
LegendPlace: TypeAlias = Literal["beside", "inside"]

Numbers = NDArray[np.float64]

_WIDTHS = {"column": COLUMN, "page": PAGE}
_LINE = 0.16  # inches, of a line of a title or a note
_NOTE, _LABEL = 21, 13.5  # characters per inch: of notes, and of labels of axes
_TITLE = {"inside": 14, "beside": 11}  # characters per inch of titles, by the place of the legend
_LOWEST, _HIGHEST = 2.45, 3.4  # inches: heights of plots
_WIDE_ENOUGH = 4.5  # inches: in a narrower figure a legend beside the plot takes too much of it
_SIX_TICKS = 3.5  # inches: a wider plot has up to six ticks
_FAINT = 0.1  # opacity of bands that overlap most of the others
_QUANTILES = (0.05, 0.95)
_HIGHER = 1.08  # times the axis, at a time, until the legend covers no line
_MOST_STEPS = 40


@contextmanager
def framed(
    width: Width | None,
    ax: Axes | None,
    legend: LegendPlace | None,
    *,
    title: str | None,
    note: str | None = None,
) -> Iterator[tuple[Figure, Axes]]:
    """Yield a new figure of this width and its axes, or the figure of `ax` and `ax`."""
    if ax is not None:
        if width is not None:
            raise refusal(
                "width",
                "left out with `ax`",
                width,
                "`ax` belongs to a figure that has a width already.",
            )
        if note is not None:
            raise refusal("note", "left out with `ax`", note, "Draw it with `ax.text`.")
        if title is not None:
            ax.set_title(title, parse_math=False)
        yield ax.get_figure(root=True), ax  # type: ignore[misc]  # axes that are drawn on have one
        return
    size = size_of(width)
    with drawing(*size) as figure:
        letters = round(size[0] * _TITLE[legend_place(legend, size[0], None)])
        yield figure, _axes(figure, size, textwrap.wrap(title or "", letters), note)


def size_of(width: Width | None, usual: tuple[float, float] = WIDE) -> tuple[float, float]:
    """Return the width, and the height that belongs to it, in inches."""
    if width is None:
        return usual
    if isinstance(width, str):
        check_choice("width", width, tuple(_WIDTHS))
        width = _WIDTHS[width]
    inches = check_number("width", width, at_least=2.0, at_most=30.0, fix="It is in inches.")
    height = inches * WIDE[1] / WIDE[0]
    return inches, max(height, _LOWEST) if inches < PAGE else min(height, _HIGHEST)


def _axes(
    figure: Figure, size: tuple[float, float], titles: Sequence[str], note: str | None
) -> Axes:
    """Add axes; the figure grows by its title and note, so that the plot keeps its size."""
    width, height = size
    notes = textwrap.wrap(note or "", round(_NOTE * width))
    if notes:
        words = "\n".join(notes)
        figure.supxlabel(words, fontsize=NOTE_SIZE, color=LIGHT["soft"], parse_math=False)
    figure.set_size_inches(width, height + _LINE * (len(titles) + len(notes)))
    axes = figure.add_subplot()
    axes.set_title("\n".join(titles), parse_math=False)
    return axes


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Label the axes, and wrap the label of the y axis."""
    height = axes.get_figure(root=True).get_size_inches()[1]  # type: ignore[union-attr]
    axes.set(xlabel=x, ylabel=textwrap.fill(y, max(20, round(_LABEL * height))))


def check_band(band: Band) -> Band:
    """Return the band, or raise if it is invalid."""
    if band is None or isinstance(band, str):
        if band is not None:
            check_choice("band", band, ("se", "sd", "quantiles", "gaffke"))
        return band
    fix = "A number k shades k standard deviations above and below the mean."
    return check_number("band", band, at_least=0.0, fix=fix)


def mean_and_band(result: Result, policy: str, band: Band) -> tuple[Numbers, Numbers, Numbers]:
    """Return the mean and the ends of the band, by checkpoint."""
    regret = result.of(policy)
    means = regret.mean(axis=0)
    if len(regret) == 1 or band is None:  # there is no spread
        return means, means, means
    if band == "gaffke":
        return means, *result.intervals(policy)
    if band == "quantiles":
        low, high = np.quantile(regret, _QUANTILES, axis=0)
        return means, low, high
    half = (1.0 if isinstance(band, str) else band) * regret.std(axis=0, ddof=1)
    if band == "se":
        half = half / np.sqrt(len(regret))
    return means, means - half, means + half


def draw_band(axes: Axes, x: Any, ends: Sequence[Any], colour: str, *, band: Band) -> None:
    """Shade a band. In greyscale, its edges distinguish it from bands that overlap it."""
    opacity = _FAINT if band == "gaffke" else BAND_OPACITY
    face, edge = (colour, opacity), (colour, 2 * BAND_OPACITY)
    axes.fill_between(x, *ends, facecolor=face, edgecolor=edge, linewidth=0.4)


def ticks_in(axes: Axes, legend: LegendPlace | None) -> int:
    """Return the largest number of ticks of the time axis."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    inches = axes.get_window_extent().width / figure.dpi
    if inches > _SIX_TICKS:
        return 6
    return 2 if legend == "beside" else 4


def legend_place(legend: LegendPlace | None, width: float, ax: Axes | None) -> LegendPlace:
    """Return the place of the legend, by default beside the plot if the figure is wide enough."""
    if legend is None:
        return "inside" if ax is not None or width < _WIDE_ENOUGH else "beside"
    check_choice("legend", legend, get_args(LegendPlace))
    if legend == "beside" and ax is not None:
        fix = "To put it beside the plot, draw one with `ax.figure.legend`."
        raise refusal("legend", '"inside" with `ax`', legend, fix)
    return legend


def draw_legend(
    axes: Axes,
    lines: Sequence[Line2D],
    results: Iterable[Result],
    *,
    band: Band,
    legend: LegendPlace | None,
    ax: Axes | None,
) -> None:
    """Draw a legend of the lines and the band."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    place = legend_place(legend, float(figure.get_size_inches()[0]), ax)
    notes = [_band_entry(band, results, 22 if place == "beside" else 34)]
    if place == "beside":
        _legend_beside(figure, lines, notes)
    else:
        _legend_inside(figure, axes, lines, notes)


def _band_entry(band: Band, results: Iterable[Result], width: int) -> Patch:
    """Return the entry of the legend for the band and the number of runs."""
    numbers = sorted({result.replications for result in results})
    several = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    runs = f"{several} replication{'' if numbers == [1] else 's'}"
    if numbers == [1] or band is None:
        return Patch(alpha=0.0, label=runs)
    if band == "se":
        text = f"shaded: mean ± standard error, {runs}"
    elif band == "gaffke":
        text = f"shaded: 95 % confidence interval of the mean, {runs}"
    elif band == "quantiles":
        text = f"shaded: 5 % to 95 % of {runs}"
    else:
        wide = 1 if isinstance(band, str) else f"{band:g}"
        text = f"shaded: mean ± {wide} standard deviation of {runs}"
    label = textwrap.fill(text, width)
    return Patch(color="black", alpha=BAND_OPACITY, linewidth=0, label=label)


def _legend_beside(figure: Figure, lines: Sequence[Line2D], notes: Sequence[Patch]) -> None:
    """Put a legend beside the plots, with notes below it in small print."""
    _format_texts(figure.legend(handles=[*lines, *notes], loc="outside right upper"), len(notes))


def _format_texts(legend: Any, notes: int) -> None:
    for text in legend.get_texts():  # a $ in a name must not begin a formula
        text.set_parse_math(False)
    for text in legend.get_texts()[-notes:]:
        text.set(fontsize=NOTE_SIZE, linespacing=1.1)


def _legend_inside(
    figure: Figure, axes: Axes, lines: Sequence[Line2D], notes: Sequence[Patch]
) -> None:
    """Put a legend into the upper left corner, and extend the axis until it covers no line."""
    legend = axes.legend(handles=[*lines, *notes], loc="upper left", **INSIDE_LEGEND)
    _format_texts(legend, len(notes))
    for _ in range(_MOST_STEPS):
        figure.draw_without_rendering()
        box = legend.get_window_extent()
        paths = [line.get_transform().transform_path(line.get_path()) for line in axes.lines]
        if not any(path.intersects_bbox(box, filled=False) for path in paths):
            break
        axes.set_ylim(top=_HIGHER * axes.get_ylim()[1])
