"""Figure 1 with data on it, and the fits behind the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import ParameterError
from manyarms.report._matplotlib import (
    Axes,
    Figure,
    Line2D,
    MultipleLocator,
    look,
    settle,
)
from manyarms.report.exponents import MeasuredExponent
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
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate

__all__ = ["exponent_fits", "measured_rates", "theory_styles"]

_ALPHAS: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)
_MARKERS = ("s", "o", "^", "D", "v", "P")
_APART = 0.016  # of the hardness axis, between points of one hardness
_ROOM = 0.7  # inches, of the legend
_TICKS = [2**k for k in (10, 15, 20, 25)]
_LINES: dict[str, tuple[float, ...]] = {
    "planted": (),
    "lower bound": (4.0, 1.5),
    "shrinking gap": (1.0, 1.0),
}


def theory_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Return a colour and a marker for each policy; MOSS++ in shades, by beta."""
    policies = sorted(set(names))
    family = [policy for policy in policies if policy.startswith("moss++")]
    colours = dict(zip(family, shades(len(family)), strict=True))
    others = {"moss-oracle": MINIMAX_LINE.colour, "quantile": QUANTILE_LINE.colour}
    for policy in policies:
        colours.setdefault(policy, others.get(policy.partition("(")[0], "#555555"))
    return {
        policy: LineStyle(colour, marker=_MARKERS[k % len(_MARKERS)], filled=k % 2 == 0)
        for k, (policy, colour) in enumerate(colours.items())
    }


def measured_rates(measured: Sequence[MeasuredExponent], *, title: str | None = None) -> Figure:
    """Draw the proven rates as lines and the measured exponents as points with intervals.

    Parameters
    ----------
    measured
        From `measured_exponents`.
    title
        Above the plot; none unless given.
    """
    _check(measured)
    styles = theory_styles(one.policy for one in measured)
    with look():
        figure = Figure(figsize=(WIDE[0], WIDE[1] + _ROOM))
        axes = figure.add_subplot()
        handles = []
        for k, (policy, style) in enumerate(styles.items()):
            rate = _line(policy, style).options()
            axes.plot(_ALPHAS, _rates(policy), **rate | {"linewidth": 1.0})
            shift = (k - (len(styles) - 1) / 2) * _APART
            _draw_points(axes, [one for one in measured if one.policy == policy], style, shift)
            both = style.options() | {"linestyle": rate["linestyle"], "linewidth": 1.0}
            name = "minimax, and MOSS Oracle" if policy == "moss-oracle" else policy_title(policy)
            handles.append(Line2D([], [], label=name, **both))
        axes.set(xlabel=HARDNESS, ylabel=f"exponent: regret grows as $T^{{\\,θ({ALPHA})}}$")
        low = min(one.exponent.low for one in measured)
        high = max(max(one.exponent.high, one.fits[one.kind].plain.high) for one in measured)
        axes.set(xlim=(0.0, 0.7), ylim=(min(0.45, low - 0.03), max(1.03, high + 0.03)))
        axes.xaxis.set_major_locator(MultipleLocator(0.1))
        axes.yaxis.set_major_locator(MultipleLocator(0.1))
        axes.set_title(title or "")
        legend = (
            "lines: proven rates; points: measured exponents with 95 % intervals;\n"
            "dashes: measured slopes, logarithms included"
        )
        figure.legend(
            handles=handles, loc="outside lower center", ncols=3, title=legend, title_fontsize=8
        )
        settle(figure)
    return figure


def exponent_fits(measured: Sequence[MeasuredExponent], *, title: str | None = None) -> Figure:
    """Draw mean regret against the horizon, and the fits, one plot for each hardness.

    Parameters
    ----------
    measured
        From `measured_exponents`.
    title
        Above the plots; none unless given.
    """
    _check(measured)
    styles = theory_styles(one.policy for one in measured)
    alphas = sorted({one.alpha for one in measured})
    with look():
        figure = Figure(figsize=(WIDE[0] + 1.6, WIDE[1] + _ROOM))
        plots = figure.subplots(1, len(alphas), sharex=True, sharey=True, squeeze=False)[0]
        for axes, alpha in zip(plots, alphas, strict=True):
            for one in (one for one in measured if one.alpha == alpha):
                _draw_fits(axes, one, styles[one.policy])
            axes.set_xscale("log", base=2)
            axes.set(yscale="log", xlabel="horizon T", xticks=_TICKS)
            axes.set_title(f"{HARDNESS} = {alpha:g}")
        plots[0].set_ylabel("mean regret (worst factor)")
        handles = [
            Line2D([], [], label=policy_title(policy), **style.options())
            for policy, style in styles.items()
        ]
        used = [kind for kind in _LINES if any(kind in one.fits for one in measured)]
        handles += [
            Line2D([], [], color="#555555", label=f"fit: {kind}", **_dashes(kind)) for kind in used
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle(title or "", fontsize=9.5)
        settle(figure)
    return figure


def _check(measured: Sequence[MeasuredExponent]) -> None:
    if len(measured) == 0:
        raise ParameterError("`measured` must hold at least one exponent, got none.")


def _rates(policy: str) -> NDArray[np.float64]:
    if policy.startswith("moss++"):
        beta = float(policy.partition("beta=")[2].rstrip(")"))
        return moss_plus_plus_rate(_ALPHAS, beta=beta)
    return quantile_rate(_ALPHAS) if policy == "quantile" else minimax_rate(_ALPHAS)


def _line(policy: str, style: LineStyle) -> LineStyle:
    """Return how the proven rate is drawn: as in Figure 1."""
    named = {"moss-oracle": MINIMAX_LINE, "quantile": QUANTILE_LINE}
    return named.get(policy, LineStyle(style.colour))


def _draw_points(
    axes: Axes, measured: Sequence[MeasuredExponent], style: LineStyle, shift: float
) -> None:
    for one in measured:
        estimate, low, high = one.exponent
        plain = one.fits[one.kind].plain.estimate
        axes.plot(one.alpha + shift, plain, marker="_", markersize=7, color=style.colour, zorder=3)
        ends = [estimate, plain]
        axes.plot([one.alpha + shift] * 2, ends, color=style.colour, linewidth=0.6, dashes=(1, 2))
        axes.errorbar(
            one.alpha + shift,
            estimate,
            yerr=[[max(0.0, estimate - low)], [max(0.0, high - estimate)]],
            capsize=2,
            elinewidth=0.9,
            zorder=3,
            ecolor=style.colour,
            **style.options(),
        )


def _draw_fits(axes: Axes, one: MeasuredExponent, style: LineStyle) -> None:
    for kind, fit in one.fits.items():
        axes.plot(fit.horizons, fit.regret, **style.options() | {"linestyle": "none"})
        x = np.geomspace(fit.horizons[0], fit.horizons[-1], 50)
        fitted = [fit.at(horizon) for horizon in x]
        axes.plot(x, fitted, color=style.colour, linewidth=0.8, **_dashes(kind))


def _dashes(kind: str) -> dict[str, Any]:
    return {"linestyle": (0, _LINES[kind]) if _LINES[kind] else "-"}
