"""Results on disk: what the tables hold, who can read them, and what damage is told."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import ResultsError
from manyarms.report import write_report
from manyarms.simulation import Experiment, cell, read_results, run
from manyarms.simulation.experiment import Objective
from manyarms.simulation.tables import TidyWriter, sha256_of
from tests.helpers import run_python

parquet = pytest.importorskip("pyarrow.parquet")


def made(replications: int = 7, seed: int = 3, objective: Objective = "earn") -> Experiment:
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
    return Experiment("small", tuple(cells), seed, objective)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return made()


@pytest.fixture(scope="module")
def finished(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(experiment, tmp_path_factory.mktemp("results") / "out", progress=False).folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_the_objective_is_in_the_folder(tmp_path: Path) -> None:
    experiment = made(objective="find")
    assert experiment.hash != made().hash
    results = run(experiment, tmp_path / "out", progress=False)
    assert results.objective == "find"
    rows = results.summary_rows("find")
    assert [row["mean"] for row in rows] == [
        row.mean for each in results.cells for row in each.by("find").summary().policies
    ]
    assert [list(row) for row in rows] == [list(row) for row in results.summary_rows()]
    page = write_report(results.folder).read_text()
    assert "simple regret on " in page


def test_tables_hold_what_simulate_gives(experiment: Experiment, finished: Path) -> None:
    results = read_results(finished)
    assert results.parameters == ("horizon", "means", "beta")
    regret, runs = (
        {name: table.column(name).to_numpy() for name in table.column_names}
        for table in (results.regret, results.runs)
    )
    assert list(regret) == [*results.parameters, "policy", "replication", "time", "regret"]
    counts = ["best_pulls", "distinct_arms", "recommended", "recommended_mean"]
    assert list(runs) == [*results.parameters, "policy", "replication", "regret", *counts]
    at = run = 0
    for game in experiment.cells:
        for player in game.players:
            alone = ma.simulate(
                player.policy,
                game.instance,
                horizon=game.horizon,
                replications=7,
                seed=3,
                checkpoints=4,
            )
            rows, these = slice(at, at + 28), slice(run, run + 7)
            at, run = rows.stop, these.stop
            np.testing.assert_array_equal(regret["regret"][rows], alone.regret[0].ravel())
            np.testing.assert_array_equal(regret["time"][rows], np.tile(alone.times, 7))
            np.testing.assert_array_equal(regret["replication"][rows], np.arange(7).repeat(4))
            np.testing.assert_array_equal(runs["regret"][these], alone.regret[0, :, -1])
            np.testing.assert_array_equal(runs["replication"][these], np.arange(7))
            for name in counts:
                np.testing.assert_array_equal(runs[name][these], getattr(alone, name)[0])
            for table, where in ((regret, rows), (runs, these)):
                assert set(table["policy"][where]) == {player.label}
                assert set(table["horizon"][where]) == {game.horizon}
                assert set(table["means"][where]) == {game.parameters["means"]}
                beta = player.parameters.get("beta")
                expected = math.nan if beta is None else float(beta)
                np.testing.assert_array_equal(table["beta"][where], expected)
    assert (at, run) == (len(regret["regret"]), len(runs["regret"]))


def test_columns_are_plain(finished: Path) -> None:
    for name in ("regret.parquet", "runs.parquet"):
        schema = parquet.ParquetFile(finished / name).schema
        for column in range(len(schema)):
            assert schema.column(column).physical_type in ("INT64", "DOUBLE", "BYTE_ARRAY")
            assert schema.column(column).max_repetition_level == 0


def test_pandas_reads_them(finished: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(finished / "regret.parquet")
    final = frame[frame.time == frame.horizon]
    means = final.groupby(["horizon", "means", "policy"]).regret.mean()
    for row in read_results(finished).summary_rows():
        assert means[row["horizon"], row["means"], row["policy"]] == pytest.approx(row["mean"])
    assert frame.beta.isna().sum() == 4 * 7 * 4  # quantile has none


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_others_read_them(finished: Path, library: str) -> None:
    module: Any = pytest.importorskip(library)
    path = finished / "runs.parquet"
    if library == "polars":
        rows = module.read_parquet(path).rows()
    else:
        rows = module.sql(f"select * from '{path}'").fetchall()
    assert rows[0][:5] == (60, "[0.9, 0.1]", 0.6, "moss++(beta=0.6)", 0)


def test_summary_rows(experiment: Experiment, finished: Path) -> None:
    rows = read_results(finished).summary_rows()
    assert len(rows) == 4 * 3
    cell = experiment.cells[1]
    alone = ma.simulate(
        [player.policy for player in cell.players],
        cell.instance,
        horizon=cell.horizon,
        replications=7,
        seed=3,
    )
    for row, wanted in zip(rows[3:6], alone.summary().policies, strict=True):
        assert row["horizon"] == 60
        assert row["means"] == "[0.6, 0.5]"
        assert row | {"policy": ""} == row | wanted._asdict() | {"policy": ""}
    assert [row["beta"] for row in rows[:3]] == [0.6, 0.75, None]
    assert json.loads(json.dumps(rows[0]))["miss_rate"] == rows[0]["miss_rate"]


def test_one_replication_has_no_error_bar(tmp_path: Path) -> None:
    once = made(replications=1)
    rows = run(once, tmp_path, progress=False).summary_rows()
    assert len(rows) == 12
    assert math.isnan(rows[0]["se"])
    assert 0.0 < rows[0]["low"] < rows[0]["mean"] < rows[0]["high"]


def test_provenance(experiment: Experiment, finished: Path) -> None:
    results = read_results(finished)
    said = results.provenance
    assert said["hash"] == experiment.hash
    assert (said["seed"], said["replications"], said["pulls"]) == (3, 7, experiment.pulls)
    assert set(said["versions"]) == {"python", "manyarms", "numpy", "numba", "pyarrow"}
    assert said["machine"]["processors"] >= 1
    assert said["started"] <= said["finished"]
    assert said["seconds"] > 0
    assert said["cells"][0]["instance"] == "grouped(2 groups, n=50)"
    assert said["cells"][0]["policies"]["quantile"] == repr(ma.Quantile())
    assert said["engine"] == "threads"


def _table(path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setattr("manyarms.simulation.tables._GROUP", 100)
    columns = {"alpha": "double", "policy": "string", "regret": "double"}
    writer = TidyWriter(path, columns, experiment="x")
    regret = np.random.default_rng(1).random(sum(sizes))
    first = 0
    for size in sizes:
        part = regret[first : first + size]
        writer.write(size, {"alpha": None, "policy": "moss", "regret": part})
        first += size
    writer.close()
    return path.read_bytes()


def test_the_bytes_do_not_depend_on_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _table(tmp_path / "a", [345], monkeypatch)
    for sizes in ([1] * 345, [100, 100, 100, 45], [7, 300, 38], [344, 1]):
        assert _table(tmp_path / "b", sizes, monkeypatch) == whole
    file = parquet.ParquetFile(tmp_path / "a")
    groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    assert groups == [100, 100, 100, 45]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "without its first bytes": lambda data: data[50:],
    "empty": lambda data: b"",
    "a text": lambda data: b"alpha,regret\n0.1,3\n",
    "another bit": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
}


@pytest.mark.parametrize("name", ["regret", "runs"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_tables(folder: Path, name: str, how: str) -> None:
    path = folder / f"{name}.parquet"
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    sentence = rf"'{path}' is missing, cut short or damaged: .+\. Run it again"
    with pytest.raises(ResultsError, match=sentence) as caught:
        _ = getattr(read_results(folder), name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sha256", 3),
        ("sha256", None),
        ("sha256", ["runs.parquet"]),
        ("cells", 3),
        ("cells", []),
        ("cells", [{}]),
        ("cells", [{"policies": {}}] * 9),
        ("cells", [{"policies": {"a": "b"}}] * 12),
        ("seed", None),
    ],
)
def test_provenance_that_makes_no_sense_is_no_traceback(folder: Path, key: str, value: Any) -> None:
    path = folder / "provenance.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {key: value}))
    if key == "seed":
        assert read_results(folder).cells[0].seed is None  # shown as it is
        return
    with pytest.raises(ResultsError, match="is missing, cut short or damaged") as caught:
        _ = read_results(folder).cells
    assert "\n" not in str(caught.value)


def test_provenance_that_is_nested_deeply_is_no_traceback(folder: Path) -> None:
    (folder / "provenance.json").write_text("[" * 100_000)
    with pytest.raises(ResultsError, match="provenance.json cannot be used"):
        read_results(folder)


@pytest.mark.skipif(os.name != "posix", reason="names that are no text")
def test_folders_may_have_names_that_are_no_text(experiment: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    assert run(experiment, folder, progress=False).runs.num_rows == 4 * 3 * 7


def test_missing_files(folder: Path) -> None:
    for name in ("runs.parquet", "regret.parquet"):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(ResultsError, match=f"{name}' is missing, .*No such file"):
            read_results(folder)
        (folder / name).write_bytes(kept)
    assert read_results(folder).runs.num_rows == 4 * 3 * 7


def test_a_table_of_another_experiment(folder: Path, tmp_path: Path) -> None:
    other = made(seed=4)
    theirs = run(other, tmp_path / "other", progress=False).folder
    shutil.copy(theirs / "runs.parquet", folder / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs.parquet' belongs to another experiment\."):
        read_results(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "`folder` must hold results of manyarms, got .*provenance.json cannot be used"),
        ("[]", "`folder` must hold results of manyarms"),
        ("{}", "`folder` must hold results of manyarms, .* cannot be used \\('hash'\\)"),
        ('{"hash": "1", "status": "finished", "format": "x 9"}', "another format: 'x 9'"),
        (
            '{"hash": "1", "status": "running", "format": "manyarms results 1"}',
            "`folder` must hold a finished run, but .*Run the same experiment",
        ),
    ],
)
def test_folders_without_results(folder: Path, text: str, message: str) -> None:
    (folder / "provenance.json").write_text(text)
    with pytest.raises(ResultsError, match=message):
        read_results(folder)
    (folder / "provenance.json").unlink()
    with pytest.raises(ResultsError, match="it has no provenance.json"):
        read_results(folder)


@pytest.mark.patient
def test_reading_needs_no_numba(finished: Path) -> None:
    code = (
        "import sys; from manyarms.simulation.tables import read_results\n"
        f"results = read_results({str(finished)!r})\n"
        "assert len(results.summary_rows()) == 12 and results.regret.num_rows == 336\n"
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
        "experiment = small()\n"
        f"out = {str(tmp_path / 'out')!r}\n"
        "for attempt in (lambda: read_results(out), lambda: run(experiment, out)):\n"
        "    try: attempt()\n"
        "    except MissingExtraError as error: print(error)\n"
    )
    first, second = run_python(code).stdout.splitlines()
    assert first == second
    assert first.startswith("pyarrow must be installed to write and read tables")
    assert 'pip install "manyarms[lab]"' in first
    assert not (tmp_path / "out").exists()  # rather before anything is played


# Folders that somebody has crafted: their checksums are right


def _is_refused(folder: Path) -> bool:
    """Whether reading all of it raises one sentence that says what is wrong."""
    with pytest.raises(ResultsError, match="is missing, cut short or damaged") as caught:
        _ = read_results(folder).cells
    return "\n" not in str(caught.value)


NO_FACTS: dict[str, list[Any]] = {
    "horizon": [10**30, 2**63, 0, -1, 1.5, True, None, "x", [], 3],
    "n_arms": [10**30, 0, 2.0, "9" * 5000],
    "best_mean": [float("nan"), 1e308, None, "x"],
    "largest_gap": [float("inf"), 10**300, "x", {}],
    "n_best": [-1],
    "first_replication": [10**30],
    "instance": [3],
    "is_stand_in": ["no"],
    "parameters": [None, [], 3, {"alpha": []}, {"alpha": float("nan")}],
    "policies": [{}, [], {"moss": 3}, {"moss": "MOSS()"}, 10**30],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in NO_FACTS.items() for value in values]
)
def test_cells_that_make_no_sense(folder: Path, key: str, value: Any) -> None:
    note = folder / "provenance.json"
    said = json.loads(note.read_text())
    said["cells"][0][key] = value
    note.write_text(json.dumps(said))
    assert _is_refused(folder)


def _of(table: Any, name: str, values: Any) -> Any:
    import pyarrow as pa

    column = pa.array(list(values), from_pandas=False)
    return table.set_column(table.column_names.index(name), name, column)


EDITS: dict[str, Callable[[Any], Any]] = {
    "no rows": lambda table: table.slice(0, 0),
    "fewer rows": lambda table: table.slice(0, table.num_rows - 1),
    "rows twice": lambda table: table.take([*range(table.num_rows)] * 2),
    "no policies": lambda table: table.drop_columns(["policy"]),
    "no regrets": lambda table: table.drop_columns(["regret"]),
    "policies that are numbers": lambda table: _of(table, "policy", range(table.num_rows)),
    "missing policies": lambda table: _of(table, "policy", ["x", *[None] * (table.num_rows - 1)]),
    "regrets that are text": lambda table: _of(table, "regret", ["x"] * table.num_rows),
    "missing regrets": lambda table: _of(table, "regret", [1.0, *[None] * (table.num_rows - 1)]),
    "no finite regrets": lambda table: _of(table, "regret", [float("inf")] * table.num_rows),
    "huge regrets": lambda table: _of(table, "regret", [-1e308] * table.num_rows),
    "lists": lambda table: _of(table, "replication", [[1]] * table.num_rows),
    "one name twice": lambda table: table.append_column("policy", table.column("policy")),
}


@pytest.mark.parametrize("name", ["runs.parquet", "regret.parquet"])
@pytest.mark.parametrize("what", EDITS)
def test_tables_that_make_no_sense(folder: Path, name: str, what: str) -> None:
    from pyarrow import parquet

    kept = parquet.read_metadata(folder / name).metadata
    table = EDITS[what](parquet.read_table(folder / name))
    parquet.write_table(table.replace_schema_metadata(kept), folder / name)
    note = folder / "provenance.json"
    said = json.loads(note.read_text())
    said["sha256"][name] = sha256_of(folder / name)
    note.write_text(json.dumps(said))
    assert _is_refused(folder)


@pytest.mark.parametrize("times", [[0, 0], [-5, 1], [1, 2**62]])
def test_times_that_make_no_sense(folder: Path, times: list[int]) -> None:
    from pyarrow import parquet

    place = folder / "regret.parquet"
    kept, table = parquet.read_metadata(place).metadata, parquet.read_table(place)
    number = len(set(table.column("time").to_pylist()))
    own = np.resize(times, number)
    table = _of(table, "time", np.resize(own, table.num_rows))
    parquet.write_table(table.replace_schema_metadata(kept), place)
    note = folder / "provenance.json"
    said = json.loads(note.read_text())
    said["sha256"][place.name] = sha256_of(place)
    note.write_text(json.dumps(said))
    with pytest.raises(ResultsError, match="its times do not grow up to the horizon"):
        _ = read_results(folder).cells
