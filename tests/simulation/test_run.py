"""Sweeps that are stopped at any time and resumed give the same bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from manyarms.simulation import Sweep, read_results, run
from manyarms.simulation.chunks import plan
from manyarms.simulation.runner import CpuRunner
from tests.simulation.runs import Killed, final, made, stop_after, stopped, tree

pytest.importorskip("pyarrow")
# each test plays fifty chunks, which takes ten times as long in CPython
pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("small_chunks")]


Files: TypeAlias = dict[str, bytes]
Played: TypeAlias = list[tuple[str, int]]  # the policy and the first replication of a chunk


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Return a list of the chunks that are played."""
    noted: Played = []
    play = CpuRunner.play

    def noting(self: CpuRunner, first: int, *arguments: Any) -> Any:
        noted.append((self.label, first))
        return play(self, first, *arguments)

    monkeypatch.setattr(CpuRunner, "play", noting)
    return noted


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_same_bytes_for_any_number_of_workers(
    sweep: Sweep, whole: Files, tmp_path: Path, workers: int
) -> None:
    done = run(sweep, tmp_path / "new" / "out", workers=workers, progress=False)
    assert final(done.folder) == whole
    assert {path.name for path in done.folder.iterdir()} == {*whole, "_provenance.json"}
    assert not [t for t in threading.enumerate() if t.name.startswith("manyarms")]


def test_a_stopped_run_is_resumed(
    sweep: Sweep, whole: Files, tmp_path: Path, played: Played
) -> None:
    assert len(list(plan(sweep))) == 50
    kept = stopped(sweep, tmp_path, 20)
    assert 18 <= len(kept) < 50  # two of the twenty may not be stored
    played.clear()
    run(sweep, tmp_path, progress=False)
    assert len(played) == 50 - len(kept)
    assert final(tmp_path) == whole
    assert read_results(tmp_path).provenance["sessions"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 3, 30, 51, 52])
def test_runs_stopped_at_any_file(sweep: Sweep, whole: Files, tmp_path: Path, step: int) -> None:
    # 52 files are replaced: provenance, 50 chunks, provenance
    replace = Path.replace
    steps = 0

    def failing(self: Path, target: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == step:
            raise Killed
        return replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", failing)
        # a killed process does not remove a partial file
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Killed):
            run(sweep, tmp_path, workers=1, progress=False)
    assert list(tmp_path.rglob("*.manyarms-part"))
    assert final(run(sweep, tmp_path, workers=1, progress=False).folder) == whole
    assert {path.name for path in tmp_path.iterdir()} == {*whole, "_provenance.json"}


def test_a_long_replication_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(Killed):  # the whole run would take hours
        run(made(10**10, 10), tmp_path, workers=2, progress=stop_after(1))
    assert not [t for t in threading.enumerate() if t.name.startswith("manyarms")]


def test_a_finished_run_is_not_played_again(
    sweep: Sweep, whole: Files, tmp_path: Path, played: Played
) -> None:
    run(sweep, tmp_path, progress=False)
    before = tree(tmp_path)
    seen: list[tuple[int, int]] = []
    played.clear()
    run(sweep, tmp_path, progress=lambda d, t, _: seen.append((d, t)))
    assert played == []
    assert tree(tmp_path) == before
    assert seen == [(sweep.pulls, sweep.pulls)]
    # unless a file has changed
    next(tmp_path.glob("*.parquet")).write_bytes(b"PAR1")
    assert final(run(sweep, tmp_path, progress=False).folder) == whole
    assert len(played) == 1


def _swap(paths: list[Path]) -> None:
    first, second = paths[0].read_bytes(), paths[1].read_bytes()
    paths[0].write_bytes(second)
    paths[1].write_bytes(first)


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 16
    path.write_bytes(data)


def _place(path: Path, name: bytes) -> int:
    """Return the position of a metadata entry's value."""
    return path.read_bytes().index(name) + len(name) + 10


DAMAGES: dict[str, tuple[int, Callable[[list[Path]], Any]]] = {
    "cut": (1, lambda paths: os.truncate(paths[3], 100)),
    "a bit in the checksum": (1, lambda paths: _flip(paths[3], _place(paths[3], b"manyarms_sum"))),
    "a bit in the sweep": (1, lambda paths: _flip(paths[3], _place(paths[3], b"manyarms_sweep"))),
    "swapped": (2, _swap),
    "gone": (1, lambda paths: Path.unlink(paths[3])),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_chunks_are_played_again(
    sweep: Sweep, whole: Files, tmp_path: Path, played: Played, name: str
) -> None:
    kept = stopped(sweep, tmp_path, 10)
    count, damage = DAMAGES[name]
    damage(kept)
    played.clear()
    run(sweep, tmp_path, progress=False)
    assert len(played) == 50 - len(kept) + count
    assert final(tmp_path) == whole


def test_chunks_of_other_code_are_played_again(
    sweep: Sweep, whole: Files, tmp_path: Path, played: Played
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyarms.simulation.chunks._digest", lambda _: "of an older version")
        stopped(sweep, tmp_path, 10)
    played.clear()
    run(sweep, tmp_path, progress=False)
    assert len(played) == 50
    assert final(tmp_path) == whole


def test_a_resumed_run_begins_where_it_stopped(sweep: Sweep, tmp_path: Path) -> None:
    kept = stopped(sweep, tmp_path, 30)
    seen: list[int] = []
    run(sweep, tmp_path, progress=lambda done, *_: seen.append(done))
    assert seen[0] == 120 * len(kept)
    assert seen[-1] == sweep.pulls
