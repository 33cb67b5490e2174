"""Results in a folder: a Parquet file for each chunk, and `_provenance.json`.

The provenance has the hash and the seed of the sweep, what each cell is, engine, versions, machine
and times. Readers of Parquet skip names that begin with an underscore, so that
`pandas.read_parquet(folder)` reads a folder as one table.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.core.checks import check_choice, check_path, shown
from manyarms.core.optional import need_pyarrow
from manyarms.core.tabular import Tabular, TextTable
from manyarms.errors import ParameterError, ResultsError
from manyarms.simulation.chunk_files import MALFORMED, Stored, read_chunk
from manyarms.simulation.players import names_alone
from manyarms.simulation.results import Result, check_facts, result_of
from manyarms.simulation.summary import POLICY_COLUMNS, PolicySummary, Summary, digits_of
from manyarms.simulation.sweep import Objective, check_objective

FORMAT = "manyarms results 1"
PROVENANCE = "_provenance.json"


@dataclass(frozen=True, init=False)
class ResultsFolder(Tabular):
    """The results of a sweep in a folder.

    `ResultsFolder("out/mine")` reads it, as `read_results` does. `to_dataframe()` has a row for
    each policy in each cell: the parameters, and the numbers of `PolicySummary`.

    Attributes
    ----------
    folder, provenance
        Where it was read from, and what `_provenance.json` says.
    """

    folder: Path
    provenance: dict[str, Any] = field(repr=False)

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = check_path("folder", folder)
        object.__setattr__(self, "folder", path)
        object.__setattr__(self, "provenance", _read_provenance(path))

    @property
    def objective(self) -> Objective:
        """What the sweep is about: "earn", or "find"."""
        with _damage(self.folder / PROVENANCE):
            return check_objective(self.provenance["objective"])

    @functools.cached_property
    def cells(self) -> list[Result]:
        """What was measured in each cell, in the order of the sweep."""
        paths = sorted(self.folder.glob("*-*-*.parquet"))
        chunks = {
            prefix: list(own)
            for prefix, own in itertools.groupby(paths, lambda path: path.name.rpartition("-")[0])
        }
        with _damage(self.folder / PROVENANCE):
            facts = list(self.provenance["cells"])
            return [self._result(number, about, chunks) for number, about in enumerate(facts)]

    def _result(self, number: int, about: Any, chunks: Mapping[str, list[Path]]) -> Result:
        check_facts(about)
        rows = []
        for k, (label, player) in enumerate(about["policies"].items()):
            own = [self._chunk(path) for path in chunks.get(f"{number:06d}-{k:04d}", ())]
            times = own[0].times if own else np.empty(0, np.int64)
            found = sum(len(each.rows) for each in own)
            if found != player["replications"]:
                raise ResultsError(
                    f"'{self.folder}' must have {player['replications']} replications of {label} "
                    f"in cell {number}, got {found}. Run it again, or get another copy."
                )
            if not (times[0] >= 1 and (np.diff(times) > 0).all() and times[-1] == about["horizon"]):
                raise ValueError("its checkpoints do not grow up to the horizon")
            rows.append(np.concatenate([each.rows for each in own]))
        return result_of(
            about,
            seed=self.provenance["seed"],
            objective=self.objective,
            times=times,
            rows=tuple(rows),
            aliases=names_alone(about["policies"]),
        )

    def _chunk(self, path: Path) -> Stored:
        with _damage(path):
            stored = read_chunk(path)
        if stored.sweep != self.provenance["hash"]:
            raise ResultsError(f"'{path}' belongs to another sweep. Delete it, and run again.")
        return stored

    def summaries(self, objective: Objective | None = None) -> list[Summary]:
        """Return the summary of each cell at the end, with the paired differences.

        Parameters
        ----------
        objective
            "earn", or "find" for simple regret (default: what the sweep is about).
        """
        return [each.summary(objective=objective or self.objective) for each in self.cells]

    def _rows(
        self, objective: Objective | None = None
    ) -> Iterator[tuple[dict[str, Any], PolicySummary]]:
        """Yield the parameters of each policy in each cell, and its summary."""
        for each, summary in zip(self.cells, self.summaries(objective), strict=True):
            for own, row in zip(each.policy_parameters, summary.policies, strict=True):
                # a parameter of cells and of policies is told apart, as in the files
                named = {f"policy_{k}" if k in each.parameters else k: v for k, v in own.items()}
                yield {**each.parameters, **named, "policy": row.policy}, row

    def _columns(self) -> dict[str, list[Any]]:
        every = list(self._rows())
        parameters = [name for keys, _ in every for name in keys if name != "policy"]
        own = PolicySummary._fields[:-2]  # there are no intervals
        rows = [{**keys, **row._asdict()} for keys, row in every]
        return {name: [r.get(name) for r in rows] for name in dict.fromkeys([*parameters, *own])}

    def table(
        self,
        *,
        rows: str,
        columns: str = "policy",
        show: str = "mean",
        objective: Objective | None = None,
    ) -> TextTable:
        """Return one number of each policy in each cell, as a table with two keys.

        Parameters
        ----------
        rows, columns
            What distinguishes the rows, and the columns (default: "policy"): a parameter of cells
            or policies, or "policy".
        show
            What the table shows: "mean" (± its standard error; default) or another column of
            `Summary.table`.
        objective
            "earn", or "find" for simple regret (default: what the sweep is about).

        Examples
        --------
        >>> import tempfile
        >>> import manyarms as ma
        >>> from manyarms.simulation import Sweep, cell, run
        >>> cells = [
        ...     cell(
        ...         [ma.MOSS(), ma.MOSSPlusPlus()],
        ...         ma.instances.planted(n=100, m=m),
        ...         horizon=50,
        ...         replications=3,
        ...         parameters={"m": m},
        ...     )
        ...     for m in (5, 10)
        ... ]
        >>> results = run(Sweep("small", tuple(cells)), tempfile.mkdtemp())
        >>> table = results.table(rows="m", columns="policy")
        >>> table.head, [row[0] for row in table.rows]
        (['m', 'moss', 'moss++'], ['5', '10'])
        """
        objective = check_objective(objective or self.objective)
        numbers = tuple(name for name in POLICY_COLUMNS if name != "interval")
        check_choice("show", show, choices=numbers)
        head, text = POLICY_COLUMNS[show]
        found: dict[tuple[Any, Any], str] = {}
        every = list(self._rows(objective))
        known = tuple(dict.fromkeys(name for keys, _ in every for name in keys))
        check_choice("rows", rows, choices=known)
        check_choice("columns", columns, choices=known)
        for keys, row in every:
            place = keys.get(rows), keys.get(columns)
            if place in found:
                raise ParameterError(
                    f"`rows` and `columns` must tell all results apart, got several for "
                    f"{rows}={place[0]} and {columns}={place[1]}. `to_dataframe()` has all of "
                    f"them, with {', '.join(known)}."
                )
            found[place] = text(row, digits_of(objective))
        down, across = (list(dict.fromkeys(each)) for each in zip(*found, strict=True))
        cells = [[str(key), *(found.get((key, one), "") for one in across)] for key in down]
        title = f"{'simple ' * (objective == 'find')}regret: {head}"
        return TextTable([rows, *map(str, across)], cells, title)


def read_results(folder: str | os.PathLike[str]) -> ResultsFolder:
    """Read a folder that `run` wrote; needs pyarrow, and no numba.

    Parameters
    ----------
    folder
        The folder that was given to `run`. Its run must be finished: the same call resumes one
        that was stopped.

    Examples
    --------
    >>> read_results("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must hold results of manyarms, got 'no such folder'...
    """
    return ResultsFolder(folder)


def _read_provenance(path: Path) -> dict[str, Any]:
    """Read the provenance of a finished run."""
    need_pyarrow()
    try:
        found: dict[str, Any] = json.loads((path / PROVENANCE).read_text(encoding="utf-8"))
        status = (str(found["hash"]), found["status"])[1]
        if found["format"] != FORMAT:
            raise ValueError(f"{PROVENANCE} is of another format: {shown(found['format'])}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if not path.is_dir():
            reason = "there is no such folder"
        elif not (path / PROVENANCE).exists():
            reason = f"it has no {PROVENANCE}, which `run` writes first"
        else:
            reason = f"{PROVENANCE} cannot be used ({getattr(error, 'strerror', None) or error})"
        raise ResultsError(
            f"`folder` must hold results of manyarms, got '{path}': {reason}. Name the folder that "
            f"was given to `run`."
        ) from error
    if status != "finished":
        raise ResultsError(
            f"`folder` must hold a finished run, but the one in '{path}' is not finished. Run the "
            f"same sweep with the same folder again to resume it."
        )
    return found


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn any error that a damaged file causes into a `ResultsError` of one sentence."""
    try:
        yield
    except ResultsError:
        raise
    except MALFORMED as error:
        words = getattr(error, "strerror", None) or str(error) or repr(error)
        raise ResultsError(
            f"'{path}' is missing, cut short or damaged: {words.splitlines()[0].rstrip('.')}. Run "
            f"it again, or get another copy."
        ) from error
