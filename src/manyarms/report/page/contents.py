"""What a page shows, as plain data: one way for a run, and for a study with several experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from manyarms.protocol.policy import MOST_ARMS
from manyarms.report.page.figures import looks, over_time, parameters_text, summary, swept
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.style import policy_title, thousands
from manyarms.report.text import count_of
from manyarms.simulation.results import Result
from manyarms.simulation.tables import ResultsFolder

_AGAINST = "Final regret, problem by problem", "What each policy had lost at the end of the run."
_FOUND = (
    "Simple regret, problem by problem",
    "The best mean minus the mean of the arm that a policy recommends in the end.",
)
_OVER_TIME = "Regret over time", "What was lost so far, against always pulling a best arm."
_NAMED = 8  # policies, before the rest is only counted


def contents(
    folders: Mapping[str, ResultsFolder], shown: Presentation, most_times: int
) -> dict[str, Any]:
    """Return the data of a page; its lines have at most this many checkpoints.

    Folders are by their path from the page, which is empty for one that the page lies in.
    """
    cells = {
        str(each.provenance["name"]): [cell.by(each.objective) for cell in each.cells]
        for each in folders.values()
    }
    lines = [section.line for section in shown.sections.values() if section.line]
    page, order = _Page(cells, lines, most_times), list(shown.sections)
    for name in sorted(cells, key=lambda n: order.index(n) if n in order else len(order)):
        page.add(name, shown.sections.get(name))
    for curves in shown.curves:
        page.figures.append(curves["figure"] | {"choices": page.hide([curves["setting"]])})
        page.looks |= curves["looks"]
    return {
        "title": shown.title,
        "lead": (" ".join(shown.lead) or _lead(folders.values())) + _stand_in(folders.values()),
        "facts": [*shown.facts, *_facts(list(folders.values()))],
        "policies": page.looks,
        "settings": page.settings,
        "figures": page.figures,
        "claims": shown.claims,
        "repeat": [*shown.repeat, ("Look at the numbers", _pandas(*next(iter(folders.items()))))],
        "sums": [
            (f"{place}/{name}".lstrip("/"), checksum)
            for place, folder in folders.items()
            for name, checksum in sorted(folder.provenance["sha256"].items())
        ],
    }


def of_a_run(results: ResultsFolder) -> Presentation:
    """Return what there is to say of a single run: its name."""
    return Presentation(str(results.provenance["name"]))


class _Page:
    """Settings and figures, as they are put together."""

    def __init__(
        self, cells: dict[str, list[Result]], lines: Iterable[str], most_times: int
    ) -> None:
        self.cells = cells
        self.settings: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        # in the order in which they were played, whatever the order of the page
        played = [label for one in cells.values() for each in one for label in each.policies]
        self.looks = looks([*played, *lines])
        self._most_times = most_times

    def add(self, name: str, section: Section | None) -> None:
        """Show an experiment: its settings, and its figures."""
        section = section or Section(group=name if len(self.cells) > 1 else "")
        first = len(self.settings)
        results = [self._with_lines_beside(each, section.beside) for each in self.cells[name]]
        for each in results:
            parts = [part for part in (section.group, parameters_text(each.parameters)) if part]
            self.settings.append(
                {
                    "name": ", ".join(parts),
                    "group": section.group,
                    "instance": each.instance,
                    "specifications": each.specifications,
                    **summary(each, self._most_times),
                }
            )
        against = _FOUND if any(each.objective == "find" for each in results) else _AGAINST
        axes = dict.fromkeys(name for each in results for name in each.parameters)
        figures = [
            (self._against(results, section), against),
            (swept(results, first, axes), against),
            (over_time(results, first), _OVER_TIME),
        ]
        own = section.title, section.text
        for figure, usual in figures:
            if figure:
                title, text = (said or other for said, other in zip(own, usual, strict=True))
                title = f"{section.group}. {title}" if section.group else title
                self.figures.append(figure | {"title": title, "text": text})
                own = "", ""

    def hide(self, settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add settings that only a figure shows; return the figure's choices, one for each."""
        first = len(self.settings)
        self.settings += [{"hidden": True, **setting} for setting in settings]
        return [{"label": "", "settings": [k]} for k in range(first, len(self.settings))]

    def _with_lines_beside(self, result: Result, beside: Mapping[str, Sequence[str]]) -> Result:
        for name, policies in beside.items():
            for other in self.cells.get(name, ()):
                same = other.parameters == result.parameters
                if same and other.replications == result.replications:
                    result = replace(
                        result,
                        policies=(*result.policies, *policies),
                        rows=(*result.rows, *map(other.rows_of, policies)),
                    )
        return result

    def _against(self, results: Sequence[Result], section: Section) -> dict[str, Any] | None:
        """Draw against a parameter of policies: each of its values is a setting of one policy."""
        axis, line = section.against, section.line
        split = [
            replace(
                each,
                parameters={**each.parameters, axis: own[axis]},
                policies=(line,),
                rows=(rows,),
            )
            for each in results
            for rows, own in zip(each.rows, each.policy_parameters, strict=False)
            if own.get(axis) is not None
        ]
        figure = swept(split, len(self.settings), [axis])
        if figure:
            self.hide(summary(each, 1) for each in split)
            figure |= {"log": section.logarithmic}
        return figure


def _lead(folders: Iterable[ResultsFolder]) -> str:
    cells = [each for folder in folders for each in folder.cells]
    policies = {policy for each in cells for policy in each.policies}
    runs = {len(rows) for each in cells for rows in each.rows}
    pulls = sum(each.horizon * len(rows) for each in cells for rows in each.rows)
    return (
        f"{count_of(len(policies), 'policy', 'policies')} on {count_of(len(cells), 'problem')}, "
        f"{_spread(runs)} {'run' if runs == {1} else 'runs'} of each: {count_of(pulls, 'pull')} "
        f"in all. Every policy met the same luck."
    )


def _stand_in(folders: Iterable[ResultsFolder]) -> str:
    """Say that data are made up, if some are."""
    several = {each.instance for folder in folders for each in folder.cells if each.is_stand_in}
    if not several:
        return ""
    played = "A stand-in was played" if len(several) == 1 else "Stand-ins were played"
    return f" {played} in place of real data; made-up data decide nothing."


def _facts(folders: Sequence[ResultsFolder]) -> list[tuple[str, str]]:
    cells = [each for folder in folders for each in folder.cells]
    best = [each.n_best for each in cells if each.n_best is not None]
    arms = ["infinitely many" if each.n_arms == MOST_ARMS else each.n_arms for each in cells]
    stand_ins = [each.instance for each in cells if each.is_stand_in]
    last = folders[-1].provenance
    return [
        ("Arms", _spread(arms)),
        *([("Best arms", _spread(best, falls=best == sorted(best, reverse=True)))] if best else []),
        *([("Stand-in, not real data", _spread(stand_ins))] if stand_ins else []),
        ("Policies", _titles(label for each in cells for label in each.policies)),
        ("Pulls of a run", _spread(each.horizon for each in cells)),
        ("Runs of each policy", _spread(len(rows) for each in cells for rows in each.rows)),
        ("Seed", _spread({str(folder.provenance["seed"]) for folder in folders})),
        ("Computed by", _versions(last)),
    ]


def _pandas(place: str, folder: ResultsFolder) -> str:
    """Return how to read the first of the tables."""
    path = "/".join(filter(None, ("again", place, "runs.parquet")))
    columns = json.dumps([*folder.cells[0].parameters, "policy"])
    return (
        f'import pandas as pd\n\nruns = pd.read_parquet("{path}")\n'
        f'print(runs.groupby({columns})["regret"].describe())'
    )


def _titles(policies: Iterable[str]) -> str:
    """Name policies, each once, and count those that are too many to name.

    >>> _titles(["moss", "moss++", "moss"]), _titles(map(str, range(10)))
    ('MOSS, MOSS++', '0, 1, 2, 3, 4, 5, 6, 7 and 2 more')
    """
    named = [policy_title(label) for label in dict.fromkeys(policies)]
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _versions(provenance: Mapping[str, Any]) -> str:
    """Say what software computed it; the machine does not matter, and is left out."""
    found = provenance.get("versions", {})
    ordered = sorted(found, key=lambda name: (name != "manyarms", name))
    return ", ".join(f"{name} {found[name]}" for name in ordered if found[name])


def _spread(values: Iterable[Any], *, falls: bool = False) -> str:
    """Say which values there are: each once, or the ends of many; the largest first if it `falls`.

    >>> _spread([20, 10, 20]), _spread([4, 1380]), _spread(range(9)), _spread(["a"])
    ('10, 20', '4; 1,380', '0 to 8', 'a')
    """
    different = sorted(set(values), key=lambda v: (isinstance(v, str), v), reverse=falls)
    words = [thousands(v) if isinstance(v, int | float) else str(v) for v in different]
    between = "; " if any("," in word for word in words) else ", "
    return between.join(words) if len(words) <= 4 else f"{words[0]} to {words[-1]}"
