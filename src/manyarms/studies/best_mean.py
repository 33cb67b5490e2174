"""What a wrong best mean costs Parallel, which needs to know it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyarms.policies import Parallel
from manyarms.report.drawing import Figure, drawing, save_figure
from manyarms.report.figures import draw_means, name_place
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.style import HARDNESS, NARROW, LineStyle, shades, thousands
from manyarms.report.text import Table, interval_text, write_text
from manyarms.simulation.experiment import Experiment
from manyarms.simulation.results import Result
from manyarms.studies.paper import Size, about_intervals, by_hardness, planted_cells
from manyarms.studies.study import Report, Results, Study

ALPHAS = (0.1, 0.25, 0.4)
TOLD = (0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 1.0, 1.1)  # the truth is 0.9
N_ARMS, HORIZON = 20_000, 50_000
_MARKERS = ("o", "s", "^", "D", "v")


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return Figure 2(a)'s problems, with best means for Parallel from too low to too high.

    >>> (experiment,) = experiments(10, seed=0)
    >>> [each.parameters["alpha"] for each in experiment.cells]
    [0.1, 0.25, 0.4]
    """
    policies, size = [Parallel(best_mean=told) for told in TOLD], Size(N_ARMS, HORIZON)
    return [planted_cells("best_mean", ALPHAS, lambda _: policies, replications, seed, size)]


def report(results: Results, out: Path) -> Report:
    """Draw regret against the best mean given, and write the table."""
    by_alpha = by_hardness(results["best_mean"])
    table = Table(
        ["best mean given", *(f"hardness {alpha:g}" for alpha in by_alpha)],
        [
            [f"{told:g}", *(interval_text(r.interval(r.policies[k]), 0) for r in by_alpha.values())]
            for k, told in enumerate(TOLD)
        ],
    )
    files = save_figure(regret_against_best_mean(by_alpha), out / "best_mean")
    files.append(
        write_text(
            out / "best_mean.md", f"{about_intervals(by_alpha.values())}\n\n{table.markdown()}"
        )
    )
    section = Section(
        title="Regret against the best mean given",
        text="What was lost at the end of the run; the truth is 0.9.",
        against="best_mean",
        line="parallel",
    )
    return Report(files, [table], Presentation(sections={"best_mean": section}))


def regret_against_best_mean(results: Mapping[float, Result]) -> Figure:
    """Draw mean final regret against the best mean that Parallel was given.

    Parameters
    ----------
    results
        By hardness, the result of players of Parallel that differ in `best_mean`.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> policies = [ma.Parallel(best_mean=0.8), ma.Parallel(best_mean=0.9)]
    >>> result = ma.simulate(policies, instance, horizon=1000, replications=3)
    >>> regret_against_best_mean({0.2: result}).axes[0].get_xlabel()
    'best mean given to Parallel'
    """
    first = next(iter(results.values()))
    with drawing(*NARROW) as figure:
        axes = figure.add_subplot()
        for k, (alpha, result) in enumerate(sorted(results.items())):
            style = LineStyle(shades(len(results))[k], marker=_MARKERS[k % len(_MARKERS)])
            options = style.options(label=f"{HARDNESS} = {alpha:g}")
            told = [float(parameters["best_mean"]) for parameters in result.policy_parameters]
            draw_means(axes, told, map(result.interval, result.policies), options)
        axes.axvline(first.best_mean, color="black", linewidth=0.8, dashes=(2, 2), zorder=0)
        where = {"xycoords": ("data", "axes fraction"), "ha": "right", "va": "top"}
        name_place(axes, "the truth", (first.best_mean, 1.0), (-3, -2), **where)
        axes.set(
            xlabel="best mean given to Parallel",
            ylabel=f"mean pseudo-regret after {thousands(first.horizon)} pulls",
        )
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(thousands)
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.92))
    return figure


BEST_MEAN = Study(400, experiments, report)
