"""Columns of CSV and Parquet files, by name: "catalogue.csv:clicks/impressions"."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.optional import need_pyarrow
from manyarms.errors import ParameterError


def split_place(place: str | os.PathLike[str]) -> tuple[Path, str]:
    """Split "FILE:COLUMNS" at the colon; the second part is "" if there is none.

    >>> split_place("arms.csv:clicks/impressions")[1]
    'clicks/impressions'
    """
    text = os.fspath(place)
    file, colon, words = text.rpartition(":")
    return (Path(file), words) if colon and not Path(text).exists() else (Path(text), "")


def read_columns(parameter: str, file: Path) -> dict[str, Any]:
    """Return the columns of a CSV or Parquet file by name; errors name the parameter."""
    arrow = need_pyarrow()
    parquet = file.suffix in (".parquet", ".pq")
    try:
        table = (arrow.parquet.read_table if parquet else arrow.csv.read_csv)(file)
        return dict(zip(table.column_names, table.columns, strict=True))
    except (OSError, ValueError) as error:  # pyarrow's own errors are among these
        why = "it does not exist" if isinstance(error, FileNotFoundError) else str(error)
        raise ParameterError(
            f"`{parameter}` must name a CSV or Parquet file, got {str(file)!r}: {why.rstrip('.')}.",
            parameter=parameter,
        ) from error


def numbers_at(parameter: str, place: str | os.PathLike[str], default: str) -> NDArray[np.float64]:
    """Return a column of numbers, or the quotient of two: "FILE", "FILE:COLUMN", "FILE:A/B".

    A column whose name contains a slash is found by its name.
    """
    file, words = split_place(place)
    columns, words = read_columns(parameter, file), words or default
    above, slash, below = words.partition("/") if words not in columns else (words, "", "")
    values = read_numbers(parameter, columns, above)
    if not slash:
        return values
    divisors = read_numbers(parameter, columns, below)
    for row in np.flatnonzero(divisors <= 0.0)[:1]:
        raise ParameterError(
            f"`{parameter}` must have numbers above 0 to divide by, got {divisors[row]:g} in "
            f"{below!r}, row {row + 1}. Leave such rows out: nothing is known of their mean.",
            parameter=parameter,
        )
    return values / divisors


def read_numbers(parameter: str, columns: dict[str, Any], name: str) -> NDArray[np.float64]:
    """Return a column as finite numbers, or raise."""
    if name not in columns:
        raise ParameterError(
            f"`{parameter}` must name a column of the file, got {name!r}. It has "
            f"{', '.join(columns)}. Name one after a colon, such as arms.csv:rate.",
            parameter=parameter,
        )
    try:
        found = columns[name].cast("double").to_numpy()
    except ValueError as error:
        raise ParameterError(
            f"`{parameter}` must be a column of numbers, got {_first_text(name, columns[name])}. "
            f"Leave such rows out.",
            parameter=parameter,
        ) from error
    for row in np.flatnonzero(~np.isfinite(found))[:1]:
        raise ParameterError(
            f"`{parameter}` must be finite numbers, got {found[row]} in {name!r}, row {row + 1}. "
            f"Leave such rows out.",
            parameter=parameter,
        )
    return np.asarray(found, np.float64)


def _first_text(name: str, column: Any) -> str:
    """Describe the first value that is not a number, and its row."""
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{value!r} in {name!r}, row {row + 1}"
    return f"{column.type} in {name!r}"
