"""Check and draw the lower bound: the same policies, with and without a hidden group.

Measured regrets on both instances are compared with the inequalities of the proof. A figure shows
that a policy that explores little on the easy instance loses on one with a hidden group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.core.statistics import Interval
from manyarms.core.tabular import TextTable
from manyarms.core.theme import LIGHT
from manyarms.errors import ParameterError
from manyarms.instances.means import lower_bound_instance
from manyarms.policies import MOSSOracle, MOSSPlusPlus
from manyarms.report import save_figure
from manyarms.report.drawing import Axes, Figure, Line2D, drawing
from manyarms.report.figures import name_place
from manyarms.report.style import ALPHA as ALPHA_LETTER
from manyarms.report.style import NOTE_SIZE, WIDE, LineStyle, thousands
from manyarms.report.text import interval_text, write_text
from manyarms.simulation import Player, Result, ResultsFolder, Sweep, cell
from manyarms.theory.lower_bound_family import LowerBoundFamily
from paper.rates import legend_lines, theory_styles
from paper.verdicts import Part, Verdict, counted, more

HORIZON = 2**22
ALPHA = 0.25
ALPHA_PRIME = 0.0
BETAS = (0.5, 0.6, 0.75, 1.0)
REPLICATIONS = 24
DOUBLINGS = 8  # budgets, from T^alpha up

# Each check uses two means. With 97.5 % confidence for each, both intervals hold with 95 %.
_EACH = 0.975
_BOUND = (2, 1.5)  # dashes
_FORBIDDEN = LIGHT["rule"]


def sweep(
    replications: int,
    seed: int,
    *,
    horizon: int = HORIZON,
    betas: Sequence[float] = BETAS,
    doublings: int = DOUBLINGS,
) -> Sweep:
    """Return the sweep over the budget B, and with it the gap, from T^alpha up by doubling.

    For each budget, instance 0 and instance 1 are played. Groups are exchangeable, so group 1
    stands for all of them. All instances share random numbers, which makes differences clearer.

    The policies are the same on all instances: MOSS Oracle stays tuned to alpha', MOSS++ knows
    no hardness. Policies that know the best mean are left out: it reveals the instance to them,
    and the theorem does not cover them.

    >>> [round(each.parameters["budget"]) for each in sweep(10, seed=0).cells][::2][:3]
    [45, 91, 181]
    """
    oracle, label = MOSSOracle(alpha=ALPHA_PRIME), f"moss-oracle(alpha={ALPHA_PRIME:g})"
    players = [Player(oracle, label, replications, {"beta": None})] + [
        Player(MOSSPlusPlus(beta=beta), f"moss++(beta={beta:g})", replications, {"beta": beta})
        for beta in betas
    ]
    cells = [
        cell(
            players,
            lower_bound_instance(_family(horizon, budget), hidden),
            horizon=horizon,
            checkpoints=1,
            parameters={"budget": budget, "hidden": hidden},
        )
        for budget in (horizon**ALPHA * 2**doubling for doubling in range(doublings))
        for hidden in (0, 1)
    ]
    return Sweep("lower-bound", tuple(cells), seed)


def _family(horizon: int, budget: float) -> LowerBoundFamily:
    return LowerBoundFamily(horizon=horizon, alpha=ALPHA, alpha_prime=ALPHA_PRIME, budget=budget)


def write(results: ResultsFolder, out: Path) -> list[Path]:
    """Check the inequalities, draw the trade-off, and write the table."""
    cells = results.cells
    both = ([each for each in cells if each.parameters["hidden"] == hidden] for hidden in (0, 1))
    points = [
        point
        for easy, hard in zip(*both, strict=True)
        for point in trade_off_points(_family(easy.horizon, easy.parameters["budget"]), easy, hard)
    ]
    family, table = points[0].family, trade_off_table(points)
    page = [
        f"# {table.title}",
        f"T = {family.horizon}, {ALPHA_LETTER}' = {family.alpha_prime:g}, {ALPHA_LETTER} = "
        f"{family.alpha:g}, K = {family.hidden_groups}, n = {family.n_arms}. R_0 is the regret on "
        f"instance 0, R̄ that on\ninstance 1, which stands for the average over all that hide a "
        f"group. Intervals hold with\n95 % for each pair. A bound below 0 says nothing.",
        "\n".join(f"- {note}" for note in trade_off_notes(points)),
        table.to_markdown(),
    ]
    _, svg, _ = save_figure(trade_off_figure(points), out / "lower-bound")
    return [svg, write_text(out / "lower-bound.md", "\n\n".join(page))]


@dataclass(frozen=True)
class TradeOffPoint:
    """One policy at one budget; intervals have 97.5 % confidence."""

    family: LowerBoundFamily
    policy: str
    beta: float | None  # of MOSS++
    easy: Interval  # R_0, the regret on instance 0
    hard: Interval  # R_1, which stands for the average R̄ over the exchangeable 1, …, K
    replications: int

    @property
    def explored(self) -> float:
        """2ΔR_0/K: mean pulls of a hidden group on instance 0, in units of 1/Δ²."""
        return 2 * self.family.gap * self.easy.estimate / self.family.hidden_groups

    @property
    def lost(self) -> float:
        """R̄/(TΔ/2): the regret, in units of what pulling only S_0 loses."""
        return self.hard.estimate / self.family.settled

    @property
    def bound(self) -> float:
        """The lower bound on R̄, given R_0; vacuous below 0."""
        return self.family.tradeoff(self.easy.estimate)

    def check_trade_off(self) -> Part:
        """Require R̄ above the bound that R_0 implies."""
        bound = Interval(*(self.family.tradeoff(max(0.0, r)) for r in self.easy))
        # a larger R_0 implies a smaller bound: the low end goes with the low end
        margin = Interval(*(r - b for r, b in zip(self.hard, bound, strict=True)))
        return more(f"{self.policy}, B = {self.family.budget:.0f}: R̄ - bound", margin)

    def check_floor(self) -> Part | None:
        """Require R̄ above 2^-8 TK/B if R_0 <= B; None if R_0 is above B."""
        if self.easy.low > self.family.budget:
            return None
        part = more(f"{self.policy}, B = {self.family.budget:.0f}: R̄", self.hard, self.family.floor)
        if self.easy.high > self.family.budget and part.verdict == Verdict.FAILS:
            return Part(part.what, part.rule, part.interval, Verdict.OPEN)  # R_0 may be above B
        return part


def trade_off_points(family: LowerBoundFamily, easy: Result, hard: Result) -> list[TradeOffPoint]:
    """Return one point for each policy, from its results on instance 0 and on a hidden one."""
    return [
        TradeOffPoint(
            family,
            policy,
            parameters.get("beta"),
            easy.interval(policy, confidence=_EACH),
            hard.interval(policy, confidence=_EACH),
            easy.replications,
        )
        for policy, parameters in zip(easy.policies, easy.policy_parameters, strict=True)
    ]


def trade_off_notes(points: Sequence[TradeOffPoint]) -> list[str]:
    """Summarize the checks in a few sentences."""
    trade_off = counted(point.check_trade_off().verdict for point in points)
    checked = [point.check_floor() for point in points]
    floors = counted(part.verdict for part in checked if part is not None)
    speaks = sum(point.bound > 0 for point in points)
    found = [point for point in points if point.hard.high < point.family.settled]
    notes = [
        f"R̄ ≥ (TΔ/2)(1 - 1/K - sqrt(2ΔR_0/K)): {trade_off}; the bound is above 0 at "
        f"{speaks} of {len(points)} points.",
        f"R̄ ≥ 2^-8 TK/B where R_0 ≤ B: {floors}; elsewhere R_0 > B.",
    ]
    if found:
        least = min(point.explored for point in found)
        notes.append(
            f"No policy that explored the hidden groups less than 2ΔR_0/K = {least:.2g} on "
            f"instance 0 has clearly less regret than settling for S_0, TΔ/2."
        )
    return notes


def trade_off_table(points: Sequence[TradeOffPoint]) -> TextTable:
    """Return a row for each point."""
    head = ("B", "Δ", "policy", "R_0", "R̄", "bound from R_0", "", "2^-8 TK/B, if R_0 ≤ B", "")
    rows = [
        (
            f"{point.family.budget:.0f}",
            f"{point.family.gap:.3g}",
            point.policy,
            interval_text(point.easy, 0),
            interval_text(point.hard, 0),
            f"{point.bound:.0f}" if point.bound > 0 else "below 0",
            str(point.check_trade_off().verdict),
            f"{point.family.floor:.0f}",
            "R_0 > B" if (floor := point.check_floor()) is None else str(floor.verdict),
        )
        for point in points
    ]
    title = f"The lower bound, checked with {points[0].replications} replications"
    return TextTable(head, rows, title)


def trade_off_figure(points: Sequence[TradeOffPoint]) -> Figure:
    """Draw the trade-off between instance 0 and the instances that hide a group.

    The left plot has units in which all budgets share one bound. It shows how much a policy
    explored the hidden groups on instance 0, against what it lost where one of them is best. The
    right plot shows plain regrets, R_0 against R̄ for all B, and the bound for each policy's R_0.

    Parameters
    ----------
    points
        The points of one horizon and hardness, for several policies and budgets.

    Examples
    --------
    >>> from manyarms.core.statistics import Interval
    >>> from manyarms.theory import LowerBoundFamily
    >>> family = LowerBoundFamily(horizon=2**20, alpha=0.25, budget=64)
    >>> easy, hard = Interval(500.0, 450.0, 550.0), Interval(9000.0, 8500.0, 9500.0)
    >>> figure = trade_off_figure([TradeOffPoint(family, "moss++", 0.5, easy, hard, 10)])
    >>> figure.axes[0].get_ylabel()
    'regret with a hidden group, in units of $TΔ/2$'
    """
    if len(points) == 0:
        raise ParameterError("`points` must contain at least one point, got none.")
    styles = theory_styles({point.policy: point.beta for point in points})
    with drawing(WIDE[0] + 1.6, WIDE[1] + 0.5) as figure:
        left, right = figure.subplots(1, 2)
        _draw_bound(left, points)
        for policy, style in styles.items():
            _draw(left, right, [point for point in points if point.policy == policy], style)
        right.set(xscale="log", yscale="log")
        right.margins(x=0.3)  # space for the labels of the budgets
        right.set(xlabel="regret on instance 0, $R_0$")
        right.set_ylabel("regret with a hidden group, $\\bar R$")
        for axis in (right.xaxis, right.yaxis):
            axis.set_major_formatter(thousands)
        # label the ends of the first policy's line; small budgets are wide gaps
        own = [point for point in points if point.policy == points[0].policy]
        for point in (own[0], own[-1]):
            name, at = thousands(round(point.family.budget)), (point.easy[0], point.hard[0])
            name_place(right, f"B = {name}", at, (-6, -2), ha="right")
        options: dict[str, Any] = {"color": LIGHT["soft"], "linewidth": 0.8, "dashes": _BOUND}
        below = Line2D([], [], label="lower bound, given $R_0$", **options)
        handles = [*legend_lines(styles), below]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_bound(axes: Axes, points: Sequence[TradeOffPoint]) -> None:
    """Draw the region that the bound excludes, and the level of settling for S_0."""
    groups = points[0].family.hidden_groups
    explored = np.array([point.explored for point in points])
    low, high = min(0.5 * explored.min(), 0.05), max(2 * explored.max(), 2.0)
    x = np.geomspace(low, high, 400)
    bound = 1 - 1 / groups - np.sqrt(x)
    top = 1.15 * max(point.lost for point in points)
    axes.fill_between(x, 0.0, np.maximum(bound, 0.0), color=_FORBIDDEN, linewidth=0)
    axes.plot(x[bound > 0], bound[bound > 0], color="black", linewidth=1.0)
    axes.axhline(1.0, color=LIGHT["faint"], linewidth=0.8, dashes=(1, 2))
    axes.set(xscale="log", xlim=(low, high), ylim=(0.0, max(top, 1.3)))
    axes.set(xlabel="exploration on instance 0, $2ΔR_0/K$")
    axes.set_ylabel("regret with a hidden group, in units of $TΔ/2$")
    note = "settling for $S_0$: hidden group never found"
    for y, text in ((0.06, "no policy gets here"), (1.01, note)):
        axes.text(1.25 * low, y, text, fontsize=NOTE_SIZE, va="bottom", color=LIGHT["ink"])


def _draw(left: Axes, right: Axes, points: Sequence[TradeOffPoint], style: LineStyle) -> None:
    """Draw one policy in both plots."""
    thin = style.options(linewidth=0.8)
    left.plot([p.explored for p in points], [p.lost for p in points], **thin)
    for point in points:
        ends = [end / point.family.settled for end in point.hard[1:]]
        left.plot([point.explored] * 2, ends, color=style.colour, linewidth=0.8)
    right.plot([p.easy.estimate for p in points], [p.hard.estimate for p in points], **thin)
    above = [(point.easy.estimate, point.bound) for point in points if point.bound > 0]
    if above:
        right.plot(*zip(*above, strict=True), color=style.colour, linewidth=0.8, dashes=_BOUND)
