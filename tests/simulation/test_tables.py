"""Results on disk: contents, reading with other libraries, and damaged files."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import ResultsError
from manyarms.simulation import Sweep, cell, read_results, run, run_in_memory
from manyarms.simulation.chunk_files import MALFORMED, read_chunk
from manyarms.simulation.sweep import Objective
from tests.helpers import run_python

parquet = pytest.importorskip("pyarrow.parquet")


def made(replications: int = 7, seed: int = 3, objective: Objective = "earn") -> Sweep:
    """Return four cells of three players."""
    cells = [
        cell(
            [ma.MOSSPlusPlus(beta=0.6), ma.MOSSPlusPlus(beta=0.75), ma.Quantile()],
            ma.instances.grouped(sizes=[5, 45], means=means),
            horizon=horizon,
            replications=replications,
            checkpoints=4,
            parameters={"horizon": horizon, "means": json.dumps(means)},
        )
        for horizon in (60, 40)
        for means in ([0.9, 0.1], [0.6, 0.5])
    ]
    return Sweep("small", tuple(cells), seed, objective)


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return made()


@pytest.fixture(scope="module")
def finished(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(sweep, tmp_path_factory.mktemp("results") / "out", progress=False).folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_the_objective_is_stored(tmp_path: Path) -> None:
    sweep = made(objective="find")
    assert sweep.hash != made().hash
    results = run(sweep, tmp_path / "out", progress=False)
    assert results.objective == "find"
    for each, summary in zip(results.cells, results.summaries(), strict=True):
        assert summary == each.summary(objective="find")
        assert each.times.tolist() == [each.horizon * k // 4 for k in range(1, 5)]
    assert results.summaries("earn")[0] == results.cells[0].summary(objective="earn")


def _frame(finished: Path) -> Any:
    return pytest.importorskip("pandas").read_parquet(finished)


def test_files_contain_the_results_of_simulate(sweep: Sweep, finished: Path) -> None:
    frame, at = _frame(finished), 0
    counts = ["best_pulls", "first_best", "distinct_arms", "recommended", "recommended_mean"]
    keys = ["horizon", "means", "beta", "policy", "replication", "regret"]
    assert list(frame) == [*keys, *counts, "checkpoints", "regret_at_checkpoints"]
    for each, read in zip(sweep.cells, read_results(finished).cells, strict=True):
        for player in each.players:
            alone = ma.simulate(
                player.policy,
                each.instance,
                horizon=each.horizon,
                replications=7,
                seed=3,
                checkpoints=4,
            )
            rows, at = frame[at : at + 7], at + 7
            np.testing.assert_array_equal(np.stack(rows.regret_at_checkpoints), alone.regret[0])
            np.testing.assert_array_equal(np.stack(rows.checkpoints)[0], alone.times)
            np.testing.assert_array_equal(rows.regret, alone.regret[0, :, -1])
            np.testing.assert_array_equal(rows.replication, np.arange(7))
            np.testing.assert_array_equal(read.of(player.label), alone.regret[0])
            for name in counts:
                np.testing.assert_array_equal(rows[name], getattr(alone, name)[0])
                np.testing.assert_array_equal(read.rows_of(player.label)[name], rows[name])
            assert set(rows.policy) == {player.label}
            assert set(rows.horizon) == {each.horizon}
            assert set(rows.means) == {each.parameters["means"]}
            beta = player.parameters.get("beta")
            expected = math.nan if beta is None else float(beta)
            np.testing.assert_array_equal(rows.beta, expected)
    assert at == len(frame)


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_other_libraries_read_the_files(finished: Path, library: str) -> None:
    module: Any = pytest.importorskip(library)
    path = finished / "*.parquet"
    if library == "polars":
        rows = module.read_parquet(path).rows()
    else:
        rows = module.sql(f"select * from '{path}'").fetchall()
    assert rows[0][:5] == (60, "[0.9, 0.1]", 0.6, "moss++(beta=0.6)", 0)
    assert len(rows) == 4 * 3 * 7


def test_a_sweep_as_a_table_with_two_keys(tmp_path: Path) -> None:
    cells = [
        cell(
            [ma.MOSS(), ma.MOSSPlusPlus(), *([ma.Quantile()] if alpha < 0.3 else [])],
            ma.instances.planted(n=50, alpha=alpha, horizon=40),
            horizon=40,
            replications=5,
            parameters={"alpha": alpha},
        )
        for alpha in (0.1, 0.3)
    ]
    results = run(Sweep("two", tuple(cells)), tmp_path, progress=False)
    shown = results.table(rows="alpha", columns="policy")
    assert shown.head == ["alpha", "moss", "moss++", "quantile"]
    summaries = results.summaries()
    assert shown.rows[0] == ["0.1", *(row[1] for row in summaries[0].table().rows)]
    assert shown.rows[1] == ["0.3", *(row[1] for row in summaries[1].table().rows), ""]
    assert str(shown).startswith("regret: mean ± standard error\nalpha ")
    turned = results.table(rows="policy", columns="alpha", show="worst")
    assert turned.head == ["policy", "0.1", "0.3"]
    assert turned.rows[2] == ["quantile", f"{summaries[0]['quantile'].worst:.1f}", ""]
    assert r"moss++ & " in turned.to_latex()
    found = results.table(rows="policy", columns="alpha", show="best", objective="find")
    assert found.title == "simple regret: best"
    sure = results.table(rows="policy", columns="alpha", interval="gaffke", confidence=0.9)
    assert sure.title == "regret: mean and 90 % interval"
    row = results.summaries(interval="gaffke", confidence=0.9)[0]["moss"]
    assert sure.rows[0][1] == f"{row.mean:.1f} [{row.low:.1f}, {row.high:.1f}]"
    in_memory = run_in_memory(Sweep("two", tuple(cells)), progress=False)
    assert in_memory.table(rows="policy", columns="alpha", show="worst") == turned
    assert in_memory.summaries() == summaries
    with pytest.raises(ma.ParameterError, match="`rows` must be one of 'alpha', 'policy'"):
        results.table(rows="beta")
    with pytest.raises(ma.ParameterError, match="distinguish all results, got several for alpha=0"):
        results.table(rows="alpha", columns="alpha")


def test_a_table_of_a_sweep_with_two_parameters() -> None:
    cells = [
        cell(
            [ma.MOSS(), ma.Quantile()],
            ma.instances.planted(n=20, m=m),
            horizon=horizon,
            replications=2,
            parameters={"m": m, "horizon": horizon},
        )
        for m in (2, 5)
        for horizon in (10, 20)
    ]
    results = run_in_memory(Sweep("two", tuple(cells)), progress=False)
    with pytest.raises(ma.ParameterError, match=r"for m=2 and policy=moss. Name more .* in `rows`"):
        results.table(rows="m")
    table = results.table(rows=["m", "horizon"])
    assert table.head == ["m", "horizon", "moss", "quantile"]
    assert [row[:2] for row in table.rows] == [["2", "10"], ["2", "20"], ["5", "10"], ["5", "20"]]
    for row, summary in zip(table.rows, results.summaries(), strict=True):
        assert row[2:] == [cells[1] for cells in summary.table().rows]
    turned = results.table(rows=["policy", "m"], columns="horizon")
    assert turned.rows[-1] == ["quantile", "5", table.rows[2][3], table.rows[3][3]]
    for wrong in ([], ["m", "beta"]):
        with pytest.raises(ma.ParameterError, match="`rows` must be one of 'm', 'horizon', 'pol"):
            results.table(rows=wrong)


def test_provenance(sweep: Sweep, finished: Path) -> None:
    results = read_results(finished)
    said = results.provenance
    assert said["hash"] == sweep.hash
    assert (said["seed"], said["replications"], said["pulls"]) == (3, 7, sweep.pulls)
    assert set(said["versions"]) == {"python", "manyarms", "numpy", "numba", "pyarrow"}
    assert said["machine"]["processors"] >= 1
    assert said["started"] <= said["finished"]
    assert said["seconds"] > 0
    assert said["cells"][0]["instance"] == "grouped(2 groups, n=50)"
    assert said["cells"][0]["policies"]["quantile"] == {
        "policy": repr(ma.Quantile()),
        "played": repr(ma.Quantile(sigma=0.5)),
        "replications": 7,
        "parameters": {},
    }
    assert said["engine"] == "threads"


def test_no_flipped_bit_changes_a_number(folder: Path) -> None:
    path = next(folder.glob("*.parquet"))
    data, whole = path.read_bytes(), parquet.read_table(path)
    kept = 0
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            read_chunk(path)
        except (ResultsError, *MALFORMED):
            continue
        # the bit was in data that no reader needs, such as column statistics
        assert parquet.read_table(path).equals(whole)
        kept += 1
    assert kept < len(data) / 14


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cells", 3),
        ("cells", [{"policies": {"a": "b"}}] * 12),
        ("objective", "keep"),
    ],
)
def test_invalid_provenance_raises_an_error_of_manyarms(folder: Path, key: str, value: Any) -> None:
    path = folder / "_provenance.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {key: value}))
    with pytest.raises(ResultsError, match="is missing, cut short or damaged") as caught:
        _ = read_results(folder).cells
    assert "\n" not in str(caught.value)


def test_missing_files(folder: Path) -> None:
    path = sorted(folder.glob("*.parquet"))[4]
    path.rename(folder / "kept")
    with pytest.raises(ResultsError, match=r"must have 7 replications of .* in cell 1, got 0\."):
        _ = read_results(folder).cells


def test_a_file_under_another_name(folder: Path) -> None:
    first, second, *_ = sorted(folder.glob("*.parquet"))
    shutil.copy(second, first)
    with pytest.raises(ResultsError, match="its checksum is wrong"):
        _ = read_results(folder).cells


def test_a_file_of_another_sweep(folder: Path, tmp_path: Path) -> None:
    theirs = run(made(seed=4), tmp_path / "other", progress=False).folder
    path = next(theirs.glob("*.parquet"))
    shutil.copy(path, folder / path.name)
    with pytest.raises(ResultsError, match=r"\.parquet' belongs to another sweep\."):
        _ = read_results(folder).cells


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "`folder` must contain results of manyarms, got .*_provenance.json cannot be used"),
        ("{}", "`folder` must contain results of manyarms, .* cannot be used \\('hash'\\)"),
        (
            '{"hash": "1", "status": "running", "format": "manyarms results 1"}',
            "`folder` must contain a finished run, but .*Run the same sweep",
        ),
    ],
)
def test_folders_without_results(folder: Path, text: str, message: str) -> None:
    (folder / "_provenance.json").write_text(text)
    with pytest.raises(ResultsError, match=message):
        read_results(folder)
    (folder / "_provenance.json").unlink()
    with pytest.raises(ResultsError, match="it has no _provenance.json"):
        read_results(folder)


@pytest.mark.patient
def test_reading_needs_no_numba(finished: Path) -> None:
    code = (
        "import sys; from manyarms.simulation.tables import read_results\n"
        f"results = read_results({str(finished)!r})\n"
        "assert len(results.summaries()) == 4\n"
        "assert not {'numba', 'manyarms.report', 'matplotlib'} & set(sys.modules)"
    )
    run_python(code)


@pytest.mark.patient
def test_without_pyarrow_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = sys.modules['pyarrow.parquet'] = None\n"
        "from manyarms.errors import MissingExtraError\n"
        "from manyarms.simulation import read_results, run\n"
        "from tests.simulation.runs import small\n"
        "sweep = small()\n"
        f"out = {str(tmp_path / 'out')!r}\n"
        "for attempt in (lambda: read_results(out), lambda: run(sweep, out)):\n"
        "    try: attempt()\n"
        "    except MissingExtraError as error: print(error)\n"
    )
    first, second = run_python(code).stdout.splitlines()
    assert first == second
    assert first.startswith("pyarrow must be installed to write and read tables")
    assert 'pip install "manyarms[sim]"' in first
    assert not (tmp_path / "out").exists()  # before anything is played


# Crafted folders, with correct checksums


def _is_refused(folder: Path) -> bool:
    """Check that reading everything raises a one-sentence error."""
    with pytest.raises(ResultsError, match="is missing, cut short or damaged") as caught:
        _ = read_results(folder).cells
    return "\n" not in str(caught.value)


NO_FACTS: dict[str, list[Any]] = {
    "horizon": [10**30, 0, True, 3],
    "n_arms": ["9" * 5000],
    "best_mean": [float("nan")],
    "largest_gap": [float("inf")],
    "n_best": [-1],
    "first_replication": [10**30],
    "instance": [3],
    "is_stand_in": ["no"],
    "parameters": [None, {"alpha": float("nan")}],
    "policies": [{}, {"moss": 3}],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in NO_FACTS.items() for value in values]
)
def test_crafted_cells(folder: Path, key: str, value: Any) -> None:
    note = folder / "_provenance.json"
    said = json.loads(note.read_text())
    said["cells"][0][key] = value
    note.write_text(json.dumps(said))
    assert _is_refused(folder)


def _numbers(table: Any, name: str, value: Any) -> Any:
    import pyarrow as pa

    column = pa.array([value] * table.num_rows, from_pandas=False)
    return table.set_column(table.column_names.index(name), name, column)


EDITS: dict[str, Callable[[Any], Any]] = {
    "no rows": lambda table: table.slice(0, 0),
    "fewer rows": lambda table: table.slice(0, table.num_rows - 1),
    "no regrets": lambda table: table.drop_columns(["regret_at_checkpoints"]),
    "missing regrets": lambda table: _numbers(table, "regret_at_checkpoints", None),
    "infinite regrets": lambda table: _numbers(table, "regret_at_checkpoints", [math.inf] * 4),
    "times that are equal": lambda table: _numbers(table, "checkpoints", [60] * 4),
}


@pytest.mark.parametrize("what", EDITS)
def test_crafted_files(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.simulation.chunk_files._checksum", lambda *_: "crafted")
    for path in folder.glob("*.parquet"):
        kept = parquet.read_metadata(path).metadata | {b"manyarms_sum": b"crafted"}
        table = parquet.read_table(path)
        if path.name.startswith("000000-0000"):
            table = EDITS[what](table)
        parquet.write_table(table.replace_schema_metadata(kept), path)
    if what == "fewer rows":
        with pytest.raises(ResultsError, match="must have 7 replications of"):
            _ = read_results(folder).cells
    else:
        assert _is_refused(folder)


def test_truth_values_are_the_same_in_files_and_in_memory(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    instance = ma.instances.planted(n=30, m=3)
    late = [ma.MOSSPlusPlus(count_late=True), ma.Quantile()]
    cells = tuple(
        cell(
            late,
            instance,
            horizon=20,
            replications=2,
            parameters={"scaled": scaled, "mixed": mixed},
        )
        for scaled, mixed in ((True, 0.5), (False, True))
    )
    sweep = Sweep("truth values", cells)
    assert sweep.columns == {"scaled": "bool", "mixed": "string", "count_late": "bool"}
    results = run(sweep, tmp_path / "out", progress=False)
    read = pandas.read_parquet(results.folder)
    for frame in (run_in_memory(sweep).to_dataframe(library="pandas"), results.to_dataframe()):
        for name in sweep.columns:
            pairs = set(zip(frame["policy"], frame[name], strict=True))
            assert pairs == set(zip(read["policy"], read[name], strict=True))
    assert read["scaled"].dtype == bool
    assert set(read["mixed"]) == {"0.5", "True"}
    before = {path.name: path.read_bytes() for path in results.folder.glob("*.parquet")}
    (results.folder / min(before)).unlink()
    provenance = json.loads((results.folder / "_provenance.json").read_text())
    (results.folder / "_provenance.json").write_text(json.dumps(provenance | {"status": "running"}))
    run(sweep, results.folder, progress=False)
    assert {path.name: path.read_bytes() for path in results.folder.glob("*.parquet")} == before
