"""The lower bound checked: measured regrets on both instances against the proof's inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from manyarms.core.statistics import Interval, mean_interval
from manyarms.report.style import ALPHA
from manyarms.report.verdicts import Part, Verdict, more
from manyarms.results import Result
from manyarms.theory.lower_bound_family import LowerBoundFamily

__all__ = [
    "HEAD",
    "TradeOffPoint",
    "trade_off_as_markdown",
    "trade_off_notes",
    "trade_off_points",
    "trade_off_rows",
]

HEAD = ("B", "Δ", "policy", "R_0", "R̄", "bound from R_0", "", "2^-8 TK/B, if R_0 ≤ B", "")

# Two means enter each check: with 97.5 % for each, both intervals hold with 95 %.
_EACH = 0.975


@dataclass(frozen=True)
class TradeOffPoint:
    """One policy at one budget.

    Attributes
    ----------
    family, policy
        What was played, and who played it.
    easy, hard
        R_0, the regret on instance 0, and R_1, which stands for the average R̄ over the
        exchangeable instances 1, …, K; each with a 97.5 % interval.
    replications
        The number of runs.
    """

    family: LowerBoundFamily
    policy: str
    easy: Interval
    hard: Interval
    replications: int

    @property
    def explored(self) -> float:
        """2ΔR_0/K: mean pulls of a hidden group on instance 0, in units of 1/Δ²."""
        return 2 * self.family.gap * self.easy.estimate / self.family.hidden_groups

    @property
    def lost(self) -> float:
        """R̄/(TΔ/2): the regret in units of that of pulling S_0 for ever."""
        return self.hard.estimate / self.family.settled

    def check_trade_off(self) -> Part:
        """Ask that R̄ is above the bound that R_0 implies."""
        bound = Interval(*(self.family.tradeoff(max(0.0, r)) for r in self.easy))
        # a larger R_0 implies a smaller bound: the low end goes with the low end
        margin = Interval(*(r - b for r, b in zip(self.hard, bound, strict=True)))
        return more(f"{self.policy}, B = {self.family.budget:.0f}: R̄ - bound", margin)

    def check_floor(self) -> Part | None:
        """Ask that R̄ is above 2^-8 TK/B if R_0 <= B; None if R_0 is above B."""
        if self.easy.low > self.family.budget:
            return None
        part = more(f"{self.policy}, B = {self.family.budget:.0f}: R̄", self.hard, self.family.floor)
        if self.easy.high > self.family.budget and part.verdict == Verdict.FAILS:
            return Part(part.what, part.rule, part.interval, Verdict.OPEN)  # R_0 may be above B
        return part

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        floor = self.check_floor()
        return {
            **asdict(self.family),
            "K": self.family.hidden_groups,
            "n": self.family.n_arms,
            "gap": self.family.gap,
            "policy": self.policy,
            "replications": self.replications,
            "R_0": list(self.easy),
            "R_hidden": list(self.hard),
            "bound_of_R_0": self.family.tradeoff(self.easy.estimate),
            "bound_holds": str(self.check_trade_off().verdict),
            "floor": self.family.floor,
            "floor_holds": None if floor is None else str(floor.verdict),
        }


def trade_off_points(
    family: LowerBoundFamily, names: Sequence[str], easy: Result, hard: Result
) -> list[TradeOffPoint]:
    """Return one point for each policy, from its results on instance 0 and on a hidden one."""
    return [
        TradeOffPoint(
            family,
            name,
            mean_interval(easy.of(policy)[:, -1], confidence=_EACH),
            mean_interval(hard.of(policy)[:, -1], confidence=_EACH),
            easy.replications,
        )
        for name, policy in zip(names, easy.policies, strict=True)
    ]


def trade_off_as_markdown(points: Sequence[TradeOffPoint]) -> str:
    """Return the points as a Markdown page: what was measured, and whether the bounds hold."""
    family = points[0].family
    lines = [
        f"# The lower bound, checked with {points[0].replications} replications",
        "",
        f"T = {family.horizon}, {ALPHA}' = {family.alpha_prime:g}, {ALPHA} = {family.alpha:g}, K = "
        f"{family.hidden_groups}, n = {family.n_arms}. R_0 is the regret on instance 0, R̄ that on",
        "instance 1, which stands for the average over all that hide a group. Intervals hold with",
        "95 % for each pair. A bound below 0 says nothing.",
        "",
        *(f"- {note}" for note in trade_off_notes(points)),
        "",
        "| " + " | ".join(HEAD) + " |",
        "|---" * len(HEAD) + "|",
    ]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in trade_off_rows(points)])


def trade_off_rows(points: Sequence[TradeOffPoint]) -> list[tuple[str, ...]]:
    """Return the cells of a table, one row for each point, in the order of `HEAD`."""
    rows: list[tuple[str, ...]] = []
    for point in points:
        bound = point.family.tradeoff(point.easy.estimate)
        floor = point.check_floor()
        rows.append(
            (
                f"{point.family.budget:.0f}",
                f"{point.family.gap:.3g}",
                point.policy,
                _shown(point.easy),
                _shown(point.hard),
                f"{bound:.0f}" if bound > 0 else "below 0",
                str(point.check_trade_off().verdict),
                f"{point.family.floor:.0f}",
                "R_0 > B" if floor is None else str(floor.verdict),
            )
        )
    return rows


def trade_off_notes(points: Sequence[TradeOffPoint]) -> list[str]:
    """Say in a few sentences what came out."""
    trade_off = [point.check_trade_off() for point in points]
    floors = [part for point in points if (part := point.check_floor()) is not None]
    speaks = sum(point.family.tradeoff(point.easy.estimate) > 0 for point in points)
    found = [point for point in points if point.hard.high < point.family.settled]
    notes = [
        f"R̄ ≥ (TΔ/2)(1 - 1/K - sqrt(2ΔR_0/K)): {_counts(trade_off)}; the bound is above 0 at "
        f"{speaks} of {len(points)} points.",
        f"R̄ ≥ 2^-8 TK/B where R_0 ≤ B: {_counts(floors)}; elsewhere R_0 > B.",
    ]
    if found:
        least = min(point.explored for point in found)
        notes.append(
            f"Nobody who explored the hidden groups less than 2ΔR_0/K = {least:.2g} on instance 0 "
            f"has clearly less regret than settling for S_0, TΔ/2."
        )
    return notes


def _counts(parts: Sequence[Part]) -> str:
    names = ((Verdict.HOLDS, "holds"), (Verdict.FAILS, "fails"), (Verdict.OPEN, "cannot be told"))
    return ", ".join(
        f"{sum(part.verdict == kind for part in parts)} {name}" for kind, name in names
    )


def _shown(interval: Interval) -> str:
    estimate, low, high = interval
    return f"{estimate:.0f} [{low:.0f}, {high:.0f}]"
