"""What late rewards cost: regret against their delay, and against the size of batches."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from manyarms.errors import ParameterError
from manyarms.instances import planted
from manyarms.report.drawing import Axes, Figure, Line2D, Patch, drawing, save_figure
from manyarms.report.figures import draw_means
from manyarms.report.frame import legend_beside
from manyarms.report.style import policy_styles, policy_title, thousands
from manyarms.report.text import Table, interval_text, write_text
from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.players import Player
from manyarms.simulation.results import Result
from manyarms.studies.paper import about_intervals, six_policies
from manyarms.studies.study import Report, Results, Study

GAMES = {"late": (20_000, 50_000), "late_short": (2000, 5000)}  # arms and horizon
ALPHA = 0.25  # as in Figure 2(b), whose problem the longer game is
LATENESS = (10, 100, 1000)  # delays, and sizes of batches
POLICIES: list[Any] = six_policies(ALPHA)
# a policy's label, and the label of its form that counts late pulls
COUNTING = {policy.name: f"{policy.name}(count_late)" for policy in POLICIES}

_TWO_PANELS = (6.6, 3.0)  # inches
_PANELS = {"delay": "delay (pulls)", "batch": "batch size (pulls)"}
_TICKS = (1, 2, 5)  # of each power of ten
_NONE: Mapping[str, str] = MappingProxyType({})

Family = Mapping[str, Mapping[int, Result]]  # "delay" or "batch" -> how much -> what was measured


def experiments(
    replications: int, seed: int, *, games: Mapping[str, tuple[int, int]] = GAMES
) -> list[Experiment]:
    """Return planted problems, a long and a short one, with rewards that come late.

    In the short one a delay of 1000 pulls is a fifth of the game.

    >>> late, short = experiments(10, seed=0)
    >>> [(each.delay, each.batch) for each in late.cells][:5]
    [(0, 1), (10, 1), (100, 1), (1000, 1), (0, 10)]
    """
    return [
        Experiment(name, tuple(_cells(n_arms, horizon, replications)), seed)
        for name, (n_arms, horizon) in games.items()
    ]


def _cells(n_arms: int, horizon: int, replications: int) -> Iterator[Cell]:
    players = [
        Player(
            replace(policy, count_late=count_late),
            COUNTING[policy.name] if count_late else policy.name,
            replications,
            {"count_late": int(count_late)},
        )
        for count_late in (False, True)
        for policy in POLICIES
    ]
    instance = planted(n=n_arms, alpha=ALPHA, horizon=horizon)
    for delay, batch in ((0, 1), *((k, 1) for k in LATENESS), *((0, k) for k in LATENESS)):
        late = {"delay": delay, "batch": batch}
        yield cell(players, instance, horizon=horizon, checkpoints=1, parameters=late, **late)


def report(results: Results, out: Path) -> Report:
    """Draw regret against lateness, and write the tables."""
    found = Report()
    for name in GAMES:
        cells = [(each.parameters, each) for each in results[name].cells]
        family = {
            "delay": {late["delay"]: each for late, each in cells if late["batch"] == 1},
            "batch": {late["batch"]: each for late, each in cells if late["delay"] == 0},
        }
        tables = [
            _table(name, "observed rewards only", family, {label: label for label in COUNTING}),
            _table(name, "late pulls counted", family, COUNTING),
        ]
        note = about_intervals(results[name].cells)
        page = "\n\n".join([note, *(table.markdown() for table in tables)])
        figure = regret_against_lateness(family, counting=COUNTING)
        files = [*save_figure(figure, out / name), write_text(out / f"{name}.md", page)]
        found.add(Report(files, [*tables]))
    return found


def _table(name: str, corner: str, family: Family, labels: Mapping[str, str]) -> Table:
    columns = {f"{late} {k}": family[late][k] for late in family for k in family[late]}
    del columns["batch 1"]  # the same as no delay
    head = ["in turn" if column == "delay 0" else column for column in columns]
    rows = [
        [policy_title(policy), *(interval_text(r.interval(label), 0) for r in columns.values())]
        for policy, label in labels.items()
    ]
    some = family["delay"][0]
    title = f"{name}: {thousands(some.n_arms)} arms, {thousands(some.horizon)} pulls"
    return Table([corner, *head], rows, title)


def regret_against_lateness(results: Family, *, counting: Mapping[str, str] = _NONE) -> Figure:
    """Draw mean final regret against the delay of rewards and against the size of batches.

    Parameters
    ----------
    results
        What was measured: under "delay" by delay, and under "batch" by batch size.
    counting
        By label, the label of the same policy that counts late pulls, which is drawn thinner,
        with hollow markers (default: there is none).

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, alpha=0.2, horizon=1000)
    >>> results = {
    ...     late: {k: ma.simulate(ma.MOSS(), instance, horizon=1000, replications=3, **{late: k})}
    ...     for late, k in (("delay", 10), ("batch", 10))
    ... }
    >>> [axes.get_xlabel() for axes in regret_against_lateness(results).axes]
    ['delay (pulls)', 'batch size (pulls)']
    """
    if set(results) != set(_PANELS) or not all(results.values()):
        raise ParameterError(
            f'`results` must contain some under "delay" and under "batch", got {sorted(results)}.'
        )
    some = next(iter(results["delay"].values()))
    shown = {label: label for label in some.policies if label not in counting.values()}
    with drawing(*_TWO_PANELS) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        lines: list[Line2D] = []
        for axes, (late, label) in zip(panels, _PANELS.items(), strict=True):
            places = dict(sorted(results[late].items()))
            lines += _draw(axes, places, shown)
            _draw(axes, places, counting, markerfacecolor="white", linewidth=0.7)
            axes.set_xticks(range(len(places)), [thousands(place) for place in places])
            axes.set_xlabel(label)
        _logarithmic(panels[0], some.horizon)
        notes = [f"bars: 95 % intervals of the mean, {some.replications} replications"]
        if counting:
            notes.insert(0, "hollow: late pulls count in the bonus (count_late)")
        handles = [Patch(alpha=0.0, label=textwrap.fill(note, 24)) for note in notes]
        legend_beside(figure, lines[: len(shown)], handles)
    return figure


def _draw(
    axes: Axes, places: Mapping[int, Result], labels: Mapping[str, str], **options: Any
) -> list[Line2D]:
    """Draw a line for each label, in the style of the policy it belongs to."""
    return [
        draw_means(
            axes,
            range(len(places)),
            [result.interval(labels[policy]) for result in places.values()],
            style.options(label=policy_title(policy), **options),
        )
        for policy, style in policy_styles(labels).items()
    ]


def _logarithmic(axes: Axes, horizon: int) -> None:
    axes.set_yscale("log")
    axes.set_ylabel(f"mean pseudo-regret after {thousands(horizon)} pulls")
    low, high = axes.get_ylim()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
    ticks = [t * power for power in powers for t in _TICKS if low <= t * power <= high]
    axes.set_yticks(ticks, [thousands(tick) for tick in ticks])
    axes.set_yticks([], minor=True)


LATE = Study(400, experiments, report)
