"""`manyarms reproduce`: the paper's experiments, figures and claims."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from manyarms.cli.paper_tables import write_tables
from manyarms.cli.screen import OverallProgress
from manyarms.cli.screen import out as screen
from manyarms.core.checks import check_int
from manyarms.engine import simulate
from manyarms.experiments import (
    Setting,
    fig2a,
    fig2b,
    fig3,
    larger_betas,
    oracle_sizes,
    quantile_as_moss,
)
from manyarms.instances.captions import contest_652
from manyarms.report.claims import paper_claims
from manyarms.report.contest_facts import contest_facts, contest_ratios
from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
from manyarms.report.paper_results import PaperResults
from manyarms.report.saving import save_figure
from manyarms.report.verdicts import Claim, Part, claims_as_markdown, revisions
from manyarms.results import Result
from manyarms.specs.provenance import now

__all__ = ["reproduce_paper"]

PAPER_REPLICATIONS = 100


def reproduce_paper(
    *, target: str, replications: int, seed: int, workers: int | None, out: Path
) -> None:
    """Play what the target needs, then draw, decide and write."""
    check_int("replications", replications, at_least=1)
    begun, started = time.perf_counter(), now()
    contest = contest_652()
    settings = _settings(target, fig3(contest), oracle_sizes(contest))
    results = _play(settings, replications=replications, seed=seed, workers=workers)
    written = list(_draw(target, results, out, contest.label))
    if results:
        written += write_tables(results, out, seed=seed, started=started)
    if "fig2a" in results:
        _print_fig2a(results["fig2a"])
    if target in ("claims", "all"):
        written += _decide(results, contest_facts(contest), out)
    _print(f"\n{len(written)} files in {out}, {time.perf_counter() - begun:.1f} s")


def _settings(target: str, contest: Setting, sizes: Setting) -> list[Setting]:
    every = {
        "fig1": [],
        "fig2a": fig2a(),
        "fig2b": [fig2b()],
        "fig3": [contest],
        "claims": [*larger_betas(), *quantile_as_moss(), sizes],
    }
    if target in ("claims", "all"):
        return [setting for settings in every.values() for setting in settings]
    return every[target]


def _play(
    settings: list[Setting], *, replications: int, seed: int, workers: int | None
) -> dict[str, dict[float, Result]]:
    results: dict[str, dict[float, Result]] = {}
    with OverallProgress(sum(s.pulls for s in settings) * replications) as progress:
        for setting in settings:
            progress.begin(f"{setting.experiment}, hardness {setting.alpha:.2g}")
            results.setdefault(setting.experiment, {})[setting.alpha] = simulate(
                setting.policies,
                setting.instance,
                horizon=setting.horizon,
                replications=replications,
                seed=seed,
                workers=workers,
                checkpoints=setting.checkpoints,
                progress=progress,
            )
    return results


def _draw(
    target: str, results: dict[str, dict[float, Result]], folder: Path, contest: str
) -> Iterable[Path]:
    if target in ("fig1", "all"):
        yield from save_figure(figure_1(), folder / "fig1")
    if "fig2a" in results:
        yield from save_figure(regret_against_hardness(results["fig2a"]), folder / "fig2a")
    if "fig2b" in results:
        (result,) = results["fig2b"].values()
        yield from save_figure(regret_over_time(result), folder / "fig2b")
    if "fig3" in results:
        (result,) = results["fig3"].values()
        note = contest if "stand-in" in contest else None
        yield from save_figure(regret_over_time(result, note=note), folder / "fig3")


def _decide(
    results: dict[str, dict[float, Result]], facts: tuple[Part, ...], folder: Path
) -> list[Path]:
    (over_time,), (contest,) = results["fig2b"].values(), results["fig3"].values()
    (sizes,) = results["oracle_sizes"].values()
    paper = PaperResults(
        fig2a=results["fig2a"],
        fig2b=over_time,
        fig3=contest,
        larger_betas=results["larger_betas"],
        oracle_sizes=sizes,
        quantile_as_moss=results["quantile_as_moss"],
        contest_facts=facts,
    )
    claims = paper_claims(paper)
    few = None
    if over_time.replications > PAPER_REPLICATIONS:
        few = paper_claims(paper.first(PAPER_REPLICATIONS))
    notes = contest_ratios(contest) + ([] if few is None else revisions(few, claims))
    _print_claims(claims, notes)
    folder.mkdir(parents=True, exist_ok=True)
    markdown, data = folder / "claims.md", folder / "claims.json"
    markdown.write_text(claims_as_markdown(claims, notes) + "\n")
    data.write_text(json.dumps([claim.as_dict() for claim in claims], indent=1) + "\n")
    return [markdown, data]


def _print_claims(claims: list[Claim], notes: list[str]) -> None:
    table = Table("", "claim", "verdict", "parts: hold / fail / open", box=None, pad_edge=False)
    for claim in claims:
        counts = " / ".join(str(count) for count in claim.counts())
        table.add_row(str(claim.number), claim.text, str(claim.verdict), counts)
    screen.print(f"\nThe paper's claims, {claims[0].replications} replications", markup=False)
    screen.print(table)
    for note in notes:
        screen.print(note, markup=False)


def _print_fig2a(results: dict[float, Result]) -> None:
    names = next(iter(results.values())).policies
    table = Table("hardness", *names, box=None, pad_edge=False)
    for alpha, result in results.items():
        rows = result.summary().policies
        table.add_row(f"{alpha}", *(f"{r.mean:.0f} ± {r.se:.0f}\n({r.median:.0f})" for r in rows))
    screen.print("Figure 2(a): mean ± standard error, and (median), of the final regret")
    screen.print(table)


def _print(text: str) -> None:
    screen.print(text, markup=False)
