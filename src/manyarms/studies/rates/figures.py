"""Figure 1 with data on it, and the fits behind the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.theme import LIGHT
from manyarms.errors import ParameterError
from manyarms.report.drawing import Axes, Figure, Line2D, MultipleLocator, drawing
from manyarms.report.style import (
    ALPHA,
    HARDNESS,
    MINIMAX_LINE,
    QUANTILE_LINE,
    WIDE,
    LineStyle,
    policy_title,
    shades,
)
from manyarms.studies.rates.fit import MeasuredExponent

_ALPHAS: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)
_MARKERS = ("s", "o", "^", "D", "v", "P")
_APART = 0.016  # of the hardness axis, between points of one hardness
_ROOM = 0.7  # inches, of the legend
_TICKS = [2**k for k in (10, 15, 20, 25)]
# by kind of problem, as matplotlib takes them
_LINES: dict[str, Any] = {
    "planted": "-",
    "lower bound": (0, (4.0, 1.5)),
    "shrinking gap": (0, (1.0, 1.0)),
}


def theory_styles(betas: Mapping[str, float | None]) -> dict[str, LineStyle]:
    """Return a colour and a marker for each policy; MOSS++, which has a beta, in shades.

    >>> styles = theory_styles({"quantile": None, "moss++(beta=0.5)": 0.5, "moss-oracle": None})
    >>> [(label, style.marker) for label, style in styles.items()]
    [('moss++(beta=0.5)', 's'), ('moss-oracle', 'o'), ('quantile', '^')]
    """
    family = sorted(label for label, beta in betas.items() if beta is not None)
    colours = dict(zip(family, shades(len(family)), strict=True))
    for label in sorted(betas.keys() - colours.keys()):
        colours[label] = _rate_line(label, MINIMAX_LINE).colour
    return {
        label: LineStyle(colour, marker=_MARKERS[k % len(_MARKERS)], filled=k % 2 == 0)
        for k, (label, colour) in enumerate(colours.items())
    }


def legend_lines(styles: Mapping[str, LineStyle]) -> list[Line2D]:
    """Return what a legend shows of each policy."""
    return [
        Line2D([], [], **style.options(label=policy_title(policy)))
        for policy, style in styles.items()
    ]


def _rate_line(label: str, other: LineStyle) -> LineStyle:
    """Return how Figure 1 draws a proven rate."""
    return {"moss-oracle": MINIMAX_LINE, "quantile": QUANTILE_LINE}.get(label, other)


def measured_rates(measured: Sequence[MeasuredExponent]) -> Figure:
    """Draw proven rates as lines, and what `measured_exponents` found as points with intervals.

    Examples
    --------
    >>> from manyarms.studies.rates.fit import fit_exponent
    >>> runs = {2**k: [np.full(5, 2.0 ** (0.6 * k))] for k in (10, 12, 14)}
    >>> fits = {"planted": fit_exponent(runs, largest_log_power=2.5)}
    >>> one = MeasuredExponent("moss++(beta=0.5)", 0.5, 0.1, fits, {}, {})
    >>> [text.get_text() for text in measured_rates([one]).legends[0].get_texts()]
    ['MOSS++ (β = 0.5)']
    """
    styles = _styles(measured)
    with drawing(WIDE[0], WIDE[1] + _ROOM) as figure:
        axes = figure.add_subplot()
        handles = []
        for k, (policy, style) in enumerate(styles.items()):
            own = [one for one in measured if one.policy == policy]
            line = _rate_line(policy, LineStyle(style.colour)).options(linewidth=1.0)
            axes.plot(_ALPHAS, own[0].rate_at(_ALPHAS), **line)
            _draw_points(axes, own, style, (k - (len(styles) - 1) / 2) * _APART)
            name = "minimax, and MOSS Oracle" if policy == "moss-oracle" else policy_title(policy)
            both = style.options(label=name, linestyle=line["linestyle"], linewidth=1.0)
            handles.append(Line2D([], [], **both))
        axes.set(xlabel=HARDNESS, ylabel=f"exponent: regret grows as $T^{{\\,θ({ALPHA})}}$")
        low = min(one.fit.exponent.low for one in measured)
        high = max(max(one.fit.exponent.high, one.fit.without_log.high) for one in measured)
        axes.set(xlim=(0.0, 0.7), ylim=(min(0.45, low - 0.03), max(1.03, high + 0.03)))
        axes.xaxis.set_major_locator(MultipleLocator(0.1))
        axes.yaxis.set_major_locator(MultipleLocator(0.1))
        legend = (
            "lines: proven rates; points: measured exponents; bars: 95 % of refits;\n"
            "dashes: measured slopes, logarithms included"
        )
        figure.legend(
            handles=handles, loc="outside lower center", ncols=3, title=legend, title_fontsize=8
        )
    return figure


def exponent_fits(measured: Sequence[MeasuredExponent]) -> Figure:
    """Draw mean regret with its interval against the horizon, and the fits, by hardness.

    Examples
    --------
    >>> from manyarms.studies.rates.fit import fit_exponent
    >>> runs = {2**k: [np.full(5, 2.0**k)] for k in (10, 12, 14)}
    >>> fits = {"planted": fit_exponent(runs, largest_log_power=2.5)}
    >>> one = MeasuredExponent("moss++(beta=0.5)", 0.5, 0.1, fits, {}, {})
    >>> [axes.get_xlabel() for axes in exponent_fits([one]).axes]
    ['horizon T']
    """
    styles = _styles(measured)
    alphas = sorted({one.alpha for one in measured})
    with drawing(WIDE[0] + 1.6, WIDE[1] + _ROOM) as figure:
        plots = figure.subplots(1, len(alphas), sharex=True, sharey=True, squeeze=False)[0]
        for axes, alpha in zip(plots, alphas, strict=True):
            for one in (one for one in measured if one.alpha == alpha):
                _draw_fits(axes, one, styles[one.policy])
            axes.set_xscale("log", base=2)
            axes.set(yscale="log", xlabel="horizon T", xticks=_TICKS)
            axes.set_title(f"{HARDNESS} = {alpha:g}")
        plots[0].set_ylabel("mean regret (worst factor)")
        handles = legend_lines(styles) + [
            Line2D([], [], color=LIGHT["soft"], label=f"fit: {kind}", linestyle=line)
            for kind, line in _LINES.items()
            if any(kind in one.fits for one in measured)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _styles(measured: Sequence[MeasuredExponent]) -> dict[str, LineStyle]:
    if len(measured) == 0:
        raise ParameterError("`measured` must contain at least one exponent, got none.")
    return theory_styles({one.policy: one.beta for one in measured})


def _draw_points(
    axes: Axes, measured: Sequence[MeasuredExponent], style: LineStyle, shift: float
) -> None:
    for one in measured:
        x, (estimate, low, high) = one.alpha + shift, one.fit.exponent
        plain = one.fit.without_log.estimate
        axes.plot(x, plain, marker="_", markersize=7, color=style.colour, zorder=3)
        axes.plot([x] * 2, [estimate, plain], color=style.colour, linewidth=0.6, dashes=(1, 2))
        errors = [[max(0.0, estimate - low)], [max(0.0, high - estimate)]]
        options = style.options(capsize=2, elinewidth=0.9, zorder=3, ecolor=style.colour)
        axes.errorbar(x, estimate, yerr=errors, **options)


def _draw_fits(axes: Axes, one: MeasuredExponent, style: LineStyle) -> None:
    for kind, fit in one.fits.items():
        axes.plot(fit.horizons, fit.regret, **style.options(linestyle="none"))
        if kind in one.regrets:
            _, low, high = zip(*one.regrets[kind], strict=True)
            axes.vlines(fit.horizons, low, high, colors=style.colour, linewidth=0.6, alpha=0.6)
        x = np.geomspace(fit.horizons[0], fit.horizons[-1], 50)
        fitted = [fit.at(horizon) for horizon in x]
        axes.plot(x, fitted, color=style.colour, linewidth=0.8, linestyle=_LINES[kind])
