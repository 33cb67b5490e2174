"""A run continues after its process was killed or interrupted."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyarms.errors import FolderError, ResultsError
from manyarms.simulation import read_results, run
from manyarms.simulation.chunks import plan
from tests.simulation.runs import CHUNK, REPLICATIONS, chunk_files, final, large

pytest.importorskip("pyarrow")


CHILD = """
import signal, sys, time
from manyarms.simulation import chunks, run
from tests.simulation.runs import large
out, chunk, workers, stays = sys.argv[1:]
chunks.CHUNK_PULLS = int(chunk)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
def note(done, total, text):
    if done:
        print("playing", flush=True)
    while done and stays == "stays":  # until it is interrupted or killed
        time.sleep(0.01)
run(large(), out, workers=int(workers), progress=note)
"""


def _child(folder: Path, workers: int, *, stays: bool = True) -> subprocess.Popen[str]:
    """Start a run in a process that plays some chunks and then waits, or plays all."""
    arguments = [str(folder), str(CHUNK), str(workers), "stays" if stays else "ends"]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        cwd=Path(__file__).parents[2],
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
    for path in chunk_files(folder):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = path.stat().st_mtime_ns
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="sends SIGKILL")
def test_killed_ten_times_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", CHUNK)
    sweep = large()
    assert len(list(plan(sweep))) == 50
    unharmed = final(run(sweep, tmp_path / "unharmed", progress=False).folder)
    folder = tmp_path / "killed"
    chance = random.Random(2020)
    stored: dict[str, int] = {}
    for moment in sorted(chance.sample(range(42), 10)):
        workers = chance.choice([1, 2])
        with _child(folder, workers, stays=False) as child:
            while child.poll() is None and len(_chunk_files(folder)) < moment:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.05))
            child.kill()
            assert child.wait() == -signal.SIGKILL
        now = _chunk_files(folder)
        # stored chunks are not played again
        assert stored.items() <= now.items()
        stored = now
    run(sweep, folder, progress=False)
    assert final(folder) == unharmed
    assert {path.name for path in folder.iterdir()} == {*unharmed, "_provenance.json"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _child(tmp_path, 2) as child:
        _await_play(child)
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        words = child.stderr.read()
        assert child.wait(timeout=300) in (-signal.SIGINT, 130)  # Python's exit status then
    assert "KeyboardInterrupt" in words
    assert (
        f"Finished replications are in '{tmp_path}'. Run the same sweep again to resume." in words
    )
    with pytest.raises(ResultsError, match="the one in .* is not finished"):
        read_results(tmp_path)
    assert not (tmp_path / ".manyarms-lock").exists()
    assert not list(tmp_path.rglob("*.manyarms-part"))
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", CHUNK)
    run(large(), tmp_path, progress=False)
    rows = [rows for each in read_results(tmp_path).cells for rows in each.rows]
    assert [len(own) for own in rows] == 10 * [REPLICATIONS]


@pytest.mark.patient
def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with _child(tmp_path, 1) as child:
        _await_play(child)
        with pytest.raises(FolderError, match=f"which process {child.pid} is using"):
            run(large(), tmp_path)
        child.kill()
