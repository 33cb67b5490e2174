"""Experiments that are stopped at any moment, and end in the same bytes all the same."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.jit import jit_enabled
from manyarms.errors import FolderError
from manyarms.lab import Experiment, parse_spec, read_results, run
from manyarms.lab.chunks import plan
from manyarms.lab.progress import ProgressCallback
from manyarms.lab.run import _claimed, _Run
from manyarms.lab.workbench import Workbench

pytest.importorskip("pyarrow")

FINAL = ("regret.parquet", "runs.parquet", "spec.toml")
# a chunk takes some 30 ms, compiled or not
HORIZON, REPLICATIONS, CHUNK = (20_000, 250, 1_000_000) if jit_enabled() else (100, 100, 2_000)

SPEC = """
[experiment]
name = "fifty chunks"
horizon = 60
replications = 10
seed = 5
checkpoints = 3

[instance]
family = "planted"
n = 500
alpha = [0.1, 0.3]

[[policy]]
name = "moss++"
beta = [0.5, 0.7]

[[policy]]
name = "moss"

[[policy]]
name = "empmoss++"

[[policy]]
name = "moss-oracle"
"""
LARGE = SPEC.replace("horizon = 60", f"horizon = {HORIZON}").replace(
    "replications = 10", f"replications = {REPLICATIONS}"
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", 120)  # two replications of SPEC


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return parse_spec(SPEC)


def _final(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FINAL}


@pytest.fixture(scope="module")
def whole(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the final files of a run that nothing disturbed, in chunks of the usual size."""
    return _final(run(experiment, tmp_path_factory.mktemp("whole"), progress=False).folder)


def _tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return all that a folder holds."""
    paths = sorted(folder.rglob("*"))
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


class Killed(BaseException):
    """Stands for whatever ends a process."""


def _stop_after(chunks: int) -> ProgressCallback:
    """Return a progress that ends the run when so many chunks are surely played."""

    def progress(done: int, total: int, note: str) -> None:
        if done >= 120 * chunks:
            raise Killed

    return progress


def _stop(experiment: Experiment, folder: Path, chunks: int) -> list[Path]:
    with pytest.raises(Killed):
        run(experiment, folder, workers=1, progress=_stop_after(chunks))
    return sorted((folder / "chunks").glob("*.chunk"))


@contextlib.contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Note which chunks are played."""
    played: list[tuple[str, int]] = []

    play = Workbench.play

    def counting(self: Workbench, first: int, *arguments: Any) -> Any:
        played.append((self.label, first))
        return play(self, first, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Workbench, "play", counting)
        yield played


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_same_bytes_for_any_number_of_workers(
    experiment: Experiment, whole: dict[str, bytes], tmp_path: Path, workers: int
) -> None:
    done = run(experiment, tmp_path / "new" / "out", workers=workers, progress=False)
    assert _final(done.folder) == whole
    assert {path.name for path in done.folder.iterdir()} == {*FINAL, "provenance.json"}
    assert not [t for t in threading.enumerate() if t.name.startswith("manyarms")]


def test_a_stopped_run_goes_on(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(list(plan(experiment))) == 50
    kept = _stop(experiment, tmp_path, 20)
    assert 18 <= len(kept) < 50  # two of the twenty may be in flight
    with _counted(monkeypatch) as played:
        run(experiment, tmp_path, progress=False)
    assert len(played) == 50 - len(kept)
    assert _final(tmp_path) == whole
    assert read_results(tmp_path).provenance["sessions"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("step", [*range(1, 9), 30, 52, 53, 54, 55])
def test_stopped_at_any_file(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    # 55 files take their places: provenance, spec, 50 chunks, two tables, provenance
    replace = Path.replace
    steps = 0

    def failing(self: Path, target: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == step:
            raise Killed
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", failing)
        # what is being written is not tidied up: a killed process does not
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Killed):
            run(experiment, tmp_path, workers=1, progress=False)
    assert list(tmp_path.rglob("*.manyarms-part"))
    assert _final(run(experiment, tmp_path, workers=1, progress=False).folder) == whole
    assert {path.name for path in tmp_path.iterdir()} == {*FINAL, "provenance.json"}


CHILD = """
import sys
from manyarms.lab.progress import ProgressCallback
from manyarms.lab import chunks, parse_spec, run
spec, out, chunk, workers = sys.argv[1:]
chunks.CHUNK_PULLS = int(chunk)
note = lambda done, total, text: print("playing", flush=True) if done else None
run(parse_spec(spec), out, workers=int(workers), progress=note)
"""


def _child(folder: Path, workers: int) -> subprocess.Popen[str]:
    arguments = [LARGE, str(folder), str(CHUNK), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _await_play(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stderr is not None
    if child.stdout.readline() != "playing\n":
        pytest.fail(child.stderr.read())


def _chunk_files(folder: Path) -> dict[str, int]:
    found = {}
    for path in (folder / "chunks").glob("*.chunk"):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = path.stat().st_mtime_ns
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="sends SIGKILL")
def test_killed_ten_times_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", CHUNK)
    experiment = parse_spec(LARGE)
    assert len(list(plan(experiment))) == 50
    unharmed = _final(run(experiment, tmp_path / "unharmed", progress=False).folder)
    folder = tmp_path / "killed"
    chance = random.Random(2020)
    stored: dict[str, int] = {}
    for moment in sorted(chance.sample(range(42), 10)):
        workers = chance.choice([1, 2])
        with _child(folder, workers) as child:
            while child.poll() is None and len(_chunk_files(folder)) < moment:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.05))
            child.kill()
            assert child.wait() == -signal.SIGKILL
        now = _chunk_files(folder)
        # what was stored before is not played again
        assert stored.items() <= now.items()
        stored = now
    run(experiment, folder, progress=False)
    assert _final(folder) == unharmed
    assert {path.name for path in folder.iterdir()} == {*FINAL, "provenance.json"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _child(tmp_path, 2) as child:
        _await_play(child)
        assert child.stderr is not None
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        words = child.stderr.read()
        assert child.wait(timeout=60) in (-signal.SIGINT, 130)  # as Python ends then
        assert time.monotonic() - begun < 20  # half a second; the rest is patience
    assert "KeyboardInterrupt" in words
    assert not (tmp_path / "regret.parquet").exists()
    assert not (tmp_path / ".manyarms-lock").exists()
    assert not list(tmp_path.rglob("*.manyarms-part"))
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", CHUNK)
    run(parse_spec(LARGE), tmp_path, progress=False)
    assert read_results(tmp_path).runs.num_rows == 10 * REPLICATIONS


def test_a_long_replication_is_stopped_within(tmp_path: Path) -> None:
    text = SPEC.replace("horizon = 60", "horizon = 10_000_000_000")
    begun = time.monotonic()
    with pytest.raises(Killed):
        run(parse_spec(text), tmp_path, workers=2, progress=_stop_after(1))
    assert time.monotonic() - begun < 20  # a second; it would take minutes
    assert not [t for t in threading.enumerate() if t.name.startswith("manyarms")]


def test_a_finished_run_is_not_played_again(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(experiment, tmp_path, progress=False)
    before = _tree(tmp_path)
    seen: list[tuple[int, int]] = []
    with _counted(monkeypatch) as played:
        run(experiment, tmp_path, progress=lambda d, t, _: seen.append((d, t)))
    assert played == []
    assert _tree(tmp_path) == before
    assert seen == [(experiment.pulls, experiment.pulls)]
    # unless its tables are no longer what they were
    (tmp_path / "runs.parquet").write_bytes(b"PAR1")
    (tmp_path / "spec.toml").unlink()
    assert _final(run(experiment, tmp_path, progress=False).folder) == whole


def _swap(paths: list[Path]) -> None:
    first, second = paths[0].read_bytes(), paths[1].read_bytes()
    paths[0].write_bytes(second)
    paths[1].write_bytes(first)


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 16
    path.write_bytes(data)


DAMAGES: dict[str, tuple[int, Callable[[list[Path]], Any]]] = {
    "cut": (1, lambda paths: os.truncate(paths[3], 100)),
    "empty": (1, lambda paths: paths[3].write_bytes(b"")),
    "longer": (1, lambda paths: paths[3].write_bytes(paths[3].read_bytes() + b"0")),
    "foreign": (1, lambda paths: paths[3].write_text("not a chunk\n" * 20)),
    "a bit in the rows": (1, lambda paths: _flip(paths[3], 90)),
    "a bit in the checksum": (1, lambda paths: _flip(paths[3], -1)),
    "swapped": (2, _swap),
    "gone": (1, lambda paths: Path.unlink(paths[3])),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_chunks_are_played_again(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    kept = _stop(experiment, tmp_path, 10)
    count, damage = DAMAGES[name]
    damage(kept)
    with _counted(monkeypatch) as played:
        run(experiment, tmp_path, progress=False)
    assert len(played) == 50 - len(kept) + count
    assert _final(tmp_path) == whole


def test_chunks_of_other_code_are_played_again(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("manyarms.lab.chunks.digest", lambda *_: "of an older version")
        _stop(experiment, tmp_path, 10)
    with _counted(monkeypatch) as played:
        run(experiment, tmp_path, progress=False)
    assert len(played) == 50
    assert _final(tmp_path) == whole


def test_chunks_of_other_data_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "7.csv"
    head = "caption,votes,not_funny,somewhat_funny,funny\n"
    lines = f'family = "captions"\ncontest = "{path.as_posix()}"\n'
    text = SPEC.replace('family = "planted"\nn = 500\nalpha = [0.1, 0.3]\n', lines)
    path.write_text(head + "Hi!,9,3,4,2\nNo.,8,7,1,0\n")
    kept = _stop(parse_spec(text), tmp_path / "out", 10)
    path.write_text(head + "Hi!,9,3,4,2\nNo.,8,6,2,0\n")
    with _counted(monkeypatch) as played:
        run(parse_spec(text), tmp_path / "out", progress=False)
    assert kept
    assert len(played) == 25
    again = run(parse_spec(text), tmp_path / "again", progress=False)
    assert _final(again.folder) == _final(tmp_path / "out")


def test_a_folder_of_another_spec_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    other = parse_spec(SPEC.replace("seed = 5", "seed = 6"))
    for stopped in (True, False):
        with contextlib.suppress(Killed):
            progress: ProgressCallback | bool = _stop_after(10) if stopped else False
            run(experiment, tmp_path, workers=1, progress=progress)
        before = _tree(tmp_path)
        with pytest.raises(FolderError) as caught:
            run(other, tmp_path)
        assert str(caught.value) == (
            f"`out` must be a folder of this experiment (spec hash {other.hash[:12]}), got "
            f"'{tmp_path}', which belongs to another one ({experiment.hash[:12]}). Choose another "
            f"folder, or delete that one."
        )
        assert _tree(tmp_path) == before


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "years of work"},
        {"spec.toml": SPEC},
        {"provenance.json": "{}"},
        {"provenance.json": "no JSON"},
        {"provenance.json": '["spec_hash"]'},
        {"chunks/000000-0000-0000000000.chunk": "?"},
        {".hidden": ""},
    ],
)
def test_folders_of_others_are_refused(
    experiment: Experiment, tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = _tree(tmp_path)
    with pytest.raises(FolderError, match="`out` must be an empty folder or one of this") as caught:
        run(experiment, tmp_path)
    assert isinstance(caught.value, ma.ManyarmsError)
    assert isinstance(caught.value, OSError)
    assert _tree(tmp_path) == before


@pytest.mark.parametrize("out", [5, None, b"out", "a\0b"])
def test_what_is_no_path_is_refused(experiment: Experiment, out: Any) -> None:
    with pytest.raises(ma.ParameterError, match="`out` must be a path, got "):
        run(experiment, out)


def test_places_that_are_no_folders_are_refused(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="`out` must be a folder, got the file"):
        run(experiment, tmp_path / "file")
    with pytest.raises(FolderError, match="`out` cannot be used: .*Not a directory"):
        run(experiment, tmp_path / "file" / "inner")


def test_one_process_at_a_time(
    experiment: Experiment, whole: dict[str, bytes], tmp_path: Path
) -> None:
    with _claimed(tmp_path, experiment.hash):
        with pytest.raises(FolderError) as caught:
            run(experiment, tmp_path)
        assert str(caught.value) == (
            f"`out` must be free, got '{tmp_path}', where process {os.getpid()} is at work. Wait "
            f"for it, or choose another folder."
        )
    assert list(tmp_path.iterdir()) == []
    # the lock of a process that was killed is no lock
    (tmp_path / ".manyarms-lock").write_text("1")
    assert _final(run(experiment, tmp_path, progress=False).folder) == whole


def test_a_second_process_is_told(tmp_path: Path) -> None:
    with _child(tmp_path, 1) as child:
        _await_play(child)
        with pytest.raises(FolderError, match=f"where process {child.pid} is at work"):
            run(parse_spec(LARGE), tmp_path)
        child.kill()


def test_progress(experiment: Experiment, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, note: str) -> None:
        seen.append((done, total, note))

    run(experiment, tmp_path, progress=progress)
    assert seen[0] == (0, experiment.pulls, "compiling moss++(beta=0.5)")
    assert seen[-1] == (experiment.pulls, experiment.pulls, "")
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_resumed_run_begins_where_it_stopped(experiment: Experiment, tmp_path: Path) -> None:
    kept = _stop(experiment, tmp_path, 30)
    seen: list[int] = []
    run(experiment, tmp_path, progress=lambda done, *_: seen.append(done))
    assert seen[0] == 120 * len(kept)
    assert seen[-1] == experiment.pulls


DISK = {
    errno.ENOSPC: "No space left .* is kept. Make room, and run the same",
    errno.EACCES: "Permission denied.* Allow this user to write there, and run the same",
    errno.EROFS: "Read-only .* Allow this user to write there, and run the same",
    errno.EIO: "Input/output error.* Check the disk, and run the same",
}


@pytest.mark.parametrize("number", DISK)
def test_what_the_disk_refuses_is_told_with_the_way_out(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    write = os.write

    def failing(file: int, data: Any) -> int:
        if len(list(tmp_path.rglob("*.chunk"))) == 7:
            raise OSError(number, os.strerror(number))
        return write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        with pytest.raises(FolderError, match=DISK[number]):
            run(experiment, tmp_path, workers=1, progress=False)
    assert len(list(tmp_path.rglob("*.chunk"))) == 7
    assert _final(run(experiment, tmp_path, progress=False).folder) == whole


def test_a_chunk_that_vanishes_before_the_end_is_told(
    experiment: Experiment,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assemble = _Run._assemble

    def spoiled(self: Any) -> float:
        next((tmp_path / "chunks").glob("*.chunk")).unlink()
        return assemble(self)

    with monkeypatch.context() as patch:
        patch.setattr(_Run, "_assemble", spoiled)
        with pytest.raises(FolderError, match=r"\.chunk was changed\. What is finished is kept"):
            run(experiment, tmp_path, progress=False)
    assert _final(run(experiment, tmp_path, progress=False).folder) == whole


def test_bad_arguments(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match="`experiment` must be an Experiment such as"):
        run("spec.toml", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="`workers` must be an integer >= 1, got 0"):
        run(experiment, tmp_path, workers=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.compiled
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", 20_000_000)
    examples = Path(__file__).parent.parent.parent / "examples"
    for path in examples.glob("*.toml"):
        experiment = parse_spec(path.read_text())
        rows = run(experiment, tmp_path / path.stem).summary_rows()
        assert len(rows) == sum(len(cell.players) for cell in experiment.cells)
        shutil.rmtree(tmp_path / path.stem)
