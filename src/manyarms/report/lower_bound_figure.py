"""The lower bound as a picture: who explores little on the easy instance loses on a hidden one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyarms.errors import ParameterError
from manyarms.report._matplotlib import Axes, Figure, FuncFormatter, Line2D, look, settle
from manyarms.report.exponents_figure import theory_styles
from manyarms.report.lower_bound import TradeOffPoint
from manyarms.report.style import NOTE_SIZE, WIDE, LineStyle, policy_title, thousands

__all__ = ["trade_off_figure"]

_BOUND = (2, 1.5)  # dashes
_FORBIDDEN = "#DDDDDD"
_WIDTH, _HEIGHT = WIDE[0] + 1.6, WIDE[1] + 0.5


def trade_off_figure(points: Sequence[TradeOffPoint], *, title: str | None = None) -> Figure:
    """Draw the trade-off between instance 0 and the instances that hide a group.

    Left, in units in which all budgets share one bound: how much a policy explored the hidden
    groups on instance 0, against what it lost where one of them is best. Right, in plain
    regrets: R_0 against R̄ over the sweep of B, with the bound for each policy's own R_0.

    Parameters
    ----------
    points
        Of one horizon and hardness, for several policies and budgets.
    title
        Above the plots; none unless given.

    Examples
    --------
    >>> from manyarms.core.statistics import Interval
    >>> from manyarms.theory import LowerBoundFamily
    >>> family = LowerBoundFamily(horizon=2**20, alpha=0.25, budget=64)
    >>> easy, hard = Interval(500.0, 450.0, 550.0), Interval(9000.0, 8500.0, 9500.0)
    >>> figure = trade_off_figure([TradeOffPoint(family, "moss++(beta=0.5)", easy, hard, 10)])
    >>> figure.axes[0].get_ylabel()
    'regret with a hidden group, in units of $TΔ/2$'
    """
    if len(points) == 0:
        raise ParameterError("`points` must hold at least one point, got none.")
    styles = theory_styles(point.policy for point in points)
    with look():
        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        left, right = figure.subplots(1, 2)
        _draw_bound(left, points)
        for policy, style in styles.items():
            own = [point for point in points if point.policy == policy]
            _draw_left(left, own, style)
            _draw_right(right, own, style)
        right.set(xscale="log", yscale="log")
        right.margins(x=0.3)  # room for the names of the budgets
        right.set(xlabel="regret on instance 0, $R_0$")
        right.set_ylabel("regret with a hidden group, $\\bar R$")
        for axis in (right.xaxis, right.yaxis):
            axis.set_major_formatter(FuncFormatter(thousands))
        lines = [
            Line2D([], [], label=policy_title(policy), **style.options())
            for policy, style in styles.items()
        ]
        options: dict[str, Any] = {"color": "#555555", "linewidth": 0.8, "dashes": _BOUND}
        below = Line2D([], [], label="lower bound, given $R_0$", **options)
        _name_budgets(right, points)
        figure.legend(handles=[*lines, below], loc="outside lower center", ncols=3)
        figure.suptitle(title or "", fontsize=9.5)
        settle(figure)
    return figure


def _draw_bound(axes: Axes, points: Sequence[TradeOffPoint]) -> None:
    """Draw the region that no policy can enter, and the level of settling for S_0."""
    groups = points[0].family.hidden_groups
    explored = np.array([point.explored for point in points])
    low, high = min(0.5 * explored.min(), 0.05), max(2 * explored.max(), 2.0)
    x = np.geomspace(low, high, 400)
    bound = 1 - 1 / groups - np.sqrt(x)
    top = 1.15 * max(point.lost for point in points)
    axes.fill_between(x, 0.0, np.maximum(bound, 0.0), color=_FORBIDDEN, linewidth=0)
    axes.plot(x[bound > 0], bound[bound > 0], color="black", linewidth=1.0)
    axes.axhline(1.0, color="#777777", linewidth=0.8, dashes=(1, 2))
    axes.set(xscale="log", xlim=(low, high), ylim=(0.0, max(top, 1.3)))
    axes.set(xlabel="exploration on instance 0, $2ΔR_0/K$")
    axes.set_ylabel("regret with a hidden group, in units of $TΔ/2$")
    axes.text(
        1.25 * low, 0.06, "no policy gets here", fontsize=NOTE_SIZE, va="bottom", color="#333333"
    )
    note = "settling for $S_0$: hidden group never found"
    axes.text(1.25 * low, 1.01, note, fontsize=NOTE_SIZE, va="bottom", color="#333333")


def _draw_left(axes: Axes, points: Sequence[TradeOffPoint], style: LineStyle) -> None:
    axes.plot(
        [point.explored for point in points],
        [point.lost for point in points],
        **style.options() | {"linewidth": 0.8},
    )
    for point in points:
        axes.plot(
            [point.explored] * 2,
            [end / point.family.settled for end in point.hard[1:]],
            color=style.colour,
            linewidth=0.8,
        )


def _draw_right(axes: Axes, points: Sequence[TradeOffPoint], style: LineStyle) -> None:
    axes.plot(
        [point.easy.estimate for point in points],
        [point.hard.estimate for point in points],
        **style.options() | {"linewidth": 0.8},
    )
    bounds = [(p.easy.estimate, p.family.tradeoff(p.easy.estimate)) for p in points]
    above = [(x, y) for x, y in bounds if y > 0]
    if above:
        axes.plot(*zip(*above, strict=True), color=style.colour, linewidth=0.8, dashes=_BOUND)


def _name_budgets(axes: Axes, points: Sequence[TradeOffPoint]) -> None:
    """Name the ends of the first policy's line: small budgets are wide gaps."""
    own = [point for point in points if point.policy == points[0].policy]
    for point in (own[0], own[-1]):
        axes.annotate(
            f"B = {thousands(round(point.family.budget))}",
            (point.easy.estimate, point.hard.estimate),
            xytext=(-6, -2),
            textcoords="offset points",
            ha="right",
            fontsize=NOTE_SIZE,
        )
