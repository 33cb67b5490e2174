"""Results in a folder: a Parquet file for each chunk, and `_provenance.json`.

The provenance has the hash and the seed of the sweep, facts about each cell, the engine, versions,
the machine and times. Parquet readers skip names that begin with an underscore, so
`pandas.read_parquet(folder)` reads a folder as one table.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.core.checks import check_path, shown
from manyarms.core.optional import need_pyarrow
from manyarms.errors import ResultsError
from manyarms.simulation.chunk_files import MALFORMED, Stored, read_chunk
from manyarms.simulation.results import Result, check_facts, result_of
from manyarms.simulation.sweep import Objective, check_objective
from manyarms.simulation.sweep_results import SweepResults

FORMAT = "manyarms results 1"
PROVENANCE = "_provenance.json"


class ResultsFolder(SweepResults):
    """The results of a sweep in a folder, which `run` returns and `read_results` reads.

    Attributes
    ----------
    folder, provenance
        The folder, and the contents of `_provenance.json`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = check_path("folder", folder)
        self.provenance = _read_provenance(self.folder)

    def __repr__(self) -> str:
        return f"ResultsFolder({str(self.folder)!r})"

    @property
    def objective(self) -> Objective:
        with _damage(self.folder / PROVENANCE):
            return check_objective(self.provenance["objective"])

    @functools.cached_property
    def cells(self) -> Sequence[Result]:  # read on first access
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
                    f"in cell {number}, got {found}. Run the sweep again, or get another copy."
                )
            if not (times[0] >= 1 and (np.diff(times) > 0).all() and times[-1] == about["horizon"]):
                raise ValueError("its checkpoints do not increase up to the horizon")
            rows.append(np.concatenate([each.rows for each in own]))
        return result_of(
            about,
            seed=self.provenance["seed"],
            objective=self.objective,
            times=times,
            rows=tuple(rows),
        )

    def _chunk(self, path: Path) -> Stored:
        with _damage(path):
            stored = read_chunk(path)
        if stored.sweep != self.provenance["hash"]:
            raise ResultsError(
                f"'{path}' belongs to another sweep. Delete it, and run the sweep again."
            )
        return stored


def read_results(folder: str | os.PathLike[str]) -> ResultsFolder:
    """Read the results that `run` wrote to a folder. This needs pyarrow, but not numba.

    Parameters
    ----------
    folder
        The folder that was given to `run`. The run must be finished; the same call of `run` resumes
        one that was stopped.

    Examples
    --------
    >>> read_results("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must contain results of manyarms, got 'no such folder'...
    """
    return ResultsFolder(folder)


def _read_provenance(path: Path) -> dict[str, Any]:
    """Read the provenance of a finished run."""
    need_pyarrow()
    try:
        found: dict[str, Any] = json.loads((path / PROVENANCE).read_text(encoding="utf-8"))
        status = (str(found["hash"]), found["status"])[1]
        if found["format"] != FORMAT:
            raise ValueError(f"{PROVENANCE} has another format: {shown(found['format'])}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if not path.is_dir():
            reason = "there is no such folder"
        elif not (path / PROVENANCE).exists():
            reason = f"it has no {PROVENANCE}, which `run` writes first"
        else:
            reason = f"{PROVENANCE} cannot be used ({getattr(error, 'strerror', None) or error})"
        raise ResultsError(
            f"`folder` must contain results of manyarms, got '{path}': {reason}. Pass the folder "
            f"that was given to `run`."
        ) from error
    if status != "finished":
        raise ResultsError(
            f"`folder` must contain a finished run, but the one in '{path}' is not finished. Run "
            f"the same sweep with the same folder again to resume it."
        )
    return found


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn any error that a damaged file causes into a `ResultsError`."""
    try:
        yield
    except ResultsError:
        raise
    except MALFORMED as error:
        words = getattr(error, "strerror", None) or str(error) or repr(error)
        raise ResultsError(
            f"'{path}' is missing, cut short or damaged: {words.splitlines()[0].rstrip('.')}. Run "
            f"the sweep again, or get another copy."
        ) from error
