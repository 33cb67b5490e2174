"""`manyarms run`, `show` and `plot`: experiments from TOML files, and their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from manyarms.cli.report import report_results
from manyarms.cli.screen import OverallProgress, out
from manyarms.tables import ResultsError, read_results

__all__ = ["plot_results", "run_spec", "show_results"]

_PULLS_PER_SECOND = 2e7  # one worker, roughly: for the estimate before a run
_FIGURES = 24  # of regret over time, at most


def run_spec(
    *,
    spec: Path,
    folder: Path,
    workers: int | None,
    engine: Literal["threads", "dask"] = "threads",
    scheduler: str | None = None,
) -> None:
    """Check the whole file, say what it costs, run or resume it, and show the summary."""
    from manyarms.engine.runner import run_experiment
    from manyarms.specs import load_spec

    experiment = load_spec(spec)
    cells, pulls = experiment.cells(), experiment.cost()
    games = sum(len(cell.players) for cell in cells) * experiment.replications
    out.print(
        f"{experiment.name}: {len(cells)} settings, {games} games, {pulls:.3g} pulls, about "
        f"{pulls / _PULLS_PER_SECOND:.0f} s of one processor, into {folder}",
        markup=False,
    )
    with OverallProgress(pulls) as progress:
        progress.begin(experiment.name)
        run_experiment(
            experiment,
            folder,
            workers=workers,
            engine=engine,
            scheduler=scheduler,
            progress=progress,
        )
    show_results(folder=folder, as_json=False)
    try:
        report_results(folder=folder)
    except ResultsError as error:  # too much for one page: the run is as good as ever
        out.print(f"No page was written: {error}", markup=False)


def show_results(*, folder: Path, as_json: bool) -> None:
    """Print the summary of a finished run."""
    rows = read_results(folder).summary_rows()
    if as_json:
        out.print(json.dumps(rows, indent=2), markup=False, soft_wrap=True)
        return
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_cell(name, value) for name, value in row.items()))
    out.print(table)


def plot_results(*, folder: Path) -> None:
    """Draw a finished run anew, without simulating."""
    from manyarms.report.figures import regret_against_hardness, regret_over_time
    from manyarms.report.from_tables import cells_as_results
    from manyarms.report.saving import save_figure

    cells = cells_as_results(read_results(folder))
    written = []
    if list(cells[0][0]) == ["alpha"]:
        by_alpha = {float(values["alpha"]): result for values, result in cells}
        written += save_figure(regret_against_hardness(by_alpha), folder / "figures" / "hardness")
    for number, (values, result) in enumerate(cells[:_FIGURES], 1):
        title = ", ".join(f"{name} = {value}" for name, value in values.items()) or None
        figure = regret_over_time(result, title=title)
        written += save_figure(figure, folder / "figures" / f"over_time_{number}")
    if len(cells) > _FIGURES:
        out.print(f"The first {_FIGURES} of {len(cells)} settings are drawn over time.")
    out.print(f"{len(written)} files in {folder / 'figures'}", markup=False)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "miss_rate":
        return f"{value:.1%}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
