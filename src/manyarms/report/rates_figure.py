"""Figure 1: rates against hardness. It needs no results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_probability
from manyarms.errors import ParameterError
from manyarms.report._matplotlib import Axes, Figure, Line2D, MultipleLocator, look, settle
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
    shades,
)
from manyarms.theory.pareto import Rate, rate_on_grid
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate, subset_rate

__all__ = ["figure_1"]

_ALPHAS: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)
_ROOM = 0.06  # of the axis, that the name of a line takes
_MARKS = 8  # markers on a line of `others`, which tell it from the paper's
_NONE: Mapping[str, Rate] = MappingProxyType({})


def figure_1(
    *,
    betas: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    subset_exponent: float = 0.5,
    others: Mapping[str, Rate] = _NONE,
    title: str | None = None,
) -> Figure:
    """Draw Figure 1: the rates of MOSS++ for several `betas`, and of others, against hardness.

    Parameters
    ----------
    betas
        Parameters of MOSS++, one line each.
    subset_exponent
        Of the subset method, which plays MOSS on about T^subset_exponent random arms.
    others
        Further rates by name, as `pareto_position` takes them: a function of an array of
        hardnesses, or a pair of arrays.
    title
        Above the plot; none unless given.

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
        raise ParameterError("`betas` must hold at least one number, got none.")
    exponent = check_probability("subset_exponent", subset_exponent)
    low = subset_rate(exponent, exponent=exponent)
    jump = np.array([0.0, exponent, exponent, 1.0]), np.array([low, low, 1.0, 1.0])
    subset = f"MOSS on $T^{{\\,{exponent:g}}}$ random arms"
    with look():
        figure = Figure(figsize=WIDE if others else NARROW)
        axes = figure.add_subplot()
        lines = [
            _draw_family(axes, sorted(set(betas))),
            _draw(axes, _ALPHAS, minimax_rate(_ALPHAS), f"minimax: (1 + {ALPHA})/2", MINIMAX_LINE),
            _draw(axes, *jump, subset, SUBSET_LINE),
            _draw(axes, _ALPHAS, quantile_rate(_ALPHAS), "Quantile", QUANTILE_LINE),
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
        else:  # no rate is below the minimax rate: the corner below it stays empty
            axes.legend(
                handles=lines, loc="lower right", frameon=True, framealpha=1, edgecolor="none"
            )
        settle(figure)
    return figure


def _draw_family(axes: Axes, betas: Sequence[float]) -> Line2D:
    """Draw one line for each beta, and return a line that stands for all in the legend."""
    colours = shades(len(betas))
    decimals = max(len(f"{beta:g}".partition(".")[2]) for beta in betas)
    named = -1.0
    for beta, colour in zip(betas, colours, strict=True):
        rates = moss_plus_plus_rate(_ALPHAS, beta=beta)
        _draw(axes, _ALPHAS, rates, f"MOSS++ (β = {beta:g})", LineStyle(colour))
        if beta - named >= _ROOM:  # a line reaches rate 1 at α = β: there its name is
            _name(axes, beta, f"{beta:.{decimals}f}", "center", 0)
            named = beta
    _name(axes, min(betas), "β =", "right", -8 - 2 * decimals)
    return Line2D([], [], color=colours[len(betas) // 2], label="MOSS++ (β at the top)")


def _draw_others(axes: Axes, others: Mapping[str, Rate]) -> list[Line2D]:
    lines = []
    for k, (label, style) in enumerate(policy_styles(others).items()):
        line = _draw(axes, *rate_on_grid(others[label]), label, style)
        # along the line, not by points, and each line's markers elsewhere than its neighbours'
        line.set_markevery(((k + 1) / (len(others) + 1) / _MARKS, 1 / _MARKS))
        lines.append(line)
    return lines


def _name(axes: Axes, alpha: float, text: str, align: str, shift: float) -> None:
    axes.annotate(
        text,
        (alpha, 1.0),
        xytext=(shift, 4),
        textcoords="offset points",
        ha=align,
        fontsize=NOTE_SIZE,
        annotation_clip=False,
    )


def _draw(
    axes: Axes, alphas: NDArray[np.float64], rates: NDArray[np.float64], label: str, look: LineStyle
) -> Line2D:
    # lines along rate 1 are on the edge, and would lose half their width to it
    (line,) = axes.plot(
        alphas, rates, label=label, clip_on=False, solid_capstyle="butt", **look.options()
    )
    return line
