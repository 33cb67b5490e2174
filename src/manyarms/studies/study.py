"""What a study is: experiments, and a report on their results; `reproduce` plays and reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from manyarms.core.checks import check_int
from manyarms.errors import ResultsError
from manyarms.report.html_report import REPORT, write_page, write_study
from manyarms.report.page.presentation import Presentation
from manyarms.report.text import Table
from manyarms.simulation.experiment import Engine, Experiment
from manyarms.simulation.progress import ProgressCallback
from manyarms.simulation.run import run
from manyarms.simulation.tables import ResultsFolder
from manyarms.studies import PAPER

Results = Mapping[str, ResultsFolder]  # by the experiment's name


@dataclass
class Report:
    """What a study found.

    Attributes
    ----------
    files, shown
        What it wrote, and what a reader should see at once.
    page
        What the page of all results shows beside them (default: nothing).
    """

    files: list[Path] = field(default_factory=list)
    shown: list[Table | str] = field(default_factory=list)
    page: Presentation = field(default_factory=Presentation)

    def add(self, other: Report) -> None:
        """Append another report."""
        self.files += other.files
        self.shown += other.shown
        self.page = self.page.merged(other.page)


@dataclass(frozen=True)
class Study:
    """Experiments, and the report on them.

    Attributes
    ----------
    replications, fewest
        How often each policy plays by default, and the smallest number that is allowed.
    experiments
        A function of the replications and the seed that returns what is played; names are unique
        within the study.
    report
        A function of the results, by name, and of a folder; it draws, decides and writes.
    plan
        A function of the seed that returns what is played if no number of replications is given
        (default: `experiments` with `replications`).
    name, title
        What `manyarms reproduce` calls it, and what it shows, in one line; `find` fills them in.
    """

    replications: int
    experiments: Callable[[int, int], Sequence[Experiment]]
    report: Callable[[Results, Path], Report]
    plan: Callable[[int], Sequence[Experiment]] | None = None
    fewest: int = 1
    name: str = ""
    title: str = ""


def reproduce(
    studies: Sequence[Study],
    out: str | os.PathLike[str],
    *,
    replications: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    engine: Engine = "threads",
    watch: Callable[[str, int], ProgressCallback] | None = None,
) -> Report:
    """Play what studies need, each experiment once, and let them report.

    The results of an experiment are in `out`/results, in a folder that is named after the
    experiment and its hash. So a study that was stopped can be resumed, and other replications or
    seeds do not disturb it. In the end one page, `report.html`, shows all that was played in this
    call.

    Parameters
    ----------
    studies, out
        What to reproduce, and the folder for it.
    replications
        How often each policy plays (default: the study's own number, or its own plan).
    seed, workers, engine
        As for `run`.
    watch
        A function of an experiment's name and of the number of pulls in all; it returns the
        callable that hears of the progress (default: as for `run`).

    Examples
    --------
    >>> import tempfile
    >>> from manyarms.studies import find
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = reproduce([find("fig1")], folder)
    ...     sorted(path.name for path in report.files)
    ['fig1.pdf', 'fig1.png', 'fig1.svg']
    """
    folder = Path(out)
    planned = _planned(studies, replications, seed)
    pulls = sum(experiment.pulls for experiment in planned.values())
    results = {
        name: run(
            experiment,
            folder / "results" / f"{name}-{experiment.hash[:8]}",
            workers=workers,
            engine=engine,
            progress=None if watch is None else watch(name, pulls),
        )
        for name, experiment in planned.items()
    }
    report = Report()
    for one in studies:
        found = one.report(results, folder)
        if not found.page.title:
            found.page = replace(found.page, title=one.title[:1].upper() + one.title[1:])
        report.add(found)
    if results:
        options = {"replications": replications, "seed": seed}
        _write_page(report, studies, results, folder, options)
    return report


def _planned(
    studies: Sequence[Study], replications: int | None, seed: int
) -> dict[str, Experiment]:
    """Return the experiments by name: those that studies share are played once."""
    planned: dict[str, Experiment] = {}
    for one in studies:
        count = one.replications if replications is None else replications
        check_int("replications", count, at_least=one.fewest)
        if replications is None and one.plan is not None:
            played = one.plan(seed)
        else:
            played = one.experiments(count, seed)
        planned |= {each.name: each for each in played}
    return planned


def _write_page(
    report: Report,
    studies: Sequence[Study],
    results: Results,
    folder: Path,
    options: Mapping[str, int | None],
) -> None:
    """Write the one page of all that was played, and what it is made from."""
    names = tuple(one.name for one in studies)
    targets = ["all"] if names == PAPER else list(filter(None, names))
    same = "".join(f" --{key} {value}" for key, value in options.items() if value is not None)
    runs = options["replications"] or max(one.replications for one in studies)
    repeat = [
        (title, "\n".join(f"manyarms reproduce {target}{words}" for target in targets))
        for title, words in (
            ("Play everything again", f"{same} --out again"),
            ("Four times the runs, half the doubt", f" --replications {4 * runs} --out more"),
        )
    ]
    page = report.page.merged(Presentation(repeat=repeat if targets else []))
    about = {"studies": names, "options": options}
    placed = {each.folder.relative_to(folder).as_posix(): each for each in results.values()}
    report.files.append(write_study(folder, placed, page, **about))
    try:
        report.files.append(write_page(folder, placed, page))
        report.shown.append(f"Look at {report.files[-1]}")
    except ResultsError as error:  # too much for one page: all else is as good as ever
        (folder / REPORT).unlink(missing_ok=True)  # it would show something else
        report.shown.append(f"No page was written: {error}")
