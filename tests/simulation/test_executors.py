"""Any executor of `concurrent.futures` plays chunks with the same bytes, and is not shut down."""

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
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.errors import ExecutorError
from manyarms.instances import reward
from manyarms.kit import unit
from manyarms.simulation import Sweep, cell, executors, run, run_in_memory
from manyarms.simulation.executors import Pool
from tests.simulation.runs import Killed, final, stop_after

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("small_chunks")


class AtOnce(Executor):
    """An executor that plays in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


# with the JIT, each process would compile five policies
NEW_PROCESSES = (pytest.mark.patient, pytest.mark.interpreted)


def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize(
    "made",
    [AtOnce, lambda: ThreadPoolExecutor(2), pytest.param(_processes, marks=NEW_PROCESSES)],
    ids=["at once", "threads", "processes"],
)
def test_executors_give_the_same_bytes_as_threads(
    made: Callable[[], Executor], sweep: Sweep, whole: dict[str, bytes], tmp_path: Path
) -> None:
    seen: list[int] = []
    with made() as executor:
        run(
            sweep,
            tmp_path,
            executor=executor,
            workers=2,
            progress=lambda done, total, note: seen.append(done),
        )
        assert executor.submit(len, "it is open").result() == 10
    assert final(tmp_path) == whole
    assert seen == sorted(seen)
    assert seen[-1] == sweep.pulls


class _PlaysThree(Executor):
    """Plays the first three chunks at once, and starts no others."""

    def __init__(self) -> None:
        self.waiting: list[Future[Any]] = []
        self._left = 3

    def submit(self, function: Any, /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self._left:
            self._left -= 1
            future.set_result(function(*given, **named))
        else:
            self.waiting.append(future)
        return future


def test_a_stopped_run_cancels_pending_chunks_and_can_be_resumed(
    sweep: Sweep, whole: dict[str, bytes], tmp_path: Path
) -> None:
    executor = _PlaysThree()
    with pytest.raises(Killed):
        run(sweep, tmp_path, executor=executor, workers=40, progress=stop_after(3))
    assert executor.waiting
    assert all(future.cancelled() for future in executor.waiting)
    assert 2 <= len(list(tmp_path.glob("*.parquet"))) <= 3
    assert final(run(sweep, tmp_path, progress=False).folder) == whole


@pytest.mark.patient
@pytest.mark.interpreted
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_lost_process_ends_the_run_and_finished_chunks_are_kept(
    sweep: Sweep, whole: dict[str, bytes], tmp_path: Path
) -> None:
    killed = threading.Event()

    def kill(done: int, total: int, note: str) -> None:
        if done > 0 and not killed.is_set():
            os.kill(executor.submit(os.getpid).result(), signal.SIGKILL)
            killed.set()

    with _processes() as executor, pytest.raises(BrokenExecutor):
        run(sweep, tmp_path, executor=executor, workers=1, progress=kill)
    assert list(tmp_path.glob("*.parquet"))
    with _processes() as executor:
        assert final(run(sweep, tmp_path, executor=executor, progress=False).folder) == whole


@pytest.mark.patient
def test_dasks_executor_plays_the_same_bytes(
    sweep: Sweep, whole: dict[str, bytes], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            protocol="inproc://",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        run(sweep, tmp_path, executor=executor, workers=2, progress=False)
    assert final(tmp_path) == whole


def test_executors_for_results_in_memory() -> None:
    coins = ma.instances.planted(n=50, m=5)
    options: dict[str, Any] = {"horizon": 30, "replications": 4, "record_arms": True}
    usual = ma.simulate([ma.MOSS(), ma.MOSSPlusPlus()], coins, **options)
    with ThreadPoolExecutor(2) as executor:
        other = ma.simulate([ma.MOSS(), ma.MOSSPlusPlus()], coins, executor=executor, **options)
    assert (usual.regret == other.regret).all()
    assert usual.arms is not None
    assert (usual.arms == other.arms).all()


class Coupons(NamedTuple):
    """Rewards of a constant, or 0."""

    most: float

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.most


@reward.register(Coupons)
def coupon(law: Coupons, arm: int, mean: float, word: int) -> float:
    return law.most if unit(word) < mean / law.most else 0.0


class Listed(NamedTuple):
    """A distribution that Numba cannot compile."""

    most: float

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.most


@reward.register(Listed)
def listed(law: Listed, arm: int, mean: float, word: int) -> float:
    return float({"most": law.most}["most"]) if unit(word) < mean / law.most else 0.0


def _distributions(*laws: Any) -> Sweep:
    cells = [
        cell(
            ma.MOSS(),
            ma.instances.from_means([0.2, 0.6], rewards=law),
            horizon=40,
            replications=3,
            parameters={"law": number},
        )
        for number, law in enumerate(laws)
    ]
    return Sweep("laws", tuple(cells))


LAWS = (ma.instances.Bernoulli(), Coupons(2.0))


@pytest.mark.interpreted
def test_distributions_are_compiled_before_workers_start(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = Pool.compile

    def counting(self: Pool, chunk: Any) -> None:
        compiled.append(" ".join(sorted(law.__name__ for law in chunk.cell.law_classes)))
        real(self, chunk)

    monkeypatch.setattr(Pool, "compile", counting)
    both = run_in_memory(_distributions(*LAWS), executor=AtOnce(), progress=False).cells
    assert compiled == ["NoLaw", "Coupons NoLaw"]
    alone = [run_in_memory(_distributions(law), progress=False).cells[0] for law in LAWS]
    for result, other in zip(both, alone, strict=True):
        assert (result.regret == other.regret).all()


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("made", [None, AtOnce], ids=["threads", "an executor"])
def test_an_error_of_a_distribution_is_one_sentence(made: Callable[[], Executor] | None) -> None:
    with pytest.raises(
        ma.CompilationError, match=r"cannot compile moss on Listed\(most=2\.0\) "
    ) as found:
        run_in_memory(
            _distributions(LAWS[0], Listed(2.0)), executor=made and made(), progress=False
        )
    assert "\n" not in str(found.value)


def test_workers_need_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter(["here", "there"])
    monkeypatch.setattr("manyarms.simulation.chunks._digest", lambda _: next(digests))

    class Elsewhere(AtOnce):
        """An executor that plays as in another process."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            executors._checked.clear()
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(ExecutorError, match="its digest is here, got there from a worker"):
        run_in_memory(_distributions(LAWS[0]), executor=Elsewhere(), progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"executor": "dask"},
            r"`executor` must be an executor of concurrent\.futures, got 'dask'",
        ),
        (
            {"executor": AtOnce(), "engine": "cuda"},
            '`executor` must be left out with engine="cuda"',
        ),
        ({"workers": 2, "engine": "cuda"}, '`workers` must be left out with engine="cuda"'),
        ({"engine": "gpu"}, "`engine` must be"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        run_in_memory(_distributions(LAWS[0]), **options)
