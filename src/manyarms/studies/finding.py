"""Who finds a good arm: finders and regret policies by the arm that they recommend in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from manyarms.instances import (
    BetaMeans,
    Instance,
    UniformMeans,
    captions,
    from_means,
    local_contests,
    planted,
    reservoir,
)
from manyarms.protocol import policy
from manyarms.report.drawing import Figure, drawing, save_figure
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.style import WIDE, policy_styles, policy_title, thousands
from manyarms.report.text import Block, Table, as_markdown, interval_text, write_text
from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.players import Player
from manyarms.simulation.results import Result, summaries
from manyarms.studies.study import Report, Results, Study

PROMPTS = "prompts"
N_ARMS, HORIZON = 20_000, 20_000
_CONTESTS = ("652", "540")  # of those that are on this machine
_HOW = (
    "Mean simple regret with a 95 % interval. Simple regret is the best mean minus the mean of the "
    "recommended arm; if means are drawn, the best mean is their supremum. The policies "
    "know at most the horizon."
)
_TAILS = "The 99 % quantile of simple regret over the runs, and the worst run."


class FindProblem(NamedTuple):
    """A problem, and how many evaluations are in flight."""

    name: str
    instance: Instance
    horizon: int
    in_flight: int = 0


def problems() -> Iterator[FindProblem]:
    """Yield problems with few and many pulls, with rare and frequent good arms, and contests."""
    spread = reservoir(BetaMeans(2.0, 5.0))  # 200,000 prompts are as good as infinitely many
    yield FindProblem(PROMPTS, spread, 10_000)
    yield FindProblem("prompts, 256 in flight", spread, 10_000, 256)
    yield FindProblem("prompts, T = 1 000", spread, 1_000)
    yield FindProblem("Beta(1, 3) means", reservoir(BetaMeans(1.0, 3.0)), 10_000)
    yield FindProblem("uniform means", reservoir(UniformMeans(0.0, 1.0)), 5_000)
    close = reservoir(BetaMeans(10.0, 30.0))
    yield FindProblem("Beta(10, 30) means", close, 10_000)
    for alpha in (0.2, 0.5, 0.8):
        coins = planted(n=N_ARMS, alpha=alpha, horizon=HORIZON)
        yield FindProblem(f"planted, alpha {alpha}", coins, HORIZON)
    few = from_means(np.linspace(0.3, 0.7, 50), label="50 arms from 0.3 to 0.7")
    yield FindProblem("50 arms, T = 20 000", few, HORIZON)
    found = {stem.partition("_")[0]: path for stem, path in local_contests().items()}
    for number in _CONTESTS:
        if number in found:
            yield FindProblem(f"contest {number}", captions(found[number]), HORIZON)
            voted = captions(found[number], scaled=False)
            yield FindProblem(f"contest {number}, as voted, T = 1 000", voted, 1_000)


def players(problem: FindProblem, replications: int) -> list[Player]:
    """Return the finders, and the regret policies that one would take."""
    chosen = {
        "scout": policy("scout"),
        "sequential-halving": policy("sequential-halving"),
        "sequential-halving(4096)": policy("sequential-halving", size=4096),
        "prospector": policy("prospector"),
        "empmoss++": policy("empmoss++"),
        "moss++": policy("moss++"),
    }
    return [Player(each, label, replications) for label, each in chosen.items()]


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return the problems, with the contests of this machine.

    >>> (experiment,) = experiments(10, seed=0)
    >>> experiment.objective, experiment.cells[0].parameters["problem"]
    ('find', 'prompts')
    """
    cells: list[Cell] = [
        cell(
            players(each, replications),
            each.instance,
            horizon=each.horizon,
            checkpoints=1,
            batch=max(1, each.in_flight),
            parameters={"problem": each.name},
        )
        for each in problems()
    ]
    return [Experiment("find", tuple(cells), seed, objective="find")]


def report(results: Results, out: Path) -> Report:
    """Draw regret beside simple regret, and write the table of all problems."""
    cells = results["find"].cells
    prompts = next(each for each in cells if each.parameters["problem"] == PROMPTS)
    title = f"means drawn from Beta(2, 5), {thousands(prompts.horizon)} pulls"
    files = save_figure(earn_and_find(prompts, title=title), out / "find")
    found = [each.by("find") for each in cells]
    how = f"{_HOW} The least value of a row is bold."
    blocks: list[Block] = [how, _table(found, intervals=True), _TAILS, _tails(found)]
    files.append(write_text(out / "find.md", as_markdown(blocks)))
    section = Section(title="Simple regret, problem by problem", text=_HOW)
    page = Presentation(sections={"find": section})
    return Report(files, [_table(found, intervals=False)], page)


def _table(results: Sequence[Result], *, intervals: bool) -> Table:
    """Return a row for each problem; with intervals, the least value of a row is bold."""
    rows = []
    for each in results:
        known = [each.interval(label) for label in each.policies]
        least = min(interval.estimate for interval in known)
        texts = [
            f"**{text}**" if interval.estimate == least else text
            for interval in known
            for text in [interval_text(interval, 3)]
        ]
        short = [f"{interval.estimate:.3f}" for interval in known]
        rows.append([str(each.parameters["problem"]), *(texts if intervals else short)])
    return Table(["problem", *map(policy_title, results[0].policies)], rows)


def _tails(results: Sequence[Result]) -> Table:
    """Return a row for each problem: the 99 % quantile of each policy, and its worst run."""
    rows = [
        [
            str(each.parameters["problem"]),
            *(f"{row.q99:.3f}, {row.worst:.3f}" for row in summaries(each)),
        ]
        for each in results
    ]
    return Table(["problem", *map(policy_title, results[0].policies)], rows)


def earn_and_find(result: Result, *, title: str = "") -> Figure:
    """Draw what each policy loses on the way against the simple regret of its recommended arm.

    Parameters
    ----------
    result
        The result on one problem.
    title
        A text above the plot (default: none).

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, m=5)
    >>> result = ma.simulate([ma.MOSS(), ma.Scout()], instance, horizon=300, replications=3)
    >>> earn_and_find(result).axes[0].get_xlabel()
    'mean regret of a pull'
    """
    with drawing(*WIDE) as figure:
        axes = figure.add_subplot()
        found = result.by("find")
        for label, style in policy_styles(result.policies).items():
            x = float(result.of(label)[:, -1].mean()) / result.horizon
            y, low, high = found.interval(label)
            options = style.options(linestyle="none", label=policy_title(label), linewidth=0.8)
            axes.errorbar([x], [y], yerr=[[y - low], [high - y]], capsize=2, **options)
        axes.set(
            xlabel="mean regret of a pull",
            ylabel="mean simple regret of\nthe recommended arm",
            title=title,
        )
        axes.set_xlim(left=0.0)
        axes.set_ylim(bottom=0.0)
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), handlelength=1.0)
    return figure


FIND = Study(200, experiments, report)
