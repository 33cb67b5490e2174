"""`manyarms reproduce late` and `best-mean`: what late rewards, and a wrong best mean, cost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.cli.screen import OverallProgress
from manyarms.cli.screen import out as screen
from manyarms.core.checks import check_int
from manyarms.core.files import replace_file
from manyarms.core.statistics import mean_interval
from manyarms.engine import simulate
from manyarms.experiments import LateSetting, late_rewards, late_rewards_short, wrong_best_mean
from manyarms.report.late_figure import regret_against_best_mean, regret_against_lateness
from manyarms.report.saving import save_figure
from manyarms.report.style import policy_title
from manyarms.results import Result

__all__ = ["reproduce_late"]

Family = dict[str, dict[int, Result]]  # "delay" or "batch" -> how much -> what was measured


def reproduce_late(
    *, target: str, replications: int, seed: int, workers: int | None, out: Path
) -> None:
    """Play one of the two experiments, draw its figures, and write its tables."""
    check_int("replications", replications, at_least=1)
    options = {"replications": replications, "seed": seed, "workers": workers, "checkpoints": 1}
    out.mkdir(parents=True, exist_ok=True)
    if target == "late":
        games = {"late": late_rewards(), "late_short": late_rewards_short()}
        pulls = sum(setting.pulls for settings in games.values() for setting in settings)
        with OverallProgress(pulls * replications) as progress:
            files = [
                path
                for name, settings in games.items()
                for path in _late(name, settings, out, options | {"progress": progress})
            ]
    else:
        files = _best_mean(out, options)
    screen.print(f"{len(files)} files in {out}", markup=False)


def _late(
    name: str, settings: list[LateSetting], folder: Path, options: dict[str, Any]
) -> list[Path]:
    observed: Family = {"delay": {}, "batch": {}}
    counting: Family = {"delay": {}, "batch": {}}
    for setting in settings:
        how = f"delay {setting.delay}, batches of {setting.batch}"
        counted = ", late pulls counted" if setting.count_late else ""
        options["progress"].begin(f"{name}: {how}{counted}")
        result = simulate(
            setting.policies,
            setting.instance,
            horizon=setting.horizon,
            delay=setting.delay,
            batch=setting.batch,
            **options,
        )
        family = counting if setting.count_late else observed
        if setting.batch == 1:
            family["delay"][setting.delay] = result
        if setting.delay == 0:
            family["batch"][setting.batch] = result
    lines = [
        *_table("observed rewards only", observed),
        "",
        *_table("late pulls counted", counting),
    ]
    return [
        *save_figure(regret_against_lateness(observed, counting), folder / name),
        _write(lines, folder / f"{name}.md"),
    ]


def _table(corner: str, family: Family) -> list[str]:
    columns = {f"{late} {k}": family[late][k] for late in family for k in family[late]}
    del columns["batch 1"]  # the same as no delay
    head = ["in turn" if column == "delay 0" else column for column in columns]
    names = columns["delay 0"].policies
    rows = [
        [policy_title(name), *(_mean(result.of(name)) for result in columns.values())]
        for name in names
    ]
    return _as_markdown([corner, *head], rows)


def _best_mean(folder: Path, options: dict[str, Any]) -> list[Path]:
    settings = wrong_best_mean()
    told = [policy.best_mean for policy in settings[0].policies]  # type: ignore[attr-defined]
    results = {}
    pulls = sum(setting.pulls for setting in settings)
    with OverallProgress(pulls * options["replications"]) as progress:
        for setting in settings:
            progress.begin(f"best mean: hardness {setting.alpha:g}")
            results[setting.alpha] = simulate(
                setting.policies,
                setting.instance,
                horizon=setting.horizon,
                progress=progress,
                **options,
            )
    rows = [
        [f"{mean:g}", *(_mean(result.regret[k]) for result in results.values())]
        for k, mean in enumerate(told)
    ]
    head = ["best mean told", *(f"hardness {alpha:g}" for alpha in results)]
    return [
        *save_figure(regret_against_best_mean(results, told), folder / "best_mean"),
        _write(_as_markdown(head, rows), folder / "best_mean.md"),
    ]


def _mean(regret: NDArray[np.float64]) -> str:
    interval = mean_interval(regret[:, -1])
    return f"{interval.estimate:.0f} ± {interval.high - interval.estimate:.0f}"


def _as_markdown(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _write(lines: list[str], path: Path) -> Path:
    note = "Mean final regret, with the half width of its 95 % interval."
    replace_file(path, "\n".join([note, "", *lines, ""]).encode())
    return path
