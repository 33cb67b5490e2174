"""The paper's figures. Each is a matplotlib Figure."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_number, check_probability, refusal
from manyarms.errors import ParameterError
from manyarms.protocol.policy import Policy
from manyarms.report.drawing import (
    Axes,
    Figure,
    Line2D,
    MaxNLocator,
    MultipleLocator,
    drawing,
)
from manyarms.report.frame import (
    Band,
    LegendPlace,
    Width,
    check_band,
    draw_band,
    draw_legend,
    framed,
    label_axes,
    mean_and_band,
    size_of,
    ticks_in,
)
from manyarms.report.style import (
    ALPHA,
    HARDNESS,
    MINIMAX_LINE,
    NARROW,
    NOTE_SIZE,
    QUANTILE_LINE,
    SUBSET_LINE,
    WIDE,
    LineStyle,
    policy_styles,
    policy_titles,
    shades,
    thousands,
)
from manyarms.simulation.players import label_of
from manyarms.simulation.results import Result
from manyarms.simulation.sweep_results import SweepResults
from manyarms.theory.pareto import Rate, rate_on_grid
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate, subset_rate

_MARKS = 10  # markers on a line over time
_TICKS = 10  # up to this many hardnesses get a tick each
_CELLS = 24  # at most this many are drawn over time
_ALPHAS: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)
_NAME_WIDTH = 0.06  # of a rate's name, as a share of the axis
_RATE_MARKS = 8  # markers on a line of `others`, which distinguish it from the paper's
_NONE: Mapping[str, Rate] = MappingProxyType({})

Numbers = NDArray[np.float64]


def regret_against_hardness(
    results: SweepResults | Mapping[float, Result],
    *,
    policies: Sequence[str | Policy | type] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    band: Band = "se",
    legend: LegendPlace | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the mean final regret of each policy against hardness, as in Figure 2(a).

    The paper's band is `band=0.25`.

    Parameters
    ----------
    results
        The results of a sweep whose cells have only the parameter "alpha", or a mapping of hardness
        to result. All have the same horizon.
    policies, width, ax, band, legend, title
        As for `regret_over_time`.

    Examples
    --------
    >>> import manyarms as ma
    >>> from manyarms.simulation import Sweep, cell, run_in_memory
    >>> cells = [
    ...     cell(
    ...         [ma.MOSS(), ma.MOSSPlusPlus()],
    ...         ma.instances.planted(n=500, alpha=alpha, horizon=1000),
    ...         horizon=1000,
    ...         replications=3,
    ...         parameters={"alpha": alpha},
    ...     )
    ...     for alpha in (0.2, 0.4)
    ... ]
    >>> figure = regret_against_hardness(run_in_memory(Sweep("two", tuple(cells))))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['MOSS', 'MOSS++']
    """
    ordered, band = _by_hardness(results), check_band(band)
    with framed(width, ax, legend, title=title) as (figure, axes):
        pulls = thousands(next(iter(ordered.values())).horizon)
        label_axes(axes, HARDNESS, f"mean pseudo-regret after {pulls} pulls")
        lines: list[Line2D] = []
        styles = policy_styles(_chosen(policies, ordered.values()))
        titles = policy_titles(styles)
        for label, style in styles.items():
            # a policy may have been left out at some hardnesses
            played = {a: result for a, result in ordered.items() if label in result.policies}
            final = [mean_and_band(result, label, band) for result in played.values()]
            means, *ends = (
                np.array([each[-1] for each in column]) for column in zip(*final, strict=True)
            )
            options = style.options(label=titles[label])
            lines += axes.plot(list(played), means, **options)
            draw_band(axes, list(played), ends, style.colour, band=band)
        if len(ordered) <= _TICKS:
            axes.set_xticks(list(ordered), [f"{alpha:g}" for alpha in ordered])
        _from_zero(axes)
        draw_legend(axes, lines, ordered.values(), band=band, legend=legend, ax=ax)
    return figure


def regret_over_time(
    result: Result,
    *,
    policies: Sequence[str | Policy | type] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    band: Band = "se",
    legend: LegendPlace | None = None,
    title: str | None = None,
    note: str | None = None,
) -> Figure:
    """Draw the mean regret of each policy against time, as in Figures 2(b) and 3.

    The paper's band is `band=0.25`.

    Parameters
    ----------
    result
        The result to draw.
    policies
        The policies to draw, in the order of the legend (default: all, in the order of their regret
        at the end).
    width
        The width of the figure: "column" (3.3 inches, one of two columns), "page" (6.8 inches), or
        a number of inches (default: 5).
    ax
        The axes to draw on (default: those of a new figure).
    band
        What is shaded: "se", one standard error above and below the mean (default); "sd", one
        standard deviation; a number of standard deviations; "quantiles", from 5 % to 95 % of the
        runs; "gaffke", the confidence interval of the mean in `summary(interval="gaffke")`; or
        None.
    legend
        "beside" the plot or "inside" (default: inside, if the figure is narrower than 4.5 inches or
        `ax` is given).
    title, note
        The title, and a footnote such as "synthetic data" (default: none).

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> result = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=1000, replications=3)
    >>> figure = regret_over_time(result, width="column", note="a first try")
    >>> figure.axes[0].get_xlabel()
    'time t (pulls)'
    """
    band = check_band(band)
    with framed(width, ax, legend, title=title, note=note) as (figure, axes):
        label_axes(axes, "time t (pulls)", "mean pseudo-regret up to time t")
        times = np.concatenate([[0], result.times])  # at time 0 the regret is 0
        step = max(1, len(times) // _MARKS)
        lines: list[Line2D] = []
        styles = policy_styles(_chosen(policies, [result]))
        titles = policy_titles(styles)
        for k, (label, style) in enumerate(styles.items()):
            means, *ends = (np.concatenate([[0.0], v]) for v in mean_and_band(result, label, band))
            # shift the markers of each line, so that they do not overlap
            start = step - 1 - k * step // len(styles)
            options = style.options(label=titles[label], markevery=(start, step))
            lines += axes.plot(times, means, **options)
            draw_band(axes, times, ends, style.colour, band=band)
        axes.set_xlim(0, 1.01 * result.horizon)
        axes.xaxis.set_major_locator(MaxNLocator(ticks_in(axes, legend), steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(thousands)
        _from_zero(axes)
        if policies is None:
            lines.sort(key=lambda line: -float(np.asarray(line.get_ydata())[-1]))
        draw_legend(axes, lines, [result], band=band, legend=legend, ax=ax)
    return figure


def figures_of(results: SweepResults) -> tuple[list[tuple[str, Figure]], int]:
    """Draw a sweep against hardness, if cells differ only in that, and each cell over time.

    Returns
    -------
    tuple
        Titles with figures, and the number of cells left out.
    """
    found = []
    with contextlib.suppress(ParameterError):  # its cells differ in something else
        found.append(("Regret against hardness", regret_against_hardness(results)))
    over_time = [each for each in results.cells if len(each.times) > 1]
    for each in over_time[:_CELLS]:
        where = ", ".join(f"{name} = {value}" for name, value in each.parameters.items())
        title = f"Regret over time, {where}" if where else "Regret over time"
        found.append((title, regret_over_time(each, title=where or None)))
    return found, max(0, len(over_time) - _CELLS)


def _chosen(policies: Sequence[str | Policy | type] | None, results: Iterable[Result]) -> list[str]:
    """Return the labels of the policies to draw."""
    pairs = (zip(each.policies, each.specifications, strict=True) for each in results)
    played = [*itertools.chain.from_iterable(pairs)]
    if policies is None:
        return [*dict.fromkeys(label for label, _ in played)]
    if isinstance(policies, str | Policy | type) or not policies:
        raise refusal("policies", "a list of policies or their labels", policies)
    return [label_of(policy, played) for policy in policies]


def name_place(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **options: Any
) -> None:
    """Write a note in small print, shifted from a point by a distance (points)."""
    options = {"textcoords": "offset points", "fontsize": NOTE_SIZE, **options}
    axes.annotate(text, at, xytext=shift, **options)


def _by_hardness(results: SweepResults | Mapping[float, Result]) -> dict[float, Result]:
    """Return results in the order of their hardness, or raise."""
    fix = "The keys of `results` are hardnesses."
    if isinstance(results, SweepResults):
        if any(list(each.parameters) != ["alpha"] for each in results.cells):
            known = sorted({name for each in results.cells for name in each.parameters})
            raise ParameterError(
                f"`results` must have cells that differ in alpha alone, got the parameters "
                f"{', '.join(known) or 'none'}. Choose cells, and pass {{alpha: result, ...}}."
            )
        fix = "It is a parameter of the cells."
        results = {each.parameters["alpha"]: each for each in results.cells}
    if not results:
        raise ParameterError("`results` must contain at least one result, got none.")
    checked = {check_number("alpha", key, at_least=0.0, fix=fix): results[key] for key in results}
    ordered = dict(sorted(checked.items()))
    horizons = sorted({result.horizon for result in ordered.values()})
    if len(horizons) > 1:
        raise ParameterError(
            f"`results` must have one horizon, got {horizons}. Draw a figure for each."
        )
    return ordered


def _from_zero(axes: Axes) -> None:
    locator = MaxNLocator(6, steps=[1, 2, 5, 10])
    needed = 1.03 * axes.dataLim.ymax if axes.dataLim.ymax > 0 else 1.0  # so that markers fit
    half_step = np.diff(locator.tick_values(0.0, needed))[0] / 2
    axes.set_ylim(0.0, half_step * np.ceil(needed / half_step))
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter(thousands)


def figure_1(
    *,
    betas: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    subset_exponent: float = 0.5,
    others: Mapping[str, Rate] = _NONE,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw Figure 1: the rates of MOSS++ for several `betas`, and other rates, against hardness.

    Parameters
    ----------
    betas
        Parameters of MOSS++, one line each.
    subset_exponent
        The exponent of the subset method, which plays MOSS on about T^subset_exponent random arms.
    others
        Further rates by name, as `pareto_position` takes them: a function of an array of
        hardnesses, or a pair of arrays.
    width
        As for `regret_over_time` (default: 3.4 inches, and 5 with `others`).
    title
        The title (default: none).

    Examples
    --------
    >>> figure = figure_1(betas=(0.5, 0.75))
    >>> [line.get_label() for line in figure.axes[0].lines][:2]
    ['MOSS++ (β = 0.5)', 'MOSS++ (β = 0.75)']
    >>> figure = figure_1(others={"mine": lambda alpha: 0.8 + 0.2 * alpha})
    >>> figure.axes[0].lines[-1].get_label()
    'mine'
    """
    if len(betas) == 0:
        raise ParameterError("`betas` must contain at least one number, got none.")
    exponent = check_probability("subset_exponent", subset_exponent)
    low = subset_rate(exponent, exponent=exponent)
    jump = np.array([0.0, exponent, exponent, 1.0]), np.array([low, low, 1.0, 1.0])
    minimax, subset = f"minimax: (1 + {ALPHA})/2", f"MOSS on $T^{{\\,{exponent:g}}}$ random arms"
    with drawing(*size_of(width, WIDE if others else NARROW)) as figure:
        axes = figure.add_subplot()
        lines = [
            _draw_family(axes, sorted(set(betas))),
            _draw_rate(axes, _ALPHAS, minimax_rate(_ALPHAS), minimax, MINIMAX_LINE),
            _draw_rate(axes, *jump, subset, SUBSET_LINE),
            _draw_rate(axes, _ALPHAS, quantile_rate(_ALPHAS), "Quantile (bound)", QUANTILE_LINE),
            *_draw_others(axes, others),
        ]
        axes.set(xlabel=HARDNESS, ylabel=f"rate θ({ALPHA}): regret grows as $T^{{\\,θ({ALPHA})}}$")
        lowest = min(float(np.min(line.get_ydata())) for line in axes.lines)
        axes.set(xlim=(0.0, 1.0), ylim=(min(0.45, lowest - 0.05), 1.0))
        axes.xaxis.set_major_locator(MultipleLocator(0.2))
        axes.yaxis.set_major_locator(MultipleLocator(0.1))
        axes.set_title(title or "", pad=16)
        if others:
            figure.legend(handles=lines, loc="outside right upper")
        else:  # none of these rates is below the minimax rate, so that corner is empty
            axes.legend(
                handles=lines, loc="lower right", frameon=True, framealpha=1, edgecolor="none"
            )
    return figure


def _draw_family(axes: Axes, betas: Sequence[float]) -> Line2D:
    """Draw one line for each beta, and return a line that stands for all in the legend."""
    colours = shades(len(betas))
    decimals = max(len(f"{beta:g}".partition(".")[2]) for beta in betas)
    names: list[tuple[float, str, str, int]] = []
    for beta, colour in zip(betas, colours, strict=True):
        rates = moss_plus_plus_rate(_ALPHAS, beta=beta)
        _draw_rate(axes, _ALPHAS, rates, f"MOSS++ (β = {beta:g})", LineStyle(colour))
        # a line's name is where it reaches rate 1, at α = β
        if not names or beta - names[-1][0] >= _NAME_WIDTH:
            names.append((beta, f"{beta:.{decimals}f}", "center", 0))
    names.append((min(betas), "β =", "right", -8 - 2 * decimals))
    for at, text, align, shift in names:
        name_place(axes, text, (at, 1.0), (shift, 4), ha=align, annotation_clip=False)
    return Line2D([], [], color=colours[len(betas) // 2], label="MOSS++ (β at the top)")


def _draw_others(axes: Axes, others: Mapping[str, Rate]) -> list[Line2D]:
    lines = []
    for k, (label, style) in enumerate(policy_styles(others).items()):
        line = _draw_rate(axes, *rate_on_grid(others[label]), label, style)
        # at equal distances along the line, and shifted for each line
        line.set_markevery(((k + 1) / (len(others) + 1) / _RATE_MARKS, 1 / _RATE_MARKS))
        lines.append(line)
    return lines


def _draw_rate(axes: Axes, alphas: Numbers, rates: Numbers, label: str, style: LineStyle) -> Line2D:
    # lines at rate 1 are on the edge of the axes, which would clip half of their width
    (line,) = axes.plot(
        alphas, rates, label=label, clip_on=False, solid_capstyle="butt", **style.options()
    )
    return line
