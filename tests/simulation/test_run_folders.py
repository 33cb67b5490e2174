"""Unusable folders and disk errors: files are kept, and errors say what to do."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.errors import FolderError, OldResultsWarning, ResultsError
from manyarms.simulation import Sweep, cell, read_results, run
from manyarms.simulation.progress import ProgressCallback
from manyarms.simulation.run import _claimed
from manyarms.simulation.tables import ResultsFolder
from tests.simulation.runs import Killed, final, small, stop_after, stopped, tree

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("small_chunks")


def test_a_folder_of_another_sweep_is_refused(sweep: Sweep, tmp_path: Path) -> None:
    other = small(seed=6)
    for early in (True, False):
        with contextlib.suppress(Killed):
            progress: ProgressCallback | bool = stop_after(10) if early else False
            run(sweep, tmp_path, workers=1, progress=progress)
        before = tree(tmp_path)
        with pytest.raises(FolderError) as caught:
            run(other, tmp_path)
        assert str(caught.value) == (
            f"`folder` must be a folder of this sweep (hash {other.hash[:12]}), got "
            f"'{tmp_path}', which belongs to another sweep ({sweep.hash[:12]}). Choose another "
            f"folder, or delete this one."
        )
        assert tree(tmp_path) == before


@pytest.mark.parametrize("finished", [False, True])
def test_a_folder_has_the_results_of_one_engine(
    sweep: Sweep, tmp_path: Path, finished: bool
) -> None:
    if finished:
        run(sweep, tmp_path, progress=False)
    else:
        stopped(sweep, tmp_path, 3)
    note = tmp_path / "_provenance.json"
    said = json.loads(note.read_text())
    assert said["engine"] == "threads"
    note.write_text(json.dumps(said | {"engine": "cuda"}))
    before = tree(tmp_path)
    with pytest.raises(FolderError, match=r"has results of 'cuda'\. .* or pass engine='cuda'\."):
        run(sweep, tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "years of work"},
        {"_provenance.json": "{}"},
        {"_provenance.json": '["hash"]'},
        {"000000-0000-0000000000.parquet": "?"},
    ],
)
def test_other_folders_are_refused(sweep: Sweep, tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = tree(tmp_path)
    with pytest.raises(
        FolderError, match="`folder` must be empty or contain results of this"
    ) as caught:
        run(sweep, tmp_path)
    assert isinstance(caught.value, ma.ManyarmsError)
    assert isinstance(caught.value, OSError)
    assert tree(tmp_path) == before


def test_paths_that_are_not_folders_are_refused(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="`folder` must be a folder, got the file"):
        run(sweep, tmp_path / "file")
    with pytest.raises(FolderError, match="`folder` cannot be used: .*Not a directory"):
        run(sweep, tmp_path / "file" / "inner")


def test_one_process_uses_a_folder(sweep: Sweep, whole: dict[str, bytes], tmp_path: Path) -> None:
    with _claimed(tmp_path, sweep.hash, "threads"):
        with pytest.raises(FolderError) as caught:
            run(sweep, tmp_path)
        assert str(caught.value) == (
            f"`folder` must not be in use, got '{tmp_path}', which process {os.getpid()} is using. "
            f"Wait until it ends, or choose another folder."
        )
    assert list(tmp_path.iterdir()) == []
    # the lock of a killed process does not count
    (tmp_path / ".manyarms-lock").write_text("1")
    assert final(run(sweep, tmp_path, progress=False).folder) == whole


DISK = {
    errno.ENOSPC: "No space left .* are kept. Free some disk space, and run the same",
    errno.EROFS: "Read-only .* Allow this user to write there, and run the same",
}


@pytest.mark.parametrize("number", DISK)
def test_errors_of_the_disk_say_what_to_do(
    sweep: Sweep,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    write = os.write

    def failing(file: int, data: Any) -> int:
        if len(list(tmp_path.glob("*.parquet"))) == 7:
            raise OSError(number, os.strerror(number))
        return write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        with pytest.raises(FolderError, match=DISK[number]):
            run(sweep, tmp_path, workers=1, progress=False)
    assert len(list(tmp_path.glob("*.parquet"))) == 7
    assert final(run(sweep, tmp_path, progress=False).folder) == whole


def _own(folder: Path, name: str, arm: int) -> Sweep:
    """Return a sweep with a plain policy from a file."""
    (folder / f"{name}.py").write_text(
        f"class Mine:\n    def ask(self): return {arm}\n    def tell(self, arm, reward): pass\n"
    )
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    policies = [ma.plain_policy(importlib.import_module(name).Mine), ma.MOSS()]
    coins = ma.instances.planted(n=20, m=2)
    return Sweep("own", (cell(policies, coins, horizon=10, replications=2),))


def test_a_warning_if_the_code_of_a_policy_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    name, out = "mine_that_changes", tmp_path / "out"
    played = run(_own(tmp_path, name, 0), out, progress=False)
    run(_own(tmp_path, name, 0), out, progress=False)  # the same code: no warning
    with pytest.warns(OldResultsWarning, match="The code of Mine has changed since the run in"):
        again = run(_own(tmp_path, name, 1), out, progress=False)
    assert (again.cells[0].regret == played.cells[0].regret).all()


def test_a_folder_is_read_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    made = run(_own(tmp_path, "mine_to_read", 0), tmp_path / "out", progress=False)
    for path in (tmp_path / "out", str(tmp_path / "out")):
        read = ResultsFolder(path)
        assert read.provenance == read_results(path).provenance == made.provenance
        assert isinstance(read.folder, Path)
        assert [len(rows) for rows in read.cells[0].rows] == [2, 2]
        assert read.provenance["cells"][0]["rewards"] == "Bernoulli()"
    (summary,) = read.summaries()
    assert [(pair.first, pair.second) for pair in summary.pairs] == [("Mine", "moss")]
    assert "Mine" in read._repr_html_()
    with pytest.raises(ResultsError, match="must contain results of manyarms"):
        ResultsFolder(tmp_path / "nothing")
