"""Results on disk: tidy Parquet tables, with their provenance beside them.

A folder of results holds

* `regret.parquet`: the parameters, policy, replication, time, regret;
* `runs.parquet`: the parameters, policy, replication, regret (at the end), best_pulls,
  distinct_arms, recommended, recommended_mean (the true mean of the recommended arm);
* `provenance.json`: hash and seed of the experiment, what each cell is, engine, versions, machine,
  times.

The parameters are those in which cells and policies differ. The tables are the same bytes whenever
the same versions write them on processors of one kind.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_path, shown
from manyarms.core.files import open_part, replacing
from manyarms.core.optional import need_pyarrow
from manyarms.errors import ResultsError
from manyarms.simulation.chunks import ChunkStore, plan
from manyarms.simulation.experiment import Experiment, Objective, check_objective
from manyarms.simulation.players import names_alone
from manyarms.simulation.results import Result, check_facts, result_of, summaries, tidy_columns
from manyarms.simulation.summary import Summary
from manyarms.simulation.workbench import row_type

FORMAT = "manyarms results 1"
REGRET, RUNS = "regret.parquet", "runs.parquet"
PROVENANCE = "provenance.json"

_HASH = "manyarms_hash"
_COUNTS = ("best_pulls", "distinct_arms", "recommended")
_KEPT = "recommended_mean"
# what reading raises where a file is not what it should be
_MALFORMED = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, MemoryError),
)
_OTHER_CELLS = "it has other cells than the tables"
_MOST_SHOWN = 6  # cells, in a notebook
_LARGEST = 1e100  # of a regret or a mean, so that sums of squares are finite
_GROUP = 1 << 18  # rows written, and read, as one


class TidyWriter:
    """Writes a tidy table; the bytes do not depend on how the rows are handed over.

    `columns` are names with "int64", "double" or "string"; `experiment` is its hash.
    """

    def __init__(
        self, file: Path | BinaryIO, columns: Mapping[str, str], *, experiment: str
    ) -> None:
        arrow = self._arrow = need_pyarrow()
        kinds = {"int64": arrow.int64(), "double": arrow.float64(), "string": arrow.string()}
        self._schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._buffer: list[Any] = []
        self._rows = 0  # in the buffer
        self._writer = arrow.parquet.ParquetWriter(
            file,
            self._schema,
            version="2.6",  # all is said, so that a later version's defaults change nothing
            data_page_version="1.0",
            compression="snappy",
            use_dictionary=[name for name in columns if name != "regret"],
            write_page_checksum=True,
            store_schema=False,
        )
        self._writer.add_key_value_metadata({_HASH: experiment})

    def write(self, rows: int, values: Mapping[str, Any]) -> None:
        """Add rows; a value that is no array stands in all of them, None for a missing one."""
        arrow = self._arrow
        columns = [
            arrow.array(value, column.type)
            if isinstance(value := values[column.name], np.ndarray)
            else arrow.repeat(arrow.scalar(value, column.type), rows)
            for column in self._schema
        ]
        self._buffer.append(arrow.table(columns, schema=self._schema))
        self._rows += rows
        if self._rows >= _GROUP:
            self._flush(at_least=_GROUP)

    def _flush(self, *, at_least: int) -> None:
        """Write groups of rows while there are enough of them."""
        buffered = self._arrow.concat_tables(self._buffer)
        while buffered.num_rows >= at_least:
            self._writer.write_table(buffered.slice(0, _GROUP).combine_chunks())
            buffered = buffered.slice(_GROUP)
        self._buffer, self._rows = [buffered], buffered.num_rows

    def close(self) -> None:
        """Write the rest, and end the file."""
        if self._rows > 0:
            self._flush(at_least=1)
        self._writer.close()


def assemble(experiment: Experiment, folder: Path, store: ChunkStore) -> float:
    """Turn the chunks of a finished run into its tables; return the time that they took."""
    keys = experiment.columns | {"policy": "string", "replication": "int64"}
    own = {
        REGRET: {"time": "int64", "regret": "double"},
        RUNS: {"regret": "double"} | dict.fromkeys(_COUNTS, "int64") | {_KEPT: "double"},
    }
    seconds = 0.0
    with contextlib.ExitStack() as stack:
        writers = []
        for name, columns in own.items():
            part = stack.enter_context(replacing(folder / name))
            file = stack.enter_context(open_part(part))
            writer = TidyWriter(file, keys | columns, experiment=experiment.hash)
            writers.append(stack.enter_context(contextlib.closing(writer)))
        for chunk in plan(experiment):
            stored = store.load(chunk)
            if stored is None:
                raise OSError(f"{chunk.file_name} was changed")
            row = experiment.row(chunk.cell, chunk.player) | {"policy": chunk.player.label}
            times, first = np.array(chunk.cell.times), chunk.cell.first_replication + chunk.first
            for writer, over_time in zip(writers, (True, False), strict=True):
                tidy = tidy_columns(stored.rows, times, first, over_time=over_time)
                writer.write(len(tidy["regret"]), row | tidy)
            seconds += stored.seconds
    return seconds


@dataclass(frozen=True, init=False)
class ResultsFolder:
    """What a folder of results holds. `ResultsFolder("out/mine")` reads it, as `read_results` does.

    Attributes
    ----------
    folder, provenance
        Where it was read from, and what `provenance.json` says.
    """

    folder: Path
    provenance: dict[str, Any] = field(repr=False)

    def __init__(
        self, folder: str | os.PathLike[str], provenance: dict[str, Any] | None = None
    ) -> None:
        path = check_path("folder", folder)
        object.__setattr__(self, "folder", path)
        object.__setattr__(self, "provenance", provenance or _read(path))

    @functools.cached_property
    def regret(self) -> Any:
        """The pyarrow table of regrets by time."""
        return self._table(REGRET)

    @functools.cached_property
    def runs(self) -> Any:
        """The pyarrow table with a row for each run."""
        return self._table(RUNS)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The columns of parameters, in both tables."""
        names = self.runs.column_names
        with damage(self.folder / RUNS):
            return tuple(names[: names.index("policy")])

    @property
    def objective(self) -> Objective:
        """What the experiment is about: "earn", or "find"."""
        with damage(self.folder / PROVENANCE):
            return check_objective(self.provenance["objective"])

    def summary_rows(self, objective: Objective = "earn") -> list[dict[str, Any]]:
        """Summarise the final regret of each policy in each cell, or its simple regret.

        Parameters
        ----------
        objective
            "earn", or "find" for simple regret (default: "earn").

        Returns
        -------
        list of dict
            In the order of the tables: the parameters, policy, mean, se (of the mean, NaN for one
            replication), low and high (of a 95 % interval for the mean, which allows for costly
            runs that were not seen), median, q05, q95, q99, worst, miss_rate (the share of
            replications that never pulled a best arm, or whose recommended arm is none),
            mostly_missed (the share that gave best arms less than a tenth of the pulls) and
            replications.
        """
        check_objective(objective)
        with damage(self.folder / PROVENANCE):
            players = self._groups(self.runs)
            found = (summaries(each.by(objective)) for each in self._results(over_time=False))
            rows = itertools.chain.from_iterable(found)
            return [
                self._values(self.parameters, runs) | row._asdict()
                for runs, row in zip(players, rows, strict=True)
            ]

    def summaries(self, objective: Objective | None = None) -> list[Summary]:
        """Return the summary of each cell at the end, with the paired differences.

        Parameters
        ----------
        objective
            "earn", or "find" for simple regret (default: what the experiment is about).
        """
        objective = check_objective(objective or self.objective)
        with damage(self.folder / PROVENANCE):
            found = list(self._results(over_time=False))
            return [each.by(objective).summary() for each in found]

    def _repr_html_(self) -> str:
        shown = self.summaries()
        rest = len(shown) - _MOST_SHOWN
        parts = [each._repr_html_() for each in shown[:_MOST_SHOWN]]
        if rest > 0:
            parts.append(f"<div>and {rest} further cells: `cells` has all of them</div>")
        return f"<div>{''.join(parts)}</div>"

    @functools.cached_property
    def cells(self) -> list[Result]:
        """What was measured in each cell, in the order of the experiment."""
        with damage(self.folder / PROVENANCE):
            return list(self._results(over_time=True))

    def _results(self, *, over_time: bool) -> Iterator[Result]:
        """Yield the result of each cell: regret over time, or at the end alone."""
        table = self.regret if over_time else self.runs
        regret = table.column("regret").to_numpy()
        time = table.column("time").to_numpy() if over_time else None
        runs = {name: self.runs.column(name).to_numpy() for name in (*_COUNTS, _KEPT)}
        players = zip(self._groups(self.runs), self._groups(table), strict=True)
        for about in self.provenance["cells"]:
            check_facts(about)
            own = list(itertools.islice(players, len(about["policies"])))
            if len(own) != len(about["policies"]) or not own:
                raise ValueError(_OTHER_CELLS)
            rows = tuple(_records(runs, final, regret[curve]) for final, curve in own)
            named = [key for key in self.parameters if key not in about["parameters"]]
            times = np.array([about["horizon"]])
            if time is not None:
                times = time[own[0][1]][: rows[0]["regret"].shape[1]]
            if not (times[0] >= 1 and (np.diff(times) > 0).all() and times[-1] <= about["horizon"]):
                raise ValueError("its times do not grow up to the horizon")
            yield result_of(
                about,
                seed=self.provenance["seed"],
                times=times,
                rows=rows,
                policy_parameters=tuple(self._values(named, final) for final, _ in own),
                aliases=names_alone(about["policies"]),
            )
        if next(players, None) is not None:
            raise ValueError(_OTHER_CELLS)

    def _values(self, columns: Iterable[str], rows: slice) -> dict[str, Any]:
        """Return a player's values in columns of the runs."""
        return {name: self.runs.column(name)[rows.start].as_py() for name in columns}

    def _groups(self, table: Any) -> list[slice]:
        """Return the rows of each player in each cell."""
        codes = np.array([_codes(table.column(key)) for key in (*self.parameters, "policy")])
        changes = np.flatnonzero((np.diff(codes, axis=1) != 0).any(axis=0)) + 1
        bounds = [0, *(int(change) for change in changes), table.num_rows]
        return [slice(first, end) for first, end in itertools.pairwise(bounds)]

    def _table(self, name: str) -> Any:
        with _opened(self.folder / name) as file:
            _check_sum(self.provenance, name, hashlib.file_digest(file, "sha256").hexdigest())
            file.seek(0)
            # no threads of its own: one that is still at work when Python ends aborts the process
            read = need_pyarrow().parquet.read_table
            table = read(file, use_threads=False, pre_buffer=False)
            _check_columns(table, name)
            return table


def _check_columns(table: Any, name: str) -> None:
    """Refuse a table whose columns are not those that `assemble` writes."""
    own = dict.fromkeys(("replication", *(("time",) if name == REGRET else _COUNTS)), "int64")
    own |= {"policy": "string", "regret": "double"}
    if len(set(table.column_names)) < len(table.column_names):
        raise ValueError("it has two columns of one name")
    for column in table.schema:
        kinds = (own[column.name],) if column.name in own else ("int64", "double", "string")
        if str(column.type) not in kinds:
            raise ValueError(f"its column {shown(column.name)} has the type {column.type}")
    for column in own:
        if table.column(column).null_count:
            raise ValueError(f"values are missing in its column {shown(column)}")
    regret = table.column("regret").to_numpy()
    if not (np.abs(regret) < _LARGEST).all():
        raise ValueError("it has regrets that are no finite numbers")


def _records(runs: Mapping[str, NDArray[Any]], own: slice, regret: NDArray[Any]) -> NDArray[Any]:
    """Return a player's rows of the tables as the records of a result."""
    curves = regret.reshape(own.stop - own.start, -1)
    found = np.zeros(len(curves), row_type(curves.shape[1]))
    found["regret"] = curves
    for name, column in runs.items():
        found[name] = column[own]
    return found


def _codes(column: Any) -> NDArray[np.int64]:
    """Return numbers that differ where the values do."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)


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


def _read(path: Path) -> dict[str, Any]:
    """Read the provenance of a folder, and check that its tables are there."""
    arrow = need_pyarrow()
    try:
        provenance: dict[str, Any] = json.loads((path / PROVENANCE).read_text(encoding="utf-8"))
        wanted, status = str(provenance["hash"]), provenance["status"]
        if provenance["format"] != FORMAT:
            raise ValueError(f"{PROVENANCE} is of another format: {shown(provenance['format'])}")
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
            f"same experiment with the same folder again to resume it."
        )
    for name in (REGRET, RUNS):
        with _opened(path / name) as file:
            stored = arrow.parquet.read_metadata(file).metadata or {}
        if stored.get(_HASH.encode()) != wanted.encode():
            raise ResultsError(f"'{path / name}' belongs to another experiment.")
    return provenance


def sha256_of(path: Path) -> str:
    """Return a file's checksum."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_sum(provenance: Mapping[str, Any], name: str, found: str) -> None:
    if provenance["sha256"].get(name) != found:
        raise ValueError("it has another checksum than when it was written")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Open a file; pyarrow itself refuses names that are not UTF-8."""
    with damage(path), path.open("rb") as file:
        yield file


@contextlib.contextmanager
def damage(path: Path, fix: str = "Run it again, or get another copy.") -> Iterator[None]:
    """Turn any error that a damaged file causes into a `ResultsError` of one sentence."""
    try:
        yield
    except ResultsError:
        raise
    except _MALFORMED as error:
        reason = getattr(error, "strerror", None) or (str(error) or repr(error)).splitlines()[
            0
        ].rstrip(".")
        raise ResultsError(f"'{path}' is missing, cut short or damaged: {reason}. {fix}") from error
