"""Results on disk: tidy Parquet tables, with the spec and its provenance beside them.

A folder of results holds

* `regret.parquet`: the swept parameters, policy, replication, time, regret;
* `runs.parquet`: the swept parameters, policy, replication, regret (at the end), best_pulls,
  distinct_arms, recommended;
* `spec.toml`: the experiment, in canonical form;
* `provenance.json`: its hash and seed, versions, machine, times.

All columns are plain. The first three are the same bytes whenever the same versions write them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import MissingExtraError, ResultsError

__all__ = ["Results", "ResultsError", "TidyWriter", "read_results"]

FORMAT = "manyarms results 1"
REGRET, RUNS = "regret.parquet", "runs.parquet"
SPEC, PROVENANCE = "spec.toml", "provenance.json"

_HASH = "manyarms_spec_hash"
_GROUP = 1 << 18  # rows written, and read, as one


def need_pyarrow() -> Any:
    """Return pyarrow with its Parquet part, or say how to install it."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "to write and read tables") from error


class TidyWriter:
    """Writes a tidy table; the bytes do not depend on how the rows are handed over.

    Parameters
    ----------
    path, columns, spec_hash
        Where to write; name to "int64", "double" or "string"; whose table it is.
    """

    def __init__(self, path: Path, columns: Mapping[str, str], *, spec_hash: str) -> None:
        arrow = self._arrow = need_pyarrow()
        kinds = {"int64": arrow.int64(), "double": arrow.float64(), "string": arrow.string()}
        self._schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._waiting: list[Any] = []
        self._rows = 0  # that wait
        self._writer = arrow.parquet.ParquetWriter(
            path,
            self._schema,
            version="2.6",  # all is said, so that a later version's defaults change nothing
            data_page_version="1.0",
            compression="snappy",
            use_dictionary=[name for name in columns if name != "regret"],
            write_page_checksum=True,
            store_schema=False,
        )
        self._writer.add_key_value_metadata({_HASH: spec_hash})

    def write(self, rows: int, values: Mapping[str, Any]) -> None:
        """Add rows; a value that is no array stands in all of them, None for a missing one."""
        arrow = self._arrow
        columns = [
            arrow.array(value, column.type)
            if isinstance(value := values[column.name], np.ndarray)
            else arrow.repeat(arrow.scalar(value, column.type), rows)
            for column in self._schema
        ]
        self._waiting.append(arrow.table(columns, schema=self._schema))
        self._rows += rows
        if self._rows >= _GROUP:
            self._flush(at_least=_GROUP)

    def _flush(self, *, at_least: int) -> None:
        """Write groups of rows while there are enough of them."""
        waiting = self._arrow.concat_tables(self._waiting)
        while waiting.num_rows >= at_least:
            self._writer.write_table(waiting.slice(0, _GROUP).combine_chunks())
            waiting = waiting.slice(_GROUP)
        self._waiting, self._rows = [waiting], waiting.num_rows

    def close(self) -> None:
        """Write what waits, and end the file."""
        if self._rows > 0:
            self._flush(at_least=1)
        self._writer.close()


@dataclass(frozen=True)
class Results:
    """What a folder of results holds. Made by `read_results`.

    Attributes
    ----------
    folder, provenance, spec
        Where it was read from, what `provenance.json` says, and the experiment as TOML.
    """

    folder: Path
    provenance: dict[str, Any] = field(repr=False)
    spec: str = field(repr=False)

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
        """The columns of swept parameters, in both tables."""
        names = self.runs.column_names
        return tuple(names[: names.index("policy")])

    def arrays(self, table: str = "runs") -> dict[str, NDArray[Any]]:
        """Return the columns of "runs" or "regret" as NumPy arrays; missing values are NaN."""
        found = self.regret if table == "regret" else self.runs
        return {name: found.column(name).to_numpy() for name in found.column_names}

    def summary_rows(self) -> list[dict[str, Any]]:
        """Summarise the final regret of each policy in each cell.

        Returns
        -------
        list of dict
            In the order of the tables: the swept parameters, policy, mean, se (of the mean, NaN
            for one replication), median, q05, q95, miss_rate (the share of replications that
            never pulled a best arm) and replications.
        """
        runs = self.runs
        keys = [*self.parameters, "policy"]
        codes = np.array([_codes(runs.column(key)) for key in keys])
        changes = np.flatnonzero((np.diff(codes, axis=1) != 0).any(axis=0)) + 1
        regret = runs.column("regret").to_numpy()
        missed = runs.column("best_pulls").to_numpy() == 0
        bounds = [0, *(int(change) for change in changes), len(regret)]
        return [
            {key: runs.column(key)[first].as_py() for key in keys}
            | _summary(regret[first:end], missed[first:end])
            for first, end in itertools.pairwise(bounds)
        ]

    def _table(self, name: str) -> Any:
        path = self.folder / name
        with _damage(path):
            if self.provenance["sha256"].get(name) != sha256_of(path):
                raise ValueError("it has another checksum than when it was written")
            return need_pyarrow().parquet.read_table(path)


def _codes(column: Any) -> NDArray[np.int64]:
    """Return numbers that differ where the values do."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)


def _summary(regret: NDArray[np.float64], missed: NDArray[np.bool_]) -> dict[str, Any]:
    count = len(regret)
    q05, median, q95 = (float(q) for q in np.quantile(regret, [0.05, 0.5, 0.95]))
    se = float(regret.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    spread = {"mean": float(regret.mean()), "se": se, "median": median, "q05": q05, "q95": q95}
    return spread | {"miss_rate": float(missed.mean()), "replications": count}


def read_results(folder: str | os.PathLike[str]) -> Results:
    """Read a folder that `run_experiment` wrote; needs pyarrow, and no numba.

    Parameters
    ----------
    folder
        The folder.

    Examples
    --------
    >>> read_results("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must hold results of manyarms, got 'no such folder'...
    """
    arrow = need_pyarrow()
    path = Path(folder)
    try:
        provenance = json.loads((path / PROVENANCE).read_text(encoding="utf-8"))
        spec_hash, status = str(provenance["spec_hash"]), provenance["status"]
        if provenance["format"] != FORMAT:
            raise ValueError(f"{PROVENANCE} is of another format: {provenance['format']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResultsError(
            f"`folder` must hold results of manyarms, got '{path}': {PROVENANCE} cannot be used "
            f"({reason})."
        ) from error
    if status != "finished":
        raise ResultsError(
            f"`folder` must hold a run that is finished, got '{path}', which is not. Run the same "
            f"spec with the same folder again: it goes on where it stopped."
        )
    for name in (REGRET, RUNS):
        with _damage(path / name):
            stored = arrow.parquet.read_metadata(path / name).metadata or {}
        if stored.get(_HASH.encode()) != spec_hash.encode():
            raise ResultsError(f"'{path / name}' belongs to another experiment.")
    with _damage(path / SPEC):
        return Results(path, provenance, (path / SPEC).read_text(encoding="utf-8"))


def sha256_of(path: Path) -> str:
    """Return a file's checksum."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader say into one sentence."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0].rstrip(".")
        raise ResultsError(
            f"'{path}' is missing, cut short or damaged: {reason}. Run its spec again, or get "
            f"another copy."
        ) from error
