"""Regret against what a policy is not told in time, or not told truly."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError
from manyarms.report._matplotlib import Axes, Figure, FuncFormatter, Line2D, Patch, look, settle
from manyarms.report.style import (
    HARDNESS,
    NARROW,
    NOTE_SIZE,
    LineStyle,
    policy_styles,
    policy_title,
    shades,
    thousands,
)
from manyarms.results import Result

__all__ = ["regret_against_best_mean", "regret_against_lateness"]

_TWO_PANELS = (6.6, 3.0)  # inches
_PANELS = {"delay": "delay (pulls)", "batch": "batch size (pulls)"}
_TICKS = (1, 2, 5)  # of each power of ten
_MARKS = ("o", "s", "^", "D", "v")


def regret_against_lateness(
    observed: Mapping[str, Mapping[int, Result]],
    counting: Mapping[str, Mapping[int, Result]] | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draw mean final regret against the delay of rewards and against the size of batches.

    Parameters
    ----------
    observed
        Under "delay" and "batch": what was measured, by delay and by batch size.
    counting
        The same for policies that count late pulls; drawn thinner, with hollow markers.
    title
        Above the panels; none unless given.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> results = {
    ...     late: {k: ma.simulate(ma.MOSS(), instance, horizon=1000, replications=3, **{late: k})}
    ...     for late, k in (("delay", 10), ("batch", 10))
    ... }
    >>> [axes.get_xlabel() for axes in regret_against_lateness(results).axes]
    ['delay (pulls)', 'batch size (pulls)']
    """
    families = [observed] if counting is None else [observed, counting]
    for family in families:
        if set(family) != set(_PANELS) or not all(family.values()):
            raise ParameterError(
                f'`observed` and `counting` must hold results under "delay" and under "batch", '
                f"got {sorted(family)}."
            )
    with look():
        figure = Figure(figsize=_TWO_PANELS)
        panels = figure.subplots(1, 2, sharey=True)
        lines: list[Line2D] = []
        for axes, (late, label) in zip(panels, _PANELS.items(), strict=True):
            places = sorted({k for family in families for k in family[late]})
            for hollow, family in enumerate(families):
                lines += _draw_policies(axes, places, family[late], hollow=bool(hollow))
            axes.set_xticks(range(len(places)), [thousands(place) for place in places])
            axes.set_xlabel(label)
        results = list(observed["delay"].values())
        _logarithmic(panels[0], results[0].horizon)
        if title:
            figure.suptitle(title)
        shown = lines[: len(results[0].policies)]
        _legend(figure, shown, results, hollow=counting is not None)
        settle(figure)
    return figure


def regret_against_best_mean(
    results: Mapping[float, Result], told: Sequence[float], *, title: str | None = None
) -> Figure:
    """Draw mean final regret against the best mean that Parallel was told, by hardness.

    Parameters
    ----------
    results
        By hardness: what was measured, the k-th policy being Parallel told `told[k]`.
    told
        The best means that it was told, in ascending order.
    title
        Above the plot; none unless given.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> policies = [ma.Parallel(best_mean=0.8), ma.Parallel(best_mean=0.9)]
    >>> result = ma.simulate(policies, instance, horizon=1000, replications=3)
    >>> regret_against_best_mean({0.2: result}, (0.8, 0.9)).axes[0].get_xlabel()
    'best mean told to Parallel'
    """
    if not results or any(len(result.policies) != len(told) for result in results.values()):
        raise ParameterError(
            f"`results` must hold results with a policy for each of `told`, got {len(results)} "
            f"results and {len(told)} best means."
        )
    with look():
        figure = Figure(figsize=NARROW)
        axes = figure.add_subplot()
        first = next(iter(results.values()))
        colours = shades(len(results))
        for k, (alpha, result) in enumerate(sorted(results.items())):
            style = LineStyle(colours[k], marker=_MARKS[k % len(_MARKS)])
            options = style.options() | {"label": f"{HARDNESS} = {alpha:g}"}
            _draw(axes, told, list(result.regret[:, :, -1]), options)
        axes.axvline(first.best_mean, color="black", linewidth=0.8, dashes=(2, 2), zorder=0)
        axes.annotate(
            "the truth",
            (first.best_mean, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=NOTE_SIZE,
        )
        pulls = thousands(first.horizon)
        axes.set(
            xlabel="best mean told to Parallel", ylabel=f"mean pseudo-regret after {pulls} pulls"
        )
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(thousands))
        axes.set_title(title or "")
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.92))
        settle(figure)
    return figure


def _draw_policies(
    axes: Axes, places: list[int], results: Mapping[int, Result], *, hollow: bool
) -> list[Line2D]:
    ordered = sorted(results)
    lines = []
    for label, style in policy_styles(results[ordered[0]].policies).items():
        options = style.options() | {"label": policy_title(label)}
        if hollow:
            options |= {"markerfacecolor": "white", "linewidth": 0.7, "label": "_"}
        x = [places.index(place) for place in ordered]
        regrets = [results[place].of(label)[:, -1] for place in ordered]
        lines.append(_draw(axes, x, regrets, options))
    return lines


def _draw(
    axes: Axes, x: Any, regrets: list[NDArray[np.float64]], options: dict[str, Any]
) -> Line2D:
    """Draw the means, with bars for their 95 % intervals."""
    intervals = [mean_interval(regret) for regret in regrets]
    (line,) = axes.plot(x, [i.estimate for i in intervals], **options)
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    if np.isfinite(low).all():  # a single replication has none
        axes.vlines(x, low, high, colors=options["color"], linewidth=0.8, zorder=1.5)
    return line


def _logarithmic(axes: Axes, horizon: int) -> None:
    axes.set_yscale("log")
    axes.set_ylabel(f"mean pseudo-regret after {thousands(horizon)} pulls")
    low, high = axes.get_ylim()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
    ticks = [t * power for power in powers for t in _TICKS if low <= t * power <= high]
    axes.set_yticks(ticks, [thousands(tick) for tick in ticks])
    axes.set_yticks([], minor=True)


def _legend(figure: Figure, lines: list[Line2D], results: list[Result], *, hollow: bool) -> None:
    notes = [f"bars: 95 % intervals of the mean, {results[0].replications} replications"]
    if hollow:
        notes.insert(0, "hollow: late pulls count in the bonus (count_late)")
    handles = [Patch(alpha=0.0, label=textwrap.fill(note, 24)) for note in notes]
    legend = figure.legend(handles=[*lines, *handles], loc="outside right upper")
    for text in legend.get_texts()[-len(handles) :]:
        text.set(fontsize=NOTE_SIZE, linespacing=1.1)
