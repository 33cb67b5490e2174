"""Means from columns of files: in Python, in specifications and on the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import manyarms as ma

ITEMS = {"name": ["a", "b", "c"], "clicks": [1, 0, 3], "views": [4, 8, 4], "rate": [0.5, 0, 1]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pyarrow.table(ITEMS | {"a/b": [0.1, 0.2, 0.3]})
    pyarrow.parquet.write_table(table, tmp_path / "items.parquet")
    rows = zip(*ITEMS.values(), strict=True)
    lines = [",".join(ITEMS), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "items.csv").write_text("\n".join(lines))
    (tmp_path / "wrong.csv").write_text("mean,views\n0.5,1\n0.25,0\n,3\n")
    return tmp_path


@pytest.mark.parametrize("name", ["items.csv", "items.parquet"])
def test_a_column_or_a_quotient(folder: Path, name: str) -> None:
    made = ma.instances.from_means(f"{folder / name}:clicks/views")
    assert [made.mean(arm) for arm in range(3)] == [0.25, 0.0, 0.75]
    assert made.label == f"{name}:clicks/views(n=3)"
    assert ma.instances.from_means(f"{folder / name}:rate").best_mean == 1.0


def test_a_column_name_with_a_slash(folder: Path) -> None:
    assert ma.instances.from_means(f"{folder / 'items.parquet'}:a/b").best_mean == 0.3


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none.csv", "`means` must name a CSV or Parquet file, .* it does not exist"),
        ("items.parquet", "`means` must name a column of the file, got 'mean'. It has name, cl"),
        ("items.csv:name", "`means` must be a column of numbers, got .* in 'name', row 1. Leave"),
        ("items.csv:clicks", r"`means` must be a number >= 0 and <= 1, got 3.0"),
        ("wrong.csv", r"`means` must be finite numbers, got nan in 'mean', row 3. Leave"),
        ("wrong.csv:views/views", r"to divide by, got 0 in 'views', row 2. Leave such rows out"),
    ],
)
def test_invalid_means_are_refused(folder: Path, place: str, message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.instances.from_means(str(folder / place))
