"""Recorded rewards: names of arms in files, exact means, and files that are refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.instances import Instance, from_rewards
from manyarms.instances.reward_table import _exact_means

RECORDED = "`table` must have the name of an arm in each row, got none in 'arm', row 2. Leave"


def means_of(instance: Instance) -> list[float]:
    return [instance.mean(arm) for arm in range(instance.n_arms)]


def read(folder: Path, content: str | bytes | dict[str, Any]) -> Instance:
    """Return the instance of a CSV file, or of a Parquet file if the content is columns."""
    if isinstance(content, dict):
        path = folder / "log.parquet"
        pyarrow.parquet.write_table(pyarrow.table(content), path)
    else:
        path = folder / "log.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return from_rewards(path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("007", "7"),
        ("1e3", "1000"),
        ("1.0", "1"),
        ("12345678901234567890", "12345678901234567891"),
        ("2020-01-01", "2020-01-01T00:00"),
        ("true", "True"),
    ],
)
@pytest.mark.parametrize("other", ["3", "word"])
def test_names_in_a_csv_file_are_text(first: str, second: str, other: str, tmp_path: Path) -> None:
    rows = f"arm,reward\n{first},1\n{second},2\n{other},3\n{first},2\n"
    assert means_of(read(tmp_path, rows)) == [1.5, 2.0, 3.0]


def test_names_in_a_csv_file_need_not_be_in_unicode(tmp_path: Path) -> None:
    assert means_of(read(tmp_path, b"arm,reward\n\xe9,1\n\xe8,2\n\xe9,3\n")) == [2.0, 2.0]


@pytest.mark.parametrize("other", ["3", "word"])
@pytest.mark.parametrize("missing", ["", '""', "NA", "NULL", "nan"])
def test_a_missing_name_is_refused(missing: str, other: str, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match=RECORDED):
        read(tmp_path, f"arm,reward\n{other},1\n{missing},2\n")


@pytest.mark.parametrize("names", [["a", None], ["a", ""], [1.0, float("nan")], [1, None]])
def test_a_missing_name_in_parquet_is_refused(names: list[Any], tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match=RECORDED):
        read(tmp_path, {"arm": names, "reward": [1.0, 2.0]})


def test_an_arm_may_be_called_na(tmp_path: Path) -> None:
    assert means_of(read(tmp_path, 'arm,reward\n"NA",1\n"NULL",2\n')) == [1.0, 2.0]
    assert means_of(read(tmp_path, {"arm": ["NA", "NULL"], "reward": [1, 2]})) == [1.0, 2.0]


@pytest.mark.parametrize("categories", [["b", "unused", "a"], [7, 8, 9]])
def test_categories_are_numbered_by_their_first_row(categories: list[Any], tmp_path: Path) -> None:
    arms = pyarrow.DictionaryArray.from_arrays([2, 0, 2, 0], categories)
    table = {"arm": arms, "reward": [5.0, 1.0, 7.0, 2.0]}
    assert means_of(read(tmp_path, table)) == [6.0, 1.5]


def test_categories_may_differ_between_parts_of_a_file(tmp_path: Path) -> None:
    parts = [
        pyarrow.DictionaryArray.from_arrays([0, 1], ["a", "b"]),
        pyarrow.DictionaryArray.from_arrays([0, 1], ["b", "c"]),
    ]
    table = {"arm": pyarrow.chunked_array(parts), "reward": [5.0, 1.0, 2.0, 9.0]}
    assert means_of(read(tmp_path, table)) == [5.0, 1.5, 9.0]


TWICE = "must name one column of the file, got 'arm', which 2 columns are called. Rename"
ALIKE = "must have rewards that differ, got {} in all 3 rows. With equal rewards, all arms are"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("arm,reward\n", "must name a CSV or Parquet file, .*: it has no rows"),
        ({"arm": [], "reward": []}, "must name a CSV or Parquet file, .*: it has no rows"),
        (b"arm,reward\xe9\na,1\n", "must name a CSV or Parquet file, .*: 'utf-8' codec"),
        ("arm,arm,reward\na,b,1\n", TWICE),
        ("arm,reward\na,20\na,20\nb,20\n", ALIKE.format("20")),
        ("arm,reward\na,0\na,0\nb,0\n", ALIKE.format("0")),
        ("arm,reward\na,1\nb,NA\n", "must be finite numbers, got nan in 'reward', row 2"),
        ('arm,reward\na,1\nb,""\n', "must be a column of numbers, got '' in 'reward', row 2"),
        ({"arm": ["a"], "reward": [[1]]}, r"must be a column of numbers, got \[1\] in 'reward'"),
        ({"arm": [["a"]], "reward": [1]}, "must have a column of names or numbers of arms, got li"),
        ("item,reward\na,1\n", "must name a column .* got 'arm'. It has item, rew.* log.csv:item,"),
    ],
)
def test_tables_in_files_are_refused(
    content: str | bytes | dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ma.ParameterError, match=f"`table` {message}"):
        read(tmp_path, content)


def test_parquet_columns_of_the_same_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    columns = [pyarrow.array([1]), pyarrow.array([2]), pyarrow.array([3.0])]
    pyarrow.parquet.write_table(pyarrow.table(columns, names=["arm", "arm", "reward"]), path)
    with pytest.raises(ma.ParameterError, match=TWICE):
        from_rewards(path)


def test_other_columns_may_have_the_same_name(tmp_path: Path) -> None:
    assert read(tmp_path, "arm,reward,,\na,1,,\nb,2,,\n").n_arms == 2


def test_a_folder_with_parts_of_a_table_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "log.parquet"
    folder.mkdir()
    for part in (1, 2):
        columns = pyarrow.table({"arm": ["a", "b"], "reward": [part, 2 * part]})
        pyarrow.parquet.write_table(columns, folder / f"{part}.parquet")
    assert means_of(from_rewards(folder)) == [1.5, 3.0]


def test_equal_rewards_have_the_same_mean_as_a_dictionary_and_as_a_file(tmp_path: Path) -> None:
    counts = [3, 7, 6, 11, 29, 51, 100, 333, 1000, 5001]
    prices = {f"product {k}": [19.99] * count for k, count in enumerate(counts)}
    prices["cheaper"] = [19.99] * 999 + [19.98]
    prices["varying"] = [0.0, 19.0, 40.0]  # so that 19.99 is not the largest reward
    made = from_rewards(prices)
    assert means_of(made)[:10] == [19.99] * 10
    assert (made.n_best, made.best_mean) == (10, 19.99)
    rows = "".join(f"{arm},{price}\n" for arm, row in prices.items() for price in row)
    assert means_of(read(tmp_path, f"arm,reward\n{rows}")) == means_of(made)
    result = ma.simulate(ma.MOSS(), made, horizon=20, replications=20)
    assert result.summary()["moss"].miss_rate == 0.0
    lost = result.regret[:, :, -1]
    dear = np.rint(lost / (19.99 - made.mean(11)))
    cheap = np.rint((lost - dear * (19.99 - made.mean(11))) / (19.99 - made.mean(10)))
    assert (result.best_pulls == 20 - dear - cheap).all()


finite = st.floats(-1e300, 1e300, allow_subnormal=True)


@given(st.lists(st.lists(finite, min_size=1, max_size=6), min_size=1, max_size=5))
def test_means_are_exact(rows: list[list[float]]) -> None:
    wanted = [float(sum(map(Fraction, row)) / len(row)) for row in rows]
    assert _exact_means(np.concatenate(rows), np.array([len(row) for row in rows])) == wanted


def test_means_of_prices_are_exact() -> None:
    prices = np.round(np.random.default_rng(1).lognormal(3.0, 1.5, (200, 30)), 2)
    shuffled = np.random.default_rng(2).permuted(prices, axis=1)
    made = from_rewards(dict(enumerate([*prices, *shuffled])))
    wanted = [float(sum(map(Fraction, row)) / len(row)) for row in prices.tolist()]
    assert means_of(made) == wanted * 2
    assert [float(row.mean()) for row in prices] != wanted  # what NumPy returns is rounded


def test_masked_rewards_are_refused() -> None:
    masked = np.ma.masked_equal([0.2, 0.9], 0.9)
    with pytest.raises(ma.ParameterError, match="`table` must have no masked values, got 1 of 2"):
        from_rewards({"a": masked})
    assert means_of(from_rewards({"a": masked.compressed(), "b": [1.0]})) == [0.2, 1.0]
