"""The paper's figures, drawn from results. Each function returns a matplotlib Figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_number
from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError
from manyarms.lab.results import Result
from manyarms.lab.tables import ResultsFolder
from manyarms.report._matplotlib import (
    Axes,
    Figure,
    FuncFormatter,
    Line2D,
    MaxNLocator,
    Patch,
    look,
    settle,
)
from manyarms.report.rates_figure import figure_1
from manyarms.report.saving import save_figure
from manyarms.report.style import (
    BAND_OPACITY,
    BAND_WIDTH,
    HARDNESS,
    NOTE_SIZE,
    WIDE,
    policy_styles,
    policy_title,
    thousands,
)

__all__ = [
    "draw_cells",
    "draw_means",
    "figure_1",
    "mean_text",
    "regret_against_hardness",
    "regret_over_time",
    "save_figure",
]

_MARKS = 10  # markers on a line over time: enough to tell it, not so many as to hide it
_LINE = 0.16  # inches, of a title or a line of a note
_NOTE_WIDTH = 105  # characters
_TICKS = 10  # up to so many hardnesses get a tick each


def regret_against_hardness(results: Mapping[float, Result], *, title: str | None = None) -> Figure:
    """Draw Figure 2(a): mean final regret of each policy against hardness.

    Parameters
    ----------
    results
        What was measured, by hardness; all with the same horizon.
    title
        Above the plot; none unless given.

    Examples
    --------
    >>> import manyarms as ma
    >>> results = {
    ...     alpha: ma.simulate(
    ...         [ma.MOSS(), ma.MOSSPlusPlus()],
    ...         ma.instances.planted(n=500, alpha=alpha, horizon=1000),
    ...         horizon=1000,
    ...         replications=3,
    ...     )
    ...     for alpha in (0.2, 0.4)
    ... }
    >>> [line.get_label() for line in regret_against_hardness(results).axes[0].lines]
    ['MOSS', 'MOSS++']
    """
    ordered = _check_results(results)
    alphas, all_results = list(ordered), list(ordered.values())
    with look():
        figure, axes = _blank(title)
        pulls = thousands(all_results[0].horizon)
        axes.set(xlabel=HARDNESS, ylabel=f"mean pseudo-regret after {pulls} pulls")
        lines = []
        styles = policy_styles(name for result in all_results for name in result.policies)
        for label, style in styles.items():
            # a policy may have been left out at some hardnesses
            played = [alpha for alpha in alphas if label in ordered[alpha].policies]
            final = [_mean_and_band(ordered[alpha].of(label)[:, -1:]) for alpha in played]
            means, bands = (np.concatenate(column) for column in zip(*final, strict=True))
            options = style.options() | {"label": policy_title(label)}
            lines.append(_draw(axes, np.array(played), means, bands, options))
        if len(alphas) <= _TICKS:
            axes.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
        _from_zero(axes)
        _legend(figure, lines, all_results)
        settle(figure)
    return figure


def regret_over_time(
    result: Result, *, title: str | None = None, note: str | None = None
) -> Figure:
    """Draw mean regret against time, as Figures 2(b) and 3 do.

    The legend's order is that of the lines at the end.

    Parameters
    ----------
    result
        What was measured.
    title
        Above the plot; none unless given.
    note
        In small print below the plot, such as "stand-in data".

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> result = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=1000, replications=3)
    >>> regret_over_time(result, note="a first try").axes[0].get_xlabel()
    'time t (pulls)'
    """
    with look():
        figure, axes = _blank(title, note)
        axes.set(xlabel="time t (pulls)", ylabel="mean pseudo-regret up to time t")
        times = np.concatenate([[0], result.times])  # when nothing is lost yet
        step = max(1, len(times) // _MARKS)
        lines = []
        for k, (label, style) in enumerate(policy_styles(result.policies).items()):
            means, bands = (np.concatenate([[0.0], v]) for v in _mean_and_band(result.of(label)))
            # each line's markers at other times than its neighbours'
            start = step - 1 - k * step // len(result.policies)
            options = style.options() | {"label": policy_title(label), "markevery": (start, step)}
            lines.append(_draw(axes, times, means, bands, options))
        axes.set_xlim(0, 1.01 * result.horizon)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        _from_zero(axes)
        lines.sort(key=lambda line: -float(np.asarray(line.get_ydata())[-1]))
        _legend(figure, lines, [result])
        settle(figure)
    return figure


def draw_cells(results: ResultsFolder, folder: Path, *, most: int = 24) -> tuple[list[Path], int]:
    """Draw the cells of a run: against hardness if that is all that differs, and over time.

    Parameters
    ----------
    results, folder
        What to draw, and where.
    most
        How many cells are drawn over time, at most (default: 24).

    Returns
    -------
    tuple
        The files written, and the number of cells left out.
    """
    cells = results.cells
    files = []
    if all(list(each.parameters) == ["alpha"] for each in cells):
        by_alpha = {float(each.parameters["alpha"]): each for each in cells}
        files += save_figure(regret_against_hardness(by_alpha), folder / "hardness")
    for number, each in enumerate(cells[:most], 1):
        title = ", ".join(f"{name} = {value}" for name, value in each.parameters.items()) or None
        files += save_figure(regret_over_time(each, title=title), folder / f"over_time_{number}")
    return files, max(0, len(cells) - most)


def draw_means(
    axes: Axes, x: Any, regrets: Iterable[NDArray[np.float64]], options: dict[str, Any]
) -> Line2D:
    """Draw means as a line, with bars for their 95 % intervals."""
    intervals = [mean_interval(regret) for regret in regrets]
    (line,) = axes.plot(x, [i.estimate for i in intervals], **options)
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    if np.isfinite(low).all():  # a single replication has none
        axes.vlines(x, low, high, colors=options["color"], linewidth=0.8, zorder=1.5)
    return line


def mean_text(regret: NDArray[np.float64]) -> str:
    """Return the mean final regret with half the width of its 95 % interval, as text."""
    interval = mean_interval(regret[:, -1])
    return f"{interval.estimate:.0f} ± {interval.high - interval.estimate:.0f}"


def _check_results(results: Mapping[float, Result]) -> dict[float, Result]:
    if not results:
        raise ParameterError("`results` must hold at least one result, got none.")
    fix = "The keys of `results` are hardnesses."
    checked = {check_number("alpha", key, at_least=0.0, fix=fix): results[key] for key in results}
    ordered = dict(sorted(checked.items()))
    horizons = sorted({result.horizon for result in ordered.values()})
    if len(horizons) > 1:
        raise ParameterError(
            f"`results` must have one horizon, got {horizons}. Draw a figure for each."
        )
    return ordered


def _blank(title: str | None, note: str | None = None) -> tuple[Figure, Axes]:
    figure = Figure(figsize=WIDE)
    axes = figure.add_subplot()
    width, height = WIDE
    if title:
        axes.set_title(title, parse_math=False)  # names are text: a $ in one is no formula
        height += _LINE
    if note:
        lines = textwrap.wrap(note, _NOTE_WIDTH)
        note = "\n".join(lines)
        figure.supxlabel(note, fontsize=NOTE_SIZE, color="#444444", parse_math=False)
        height += _LINE * len(lines)
    figure.set_size_inches(width, height)  # so that the plot itself keeps its size
    return figure, axes


def _from_zero(axes: Axes) -> None:
    locator = MaxNLocator(6, steps=[1, 2, 5, 10])
    needed = 1.03 * axes.dataLim.ymax if axes.dataLim.ymax > 0 else 1.0  # room for a marker
    half_step = np.diff(locator.tick_values(0.0, needed))[0] / 2
    axes.set_ylim(0.0, half_step * np.ceil(needed / half_step))
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))


def _mean_and_band(regret: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and half the height of the band, by checkpoint."""
    means = regret.mean(axis=0)
    if len(regret) == 1:  # no spread to speak of
        return means, np.zeros_like(means)
    return means, BAND_WIDTH * regret.std(axis=0, ddof=1)


def _draw(axes: Axes, x: Any, means: Any, bands: Any, options: dict[str, Any]) -> Line2D:
    (line,) = axes.plot(x, means, **options)
    colour = options["color"]
    axes.fill_between(
        x,
        means - bands,
        means + bands,
        facecolor=(colour, BAND_OPACITY),
        edgecolor=(colour, 2 * BAND_OPACITY),  # bands that overlap are told apart in grey
        linewidth=0.4,
    )
    return line


def _legend(figure: Figure, lines: list[Line2D], results: Iterable[Result]) -> None:
    numbers = sorted({result.replications for result in results})
    if numbers == [1]:
        band = Patch(alpha=0.0, label="1 replication")
    else:
        several = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        text = f"shaded: mean ± {BAND_WIDTH:g} standard deviation of {several} replications"
        band = Patch(color="black", alpha=BAND_OPACITY, linewidth=0, label=textwrap.fill(text, 22))
    legend = figure.legend(handles=[*lines, band], loc="outside right upper")
    for label in legend.get_texts():
        label.set_parse_math(False)
    legend.get_texts()[-1].set(fontsize=NOTE_SIZE, linespacing=1.1)
