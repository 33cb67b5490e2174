"""Any executor of `concurrent.futures` plays chunks: the same bytes, and it stays its owner's."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.simulation import Experiment, run
from tests.simulation.runs import Killed, final, stop_after

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("small_chunks")


class AtOnce(Executor):
    """Plays in the caller's thread, as simple an executor as there can be."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize(
    "made",
    [AtOnce, lambda: ThreadPoolExecutor(2), pytest.param(_processes, marks=pytest.mark.patient)],
    ids=["at once", "threads", "processes"],
)
def test_the_same_bytes_as_threads(
    made: Callable[[], Executor], experiment: Experiment, whole: dict[str, bytes], tmp_path: Path
) -> None:
    seen: list[int] = []
    with made() as executor:
        run(
            experiment,
            tmp_path,
            engine=executor,
            workers=2,
            progress=lambda done, total, note: seen.append(done),
        )
        assert executor.submit(len, "it is open").result() == 10
    assert final(tmp_path) == whole
    assert seen == sorted(seen)
    assert seen[-1] == experiment.pulls


def test_a_stopped_run_cancels_what_has_not_begun_and_threads_resume_it(
    experiment: Experiment, whole: dict[str, bytes], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(Killed):
        run(experiment, tmp_path, engine=executor, workers=40, progress=stop_after(3))
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").glob("*.chunk")}
    assert 3 <= len(kept) < 50
    assert final(run(experiment, tmp_path, progress=False).folder) == whole


@pytest.mark.patient
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_lost_process_ends_the_run_and_what_was_played_is_kept(
    experiment: Experiment, whole: dict[str, bytes], tmp_path: Path
) -> None:
    killed = threading.Event()

    def kill(done: int, total: int, note: str) -> None:
        if done > 0 and not killed.is_set():
            os.kill(executor.submit(os.getpid).result(), signal.SIGKILL)
            killed.set()

    with _processes() as executor, pytest.raises(BrokenExecutor):
        run(experiment, tmp_path, engine=executor, workers=1, progress=kill)
    assert list((tmp_path / "chunks").glob("*.chunk"))
    with _processes() as executor:
        assert final(run(experiment, tmp_path, engine=executor, progress=False).folder) == whole


def test_an_executor_has_no_scheduler(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match="`scheduler` must be left out with"):
        run(experiment, tmp_path, engine=AtOnce(), scheduler="tcp://127.0.0.1:1")
    assert list(tmp_path.iterdir()) == []
