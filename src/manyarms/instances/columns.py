"""Columns of CSV and Parquet files, by name: "catalogue.csv:clicks/impressions"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.optional import need_pyarrow
from manyarms.errors import ParameterError

_TEXTS = ("string", "large_string", "binary", "large_binary")  # types of columns


def split_place(place: str | os.PathLike[str]) -> tuple[Path, str]:
    """Split "FILE:COLUMNS" at the colon; the second part is "" if there is none.

    >>> split_place("arms.csv:clicks/impressions")[1]
    'clicks/impressions'
    """
    text = os.fspath(place)
    file, colon, words = text.rpartition(":")
    return (Path(file), words) if colon and not Path(text).exists() else (Path(text), "")


def read_table(parameter: str, file: Path, *, names: Sequence[str] = ()) -> Any:
    """Return a CSV or Parquet file as a table of pyarrow; errors name the parameter.

    `names` are columns of names. In a CSV file, they are read as they are written, so that 007 and
    7 differ. An empty field, NA and NULL are missing, in numbers and in names, unless quoted.
    """
    arrow = need_pyarrow()
    try:
        if file.suffix not in (".parquet", ".pq"):
            how = arrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.binary()),  # need not be UTF-8
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            table = arrow.csv.read_csv(file, convert_options=how)
        elif file.is_file():
            table = arrow.parquet.ParquetFile(file).read()
        else:  # a folder with the parts of a table
            table = arrow.parquet.read_table(file)
        why = None if table.column_names and table.num_rows else "it has no rows"
    except (OSError, ValueError, arrow.ArrowException) as error:
        why = "it does not exist" if isinstance(error, FileNotFoundError) else str(error)
    if why is not None:
        raise ParameterError(
            f"`{parameter}` must name a CSV or Parquet file, got {str(file)!r}: {why.rstrip('.')}.",
            parameter=parameter,
        )
    return table


def numbers_at(parameter: str, place: str | os.PathLike[str], default: str) -> NDArray[np.float64]:
    """Return a column of numbers, or the quotient of two: "FILE", "FILE:COLUMN", "FILE:A/B".

    A column whose name contains a slash is found by its name.
    """
    file, words = split_place(place)
    table, words = read_table(parameter, file), words or default
    whole = words in table.column_names
    above, slash, below = (words, "", "") if whole else words.partition("/")
    values = read_numbers(parameter, table, above)
    if not slash:
        return values
    divisors = read_numbers(parameter, table, below)
    for row in np.flatnonzero(divisors <= 0.0)[:1]:
        raise ParameterError(
            f"`{parameter}` must have numbers above 0 to divide by, got {divisors[row]:g} in "
            f"{below!r}, row {row + 1}. Leave such rows out: nothing is known of their mean.",
            parameter=parameter,
        )
    return values / divisors


def read_numbers(
    parameter: str, table: Any, name: str, *, such_as: str = "arms.csv:rate"
) -> NDArray[np.float64]:
    """Return a column as finite numbers, or raise; `such_as` is an example for the message."""
    column = _column(parameter, table, name, such_as)
    try:
        numbers = column.cast("double", safe=False).to_numpy()  # large integers are rounded
    except (ValueError, NotImplementedError) as error:
        raise ParameterError(
            f"`{parameter}` must be a column of numbers, got {_first_text(name, column)}. "
            f"Leave such rows out.",
            parameter=parameter,
        ) from error
    for row in np.flatnonzero(~np.isfinite(numbers))[:1]:
        raise ParameterError(
            f"`{parameter}` must be finite numbers, got {numbers[row]} in {name!r}, row {row + 1}. "
            f"Leave such rows out.",
            parameter=parameter,
        )
    return np.asarray(numbers, np.float64)


def read_names(
    parameter: str, table: Any, name: str, *, such_as: str = "log.csv:item,revenue"
) -> NDArray[np.int64]:
    """Return the number of each row's name, in the order in which names first occur, or raise."""
    column = _column(parameter, table, name, such_as)
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)  # categories may be unused, in any order
    try:
        encoded = column.combine_chunks().dictionary_encode()
    except NotImplementedError as error:
        raise ParameterError(
            f"`{parameter}` must have a column of names or numbers of arms, got {column.type} in "
            f"{name!r}.",
            parameter=parameter,
        ) from error
    names = encoded.dictionary
    missing = np.append(names.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), True)
    if str(names.type) in _TEXTS and (empty := names.index("").as_py()) >= 0:
        missing[empty] = True
    numbers = encoded.indices.fill_null(len(names)).to_numpy().astype(np.int64)
    for row in np.flatnonzero(missing[numbers])[:1]:
        raise ParameterError(
            f"`{parameter}` must have the name of an arm in each row, got none in {name!r}, row "
            f"{row + 1}. Leave such rows out. In a CSV file, an arm that is called NA or NULL "
            f'needs quotes: "NA".',
            parameter=parameter,
        )
    return np.asarray(numbers)


def _column(parameter: str, table: Any, name: str, such_as: str) -> Any:
    """Return a column by its name, or raise if there is none or several."""
    count = table.column_names.count(name)
    if count == 0:
        raise ParameterError(
            f"`{parameter}` must name a column of the file, got {name!r}. It has "
            f"{', '.join(table.column_names)}. Name columns after a colon, such as {such_as}.",
            parameter=parameter,
        )
    if count > 1:
        raise ParameterError(
            f"`{parameter}` must name one column of the file, got {name!r}, which {count} columns "
            f"are called. Rename them.",
            parameter=parameter,
        )
    return table[name]


def _first_text(name: str, column: Any) -> str:
    """Describe the first value that is not a number, and its row."""
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{value!r} in {name!r}, row {row + 1}"
    return f"{column.type} in {name!r}"
