"""Draw the paper's figures and check its claims: `python -m paper`.

    python -m paper                 figures 1, 2(a), 2(b) and 3, then the claims (about a minute)
    python -m paper --full          with more runs for close comparisons (about three minutes)
    python -m paper fig2a           one figure
    python -m paper rates           measured exponents beside the rates of Figure 1 (minutes)
    python -m paper lower-bound     the trade-off of the lower bound (minutes)

If it is stopped, the same command resumes it: finished runs are kept in OUT/results.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from manyarms.errors import ManyarmsError
from manyarms.report import save_figure, write_page
from manyarms.report.page import Section
from manyarms.simulation import Result, ResultsFolder, Sweep, run
from paper import lower_bound, rates, report, sweeps
from paper.claims import paper_claims

FIGURES = tuple(report.FIGURES)
CLAIMS = "claims"
STUDIES = {"rates": rates, "lower-bound": lower_bound}
PAGE = "index.html"

_NAMED = {"fig1": "Figure 1", "fig2a": "Figure 2(a)", "fig2b": "Figure 2(b)", "fig3": "Figure 3"}


class Work:
    """Play sweeps into a folder, with one progress bar and messages above it."""

    def __init__(self, out: Path, total: int, bar: Progress) -> None:
        self.out, self._bar = out, bar
        self._task: TaskID = bar.add_task("", total=total)
        self._before = 0  # pulls of the sweeps that are finished
        self.seconds = 0.0  # processor time of all sweeps

    def play(self, sweep: Sweep, label: str) -> ResultsFolder:
        """Play a sweep, or the rest of it, and update the bar."""
        self.doing(label)

        def moved(done: int, total: int, note: str) -> None:
            text = f"{label}, {note}" if note else label
            self._bar.update(self._task, completed=self._before + done, description=text)

        folder = self.out / "results" / f"{sweep.name}-{sweep.hash[:8]}"
        found = run(sweep, folder, progress=moved)
        self.seconds += float(found.provenance["seconds"])
        self._before += sweep.pulls
        self._bar.update(self._task, completed=self._before)
        return found

    def doing(self, what: str) -> None:
        """Show the current step."""
        self._bar.update(self._task, description=what)

    def say(self, *lines: str) -> None:
        """Print lines above the bar, wrapped between words."""
        for line in lines:
            indent = 6 * " " if line.startswith("  ") else ""  # of a claim
            text = textwrap.fill(line, self._bar.console.width, subsequent_indent=indent)
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def wrote(self, what: str, path: Path, begun: float) -> None:
        """Announce a file."""
        line = f"{what:<12} {time.perf_counter() - begun:6.1f} s   {path}"
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


def planned(names: Sequence[str], *, replications: int, seed: int, full: bool) -> list[Sweep]:
    """Return the sweeps that figures and claims need, in this order."""
    wanted = [name for name in FIGURES if name in names or CLAIMS in names]
    makers: list[Callable[[int, int], Sweep]] = [
        sweeps.FIGURES[name] for name in wanted if name in sweeps.FIGURES
    ]
    if CLAIMS in names:
        makers += sweeps.OF_CLAIMS.values()
    made = [make(replications, seed) for make in makers]
    return [sweeps.with_more_runs(each) for each in made] if full else made


def reproduce(names: Sequence[str], work: Work, plan: Sequence[Sweep], full: bool) -> None:
    """Draw the figures, then check the claims, and write the page."""
    by_name = {each.name: each for each in plan}
    played: dict[str, dict[float, Result]] = {}
    sections: list[Section] = []
    for name in FIGURES:
        begun = time.perf_counter()
        if name in by_name:
            label = _NAMED[name]
            played[name] = report.by_hardness(work.play(by_name[name], label).cells)
        if name in names:
            work.doing(f"drawing {_NAMED[name]}")
            sections.append(report.FIGURES[name](played.get(name, {})))
            _, svg, _ = save_figure(sections[-1].figures[0], work.out / name)
            work.wrote(_NAMED[name], svg, begun)
    lines: list[str] = []
    lead = ["Figures and claims of the paper by Zhu and Nowak (NeurIPS 2020), computed again."]
    if CLAIMS in names:
        begun = time.perf_counter()
        for name in sweeps.OF_CLAIMS:
            played[name] = report.by_hardness(work.play(by_name[name], "Claims").cells)
        work.doing("deciding the claims")
        claims = paper_claims(played)
        sections.append(report.claims_section(claims))
        lead.append(report.overall(claims))
        work.wrote("Claims", report.claims_csv(work.out / "claims.csv", claims), begun)
        lines = ["", *report.last_lines(claims, None if full else _minutes(plan, work))]
    begun = time.perf_counter()
    work.doing("writing the page")
    page = write_page(work.out / PAGE, title=report.TITLE, lead=lead, sections=sections)
    work.wrote("Page", page, begun)
    work.say(*lines)


def _minutes(plan: Sequence[Sweep], work: Work) -> float:
    """Estimate how long `--full` takes on all processors."""
    more = sum(sweeps.with_more_runs(each).pulls for each in plan)
    times = more / sum(each.pulls for each in plan)
    return times * work.seconds / (os.cpu_count() or 1) / 60


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    everything = (*FIGURES, CLAIMS)
    choices = [*everything, *STUDIES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(choices)}")
    parser.add_argument("--full", action="store_true", help="more runs for close comparisons")
    parser.add_argument("--replications", type=int, help="runs of each policy on each problem")
    parser.add_argument("--seed", type=int, default=0, help="the seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out/paper"), help="default: out/paper")
    given = parser.parse_args(words)
    names = given.names or list(everything)
    if unknown := [name for name in names if name not in choices]:
        parser.error(f"NAME must be one of {', '.join(choices)}, got {unknown[0]!r}.")
    if given.full and given.replications is not None:
        parser.error("--full has its own numbers of runs: leave out --replications.")
    try:
        _run(names, given)
    except ManyarmsError as error:
        sys.stderr.write(f"paper: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("paper: interrupted. The same command resumes.\n")
        return 130
    return 0


def _run(names: Sequence[str], given: argparse.Namespace) -> None:
    def runs(usual: int) -> int:
        return usual if given.replications is None else int(given.replications)

    often = runs(sweeps.REPLICATIONS)
    plan = planned(names, replications=often, seed=given.seed, full=given.full)
    studies = {
        name: study.sweep(runs(study.REPLICATIONS), given.seed)
        for name, study in STUDIES.items()
        if name in names
    }
    total = sum(each.pulls for each in (*plan, *studies.values()))
    columns = (BarColumn(24), "{task.percentage:>3.0f}%", TimeRemainingColumn())
    console = Console()
    text = TextColumn("{task.description}", markup=False)
    with Progress(
        *columns, text, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        work = Work(given.out, total, bar)
        if set(names) - set(STUDIES):
            reproduce(names, work, plan, given.full)
        for name, sweep in studies.items():
            begun = time.perf_counter()
            results = work.play(sweep, name)
            work.doing(f"drawing {name}")
            for path in STUDIES[name].write(results, work.out):
                work.wrote(name, path, begun)


if __name__ == "__main__":
    sys.exit(main())
