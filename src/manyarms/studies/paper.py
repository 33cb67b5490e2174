"""The paper's Figures 1, 2(a), 2(b) and 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from manyarms.core.statistics import Interval
from manyarms.instances import contest_652, planted
from manyarms.policies import MOSS, EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus, Parallel, Quantile
from manyarms.protocol import Policy
from manyarms.report.drawing import save_figure
from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
from manyarms.report.page.figures import curves
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.style import (
    ALPHA,
    HARDNESS,
    MINIMAX_LINE,
    PAPER_BAND,
    QUANTILE_LINE,
    SUBSET_LINE,
    LineStyle,
    shades,
    thousands,
)
from manyarms.report.text import Table, count_of, interval_text
from manyarms.simulation.experiment import Experiment, cell
from manyarms.simulation.players import Player
from manyarms.simulation.results import Result, summaries
from manyarms.simulation.summary import PolicySummary, unseen
from manyarms.simulation.tables import ResultsFolder
from manyarms.studies.study import Report, Results, Study
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate, subset_rate

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BETA = 0.5
REPLICATIONS = 100
_CURVE = 100  # checkpoints of the figures over time


@dataclass(frozen=True)
class Size:
    """How large the problems are (default: as in the paper)."""

    n_arms: int = 20_000
    horizon: int = 50_000
    contest_horizon: int = 100_000


FULL = Size()


def six_policies(alpha: float) -> list[Policy]:
    """Return the paper's policies; MOSS Oracle is given the hardness."""
    return [
        MOSS(),
        MOSSOracle(alpha=alpha),
        Quantile(),
        Parallel(),
        MOSSPlusPlus(beta=BETA),
        EmpMOSSPlusPlus(beta=BETA),
    ]


def fig2a(replications: int, seed: int, size: Size = FULL) -> list[Experiment]:
    """Return Figure 2(a)'s experiment: final regret against hardness.

    >>> (experiment,) = fig2a(100, seed=0)
    >>> [each.instance.n_best for each in experiment.cells][:3]
    [3390, 1149, 390]
    """
    return [planted_cells("fig2a", ALPHAS, six_policies, replications, seed, size)]


def fig2b(replications: int, seed: int, size: Size = FULL) -> list[Experiment]:
    """Return Figure 2(b)'s experiment: regret over time at hardness 0.25."""
    return [planted_cells("fig2b", [0.25], six_policies, replications, seed, size, _CURVE)]


def fig3(replications: int, seed: int, size: Size = FULL) -> list[Experiment]:
    """Return Figure 3's experiment: regret over time on contest 652, or on its stand-in."""
    contest, horizon = contest_652(), size.contest_horizon
    made = cell(
        six_policies(contest.problem(horizon).alpha),
        contest,
        horizon=horizon,
        replications=replications,
        checkpoints=_CURVE,
    )
    return [Experiment("fig3", (made,), seed)]


def planted_cells(
    name: str,
    alphas: Sequence[float],
    policies: Callable[[float], Sequence[Policy | Player]],
    replications: int,
    seed: int,
    size: Size,
    checkpoints: int = 1,
) -> Experiment:
    """Return an experiment on the paper's made-up problems, with a cell for each hardness."""
    cells = [
        cell(
            policies(alpha),
            planted(n=size.n_arms, alpha=alpha, horizon=size.horizon),
            horizon=size.horizon,
            replications=replications,
            checkpoints=checkpoints,
            parameters={"alpha": alpha},
        )
        for alpha in alphas
    ]
    return Experiment(name, tuple(cells), seed)


def by_hardness(results: ResultsFolder) -> dict[float, Result]:
    """Return an experiment's results by hardness, which is nan where none is stated."""
    return {each.parameters.get("alpha", math.nan): each for each in results.cells}


def _report_fig1(results: Results, out: Path) -> Report:
    page = Presentation(_TITLE, facts=_FACTS, curves=[_rates()])
    return Report(save_figure(figure_1(), out / "fig1"), page=page)


def _report_fig2a(results: Results, out: Path) -> Report:
    by_alpha = by_hardness(results["fig2a"])
    rows = {alpha: summaries(result) for alpha, result in by_alpha.items()}
    table = Table(
        ["hardness", *(row.policy for row in next(iter(rows.values())))],
        [[f"{alpha}", *map(_regret_text, summary)] for alpha, summary in rows.items()],
        "Figure 2(a): mean final regret, its 95 % interval, and (the median)",
    )
    files = save_figure(regret_against_hardness(by_alpha, band=PAPER_BAND), out / "fig2a")
    return Report(
        files, [table, about_intervals(by_alpha.values())], presentation(results, ["fig2a"])
    )


def about_intervals(results: Iterable[Result]) -> str:
    """Say what intervals of mean regret allow for, where no run missed every best arm."""
    runs = max(result.replications for result in results)
    return (
        "Intervals of mean regret have 95 % confidence and allow for costly runs that were not "
        f"seen ({unseen(0, runs)})."
    )


def _regret_text(row: PolicySummary) -> str:
    return f"{interval_text(Interval(row.mean, row.low, row.high), 0)} ({row.median:.0f})"


def _over_time(name: str, results: Results, out: Path) -> Report:
    result = results[name].cells[0]
    note = result.instance if result.is_stand_in else None
    files = save_figure(regret_over_time(result, band=PAPER_BAND, note=note), out / name)
    shown = [] if note is None else [f"Figure 3 shows a {note}, not the contest. {_GET}"]
    return Report(files, [*shown], presentation(results, [name]))


_GET = "Get the contest with `manyarms data get 652`, or set MANYARMS_DATA to its folder."
_TITLE = "On Regret with Multiple Best Arms"
_FACTS = (("Paper", "Zhu & Nowak, On Regret with Multiple Best Arms, NeurIPS 2020"),)
_SECTIONS = {
    "fig2a": Section(
        "Figure 2(a)",
        "Regret against hardness",
        "The rarer best arms are, the more every policy loses.",
    ),
    "fig2b": Section("Figure 2(b)", "Regret over time"),
    "fig3": Section("Figure 3", "Regret over time on a caption contest"),
}


def presentation(results: Results, figures: Sequence[str]) -> Presentation:
    """Return what a page says of some of the paper's figures."""
    sections = {name: _SECTIONS[name] for name in figures}
    facts = list(_FACTS)
    if "fig3" in sections:
        result = results["fig3"].cells[0]
        facts.append(("Contest", result.instance))
        sections["fig3"] = replace(sections["fig3"], text=f"Played on {result.instance}.")
        if result.is_stand_in:
            text = f"Played on a {result.instance}, not on the contest. {_GET}"
            title = "Regret over time on a stand-in for the caption contest"
            sections["fig3"] = replace(sections["fig3"], title=title, text=text)
    every = [len(rows) for name in figures for one in results[name].cells for rows in one.rows]
    fewest, most = min(every), max(every)
    runs = f"{thousands(fewest)} to " if fewest < most else ""
    runs += count_of(most, "run", "runs")
    lead = f"The paper's experiments, played again: {runs} of each policy on each problem."
    return Presentation(_TITLE, [lead], facts, sections)


def _rates() -> dict[str, object]:
    """Return Figure 1 for the page: rates against hardness, from theory alone."""
    betas, alphas = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), np.linspace(0.0, 1.0, 201)
    few = [subset_rate(float(alpha), exponent=0.5) for alpha in alphas]
    return curves(
        "Figure 1. Rates",
        f"Regret grows as T to the power θ({ALPHA}): proved, not measured.",
        axis=HARDNESS,
        value=f"rate θ({ALPHA})",
        x=alphas,
        lines={
            f"MOSS++ (β = {beta:g})": (moss_plus_plus_rate(alphas, beta=beta), LineStyle(colour))
            for beta, colour in zip(betas, shades(len(betas)), strict=True)
        }
        | {
            f"minimax: (1 + {ALPHA})/2": (minimax_rate(alphas), MINIMAX_LINE),
            "MOSS on √T random arms": (few, SUBSET_LINE),
            "Quantile": (quantile_rate(alphas), QUANTILE_LINE),
        },
    )


FIG1 = Study(REPLICATIONS, lambda *_: [], _report_fig1)
FIG2A = Study(REPLICATIONS, fig2a, _report_fig2a)
FIG2B = Study(REPLICATIONS, fig2b, partial(_over_time, "fig2b"))
FIG3 = Study(REPLICATIONS, fig3, partial(_over_time, "fig3"))
