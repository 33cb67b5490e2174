"""`manyarms reproduce rates` and `lower-bound`: the paper's theory, measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from manyarms.cli.screen import OverallProgress
from manyarms.cli.screen import out as screen
from manyarms.core.checks import check_int
from manyarms.core.files import replace_file
from manyarms.engine import simulate
from manyarms.experiments.exponents import FULL_RUNS, exponent_settings
from manyarms.experiments.lower_bound import lower_bound_trade_off
from manyarms.experiments.setting import Setting
from manyarms.report import lower_bound
from manyarms.report.exponents import Measurement, measured_exponents
from manyarms.report.exponents_figure import exponent_fits, measured_rates
from manyarms.report.exponents_table import (
    HEAD,
    MODEL,
    exponent_notes,
    exponents_as_data,
    exponents_as_markdown,
    exponents_as_rows,
)
from manyarms.report.lower_bound_figure import trade_off_figure
from manyarms.report.saving import save_figure
from manyarms.results import Result
from manyarms.specs.provenance import now, software_and_machine

__all__ = ["reproduce_theory"]

_APART = 1 << 20  # replications of one game; the next game's begin there


def reproduce_theory(
    *, target: str, replications: int, seed: int, workers: int | None, out: Path
) -> None:
    """Play what the target needs, then fit or check, draw and write."""
    check_int("replications", replications, at_least=2, at_most=_APART // 4)
    begun, started = time.perf_counter(), now()
    measure = {"rates": _rates, "lower-bound": _lower_bound}[target]

    def play(
        settings: Sequence[tuple[str, Setting, int]], *, independent: bool = True
    ) -> list[Result]:
        return _play(settings, seed=seed, workers=workers, independent=independent)

    page, data, figures = measure(replications, play)
    written = [path for stem, figure in figures for path in save_figure(figure, out / stem)]
    about = {"seed": seed, "replications": replications, "started": started, "ended": now()}
    everything = {**about, **software_and_machine(), "results": data}
    for path, text in (
        (out / f"{target}.md", page),
        (out / f"{target}.json", json.dumps(everything, indent=1)),
    ):
        replace_file(path, f"{text}\n".encode())
        written.append(path)
    seconds = time.perf_counter() - begun
    screen.print(f"\n{len(written)} files in {out}, {seconds:.1f} s", markup=False)


def _play(
    games: Sequence[tuple[str, Setting, int]], *, seed: int, workers: int | None, independent: bool
) -> list[Result]:
    """Play (label, setting, replications); independent games share no luck."""
    results = []
    label = ""
    with OverallProgress(sum(setting.pulls * runs for _, setting, runs in games)) as progress:
        for number, (what, setting, runs) in enumerate(games):
            if what != label:
                progress.begin(what)
                label = what
            results.append(
                simulate(
                    setting.policies,
                    setting.instance,
                    horizon=setting.horizon,
                    replications=runs,
                    first_replication=_APART * number if independent else 0,
                    seed=seed,
                    workers=workers,
                    checkpoints=setting.checkpoints,
                    progress=progress,
                )
            )
    return results


Play = Callable[..., list[Result]]
Outcome = tuple[str, list[dict[str, Any]], list[tuple[str, Any]]]


def _rates(replications: int, play: Play) -> Outcome:
    settings = exponent_settings(replications)
    results = play(
        [
            (f"{s.policy} on {s.kind}, hardness {s.setting.alpha:g}", s.setting, s.replications)
            for s in settings
        ]
    )
    measured = measured_exponents(
        Measurement(
            s.policy,
            s.setting.alpha,
            s.kind,
            s.factor,
            s.setting.horizon,
            s.settled,
            result.regret[0, :, -1],
            float((result.best_pulls[0] == 0).mean()),
        )
        for s, result in zip(settings, results, strict=True)
    )
    fewest = min(s.replications for s in settings)
    rule = (
        f"Runs: {replications} (planted: {4 * replications}) up to T = 2^"
        f"{FULL_RUNS.bit_length() - 1}, then fewer, as 1/T, but at least {fewest}."
    )
    _print_table(HEAD, exponents_as_rows(measured))
    screen.print(f"\n{MODEL}\n{rule}\n", markup=False)
    for note in exponent_notes(measured):
        screen.print(note, markup=False)
    figures = [("rates", measured_rates(measured)), ("rates_fits", exponent_fits(measured))]
    return exponents_as_markdown(measured, rule), exponents_as_data(measured), figures


def _lower_bound(replications: int, play: Play) -> Outcome:
    settings = lower_bound_trade_off()
    games = [
        (f"B = {s.family.budget:.0f}, {name}", setting, replications)
        for s in settings
        for name, setting in (("instance 0", s.open), ("instance 1", s.hidden))
    ]
    # the same luck for all budgets and both instances: differences between them are clearer
    results = play(games, independent=False)
    points = [
        point
        for s, easy, hard in zip(settings, results[::2], results[1::2], strict=True)
        for point in lower_bound.trade_off_points(s.family, s.names, easy, hard)
    ]
    screen.print(f"The lower bound, checked with {replications} replications", markup=False)
    _print_table(lower_bound.HEAD, lower_bound.trade_off_rows(points))
    for note in lower_bound.trade_off_notes(points):
        screen.print(note, markup=False)
    page, data = lower_bound.trade_off_as_markdown(points), [point.as_dict() for point in points]
    return page, data, [("lower-bound", trade_off_figure(points))]


def _print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    screen.print(table)
