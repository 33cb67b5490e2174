"""Experiments on a real Dask cluster of two processes: the same bytes, whatever happens to it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.cli.main import main
from manyarms.errors import ClusterError
from manyarms.simulation import Experiment, executors, parse_spec, run
from manyarms.simulation import dask as dask_engine
from manyarms.simulation.chunks import plan
from tests.simulation.runs import FINAL, HORIZON, Killed, final, spec

pytestmark = pytest.mark.compiled  # no kernels to cover: once is enough

distributed = pytest.importorskip(
    "distributed", reason='Dask is not installed: pip install "manyarms[dask]"'
)
pytest.importorskip("pyarrow", reason='pip install "manyarms[lab]"')

CHUNK = 20 * HORIZON
SPEC, SMALL, ENDLESS = (spec(t, 120, ['"moss"', '"moss++"']) for t in (HORIZON, 60, 10**10))


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", CHUNK)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return parse_spec(SPEC)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Start a scheduler and two worker processes, as an administrator would."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address


def _pids(scheduler: str) -> list[int]:
    with distributed.Client(scheduler, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(
    experiment: Experiment, whole: dict[str, bytes], scheduler: str, tmp_path: Path
) -> None:
    pids = _pids(scheduler)
    assert len(set(pids)) == 2
    assert len(list(plan(experiment))) == 24
    seen: list[int] = []
    killed: list[int] = []

    def kill_one(done: int, total: int, note: str) -> None:
        seen.append(done)
        if 0 < done < total / 2 and not killed:
            os.kill(pids[0], signal.SIGKILL)
            killed.append(done)

    folder = tmp_path / "out"
    run(experiment, folder, engine="dask", scheduler=scheduler, progress=kill_one)
    assert killed
    assert final(folder) == whole
    assert {path.name for path in folder.iterdir()} == {*FINAL, "provenance.json"}
    assert seen == sorted(seen)
    assert seen[-1] == experiment.pulls
    assert pids[0] not in _pids(scheduler)


def test_a_stopped_run_goes_on_wherever_one_likes(
    experiment: Experiment, whole: dict[str, bytes], scheduler: str, tmp_path: Path
) -> None:
    def stop(done: int, total: int, note: str) -> None:
        if done > total / 3:
            raise Killed

    with pytest.raises(Killed):
        run(experiment, tmp_path, engine="dask", scheduler=scheduler, progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").glob("*.chunk")}
    assert 8 <= len(kept) < 24
    with pytest.raises(Killed):  # what is stored counts at once, and is not played again
        run(experiment, tmp_path, engine="dask", scheduler=scheduler, progress=stop)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    run(experiment, tmp_path, progress=False)  # and threads finish what it began
    assert final(tmp_path) == whole


def test_a_long_chunk_is_given_up_when_the_run_stops(scheduler: str, tmp_path: Path) -> None:
    def stop(done: int, total: int, note: str) -> None:
        time.sleep(1.0)
        raise Killed

    with pytest.raises(Killed):
        run(parse_spec(ENDLESS), tmp_path, engine="dask", scheduler=scheduler, progress=stop)
    with distributed.Client(scheduler, set_as_default=False) as client:
        # it would be at work for minutes
        assert client.submit(os.getpid, pure=False).result(timeout=30) in _pids(scheduler)
        end = time.monotonic() + 30
        while any(client.run(_executing).values()) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(client.run(_executing).values())


def _executing(dask_worker: Any) -> int:
    return int(dask_worker.state.executing_count) + len(dask_worker.state.long_running)


CHILD = """
import sys
from manyarms.cli.main import main
from manyarms.simulation import chunks

if __name__ == "__main__":  # workers import this file too
    chunks.CHUNK_PULLS = int(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
"""


def _alive(group: int) -> list[str]:
    """Return who of a process group still runs; those that only wait to be noticed do not."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    return [row[2] for row in rows if row[0] == str(group) and row[1][0] != "Z"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a group of processes")
def test_a_cluster_of_its_own_ends_with_ctrl_c(
    experiment: Experiment, whole: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "spec.toml").write_text(SPEC)
    out = tmp_path / "out"
    words = ["run", str(tmp_path / "spec.toml"), "--out", str(out), "--engine", "dask"]
    command = [sys.executable, str(tmp_path / "child.py"), str(CHUNK), *words, "--workers", "2"]
    with subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        while child.poll() is None and not list((out / "chunks").glob("*.chunk")):
            time.sleep(0.005)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all processes
        _, words_of_child = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "manyarms: interrupted" in words_of_child
    assert "Traceback" not in words_of_child
    end = time.monotonic() + 30
    while _alive(child.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(child.pid)
    assert not (out / "regret.parquet").exists()
    run(experiment, out, engine="dask", workers=2, progress=False)
    assert final(out) == whole


def test_a_finished_run_needs_no_cluster(experiment: Experiment, tmp_path: Path) -> None:
    run(experiment, tmp_path, progress=False)
    before = (tmp_path / "provenance.json").read_bytes()
    run(experiment, tmp_path, engine="dask", scheduler="tcp://127.0.0.1:1")
    assert (tmp_path / "provenance.json").read_bytes() == before


def test_a_scheduler_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dask_engine, "_PATIENCE", 0.2)
    (tmp_path / "spec.toml").write_text(SMALL)
    words = ["run", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out")]
    assert main([*words, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert "`--scheduler` must be the address of a Dask scheduler that answers, such " in error
    assert "got 'tcp://127.0.0.1:1'" in error
    assert "Traceback" not in error


WRONG = ["nonsense://x", "127.0.0.1:port", "", " ", "tcp://", "tcp://[::", "inproc://h/1/1"]
WRONG += ["http://127.0.0.1:1", "\0", "x" * 10000, "tcp://127.0.0.1:1\n", "tls://127.0.0.1:1"]


@pytest.mark.parametrize("address", [*WRONG, 5, b"tcp://10.0.0.5:8786", True, ["tcp://h:1"], {}])
def test_what_is_no_address_is_refused_at_once(address: Any, tmp_path: Path) -> None:
    with pytest.raises(ma.ParameterError, match=r"`scheduler` must be an address .*, got .*\.$"):
        run(parse_spec(SMALL), tmp_path / "out", engine="dask", scheduler=address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["h:1", "tcp://h:8786", "tcp://[::1]:8786", "ws://h.org:80/"])
def test_what_is_an_address_is_not(address: str) -> None:
    dask_engine.check_scheduler(address)


async def _answers(address: str, security: Any) -> bool:
    """Whether one may speak with who listens there."""
    try:
        arguments = security.get_connection_args("client")
        comm = await distributed.comm.connect(address, timeout=5, **arguments)
    except OSError:
        return False
    await comm.close()
    return True


@pytest.mark.slow
def test_a_cluster_of_our_own_listens_to_us_alone() -> None:
    ours, theirs = distributed.Security.temporary(), distributed.Security.temporary()
    with dask_engine._local(1, ours) as address, dask_engine._connected(address, ours) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        for listens in (address, worker["nanny"], *client.scheduler_info()["workers"]):
            assert listens.startswith("tls://127.0.0.1:")
            plain = listens.replace("tls:", "tcp:")
            assert asyncio.run(_answers(listens, ours))
            assert not asyncio.run(_answers(listens, theirs))
            assert not asyncio.run(_answers(plain, distributed.Security()))
        for port in (
            client.scheduler_info()["services"]["dashboard"],
            *worker["services"].values(),
        ):
            for page in ("health", "info/main/workers.html", "json/counts.json", "metrics"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5)


@pytest.mark.parametrize("package", ["cryptography", "distributed"])
def test_without_the_packages_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ma.MissingExtraError, match=rf'{package} .*"manyarms\[dask\]"'):
        run(parse_spec(SMALL), tmp_path, engine="dask")
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    experiment = parse_spec(SMALL)
    with pytest.raises(ma.ParameterError, match="`engine` must be .*, got 'spark'"):
        run(experiment, tmp_path, engine="spark")  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="`scheduler` must be left out .*Did you mean the"):
        run(experiment, tmp_path, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ma.ParameterError, match="`workers` must be left out with `scheduler`"):
        run(experiment, tmp_path, engine="dask", scheduler="x", workers=2)
    assert list(tmp_path.iterdir()) == []


def test_workers_with_other_code_are_refused(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "digest_of_code", lambda chunk: "that of another year")
    with pytest.raises(ClusterError, match="All workers must have the same code") as caught:
        run(parse_spec(SMALL), tmp_path, engine="dask", scheduler=scheduler, progress=False)
    assert "its digest is that of another year" in str(caught.value)
    assert f"worker with manyarms {ma.__version__}. Install" in str(caught.value)


def _failing(*arguments: Any) -> Any:
    raise ImportError("No module named 'mine'")


def test_a_worker_that_fails_is_told(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = parse_spec(SMALL)
    monkeypatch.setattr(dask_engine.Cluster, "play", staticmethod(_failing))
    with pytest.raises(ClusterError, match="failed with ImportError: No module .* can import"):
        run(experiment, tmp_path, engine="dask", scheduler=scheduler, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (distributed.KilledWorker("a chunk", "a worker", 3), "moss with .* has ended several"),
        (distributed.comm.CommClosedError("closed"), "cluster was lost: .*run the same again"),
        (MemoryError("no more"), "A worker failed with MemoryError: no more"),
        (None, "is gone, or gave up a chunk. What is finished is kept"),
    ],
)
def test_how_a_chunk_may_fail(error: Exception | None, words: str) -> None:
    chunk = next(iter(plan(parse_spec(SMALL))))
    done: Future[Any] = Future()
    if error is None:
        done.cancel()
    else:
        done.set_exception(error)
    failure = dask_engine._failure(done, chunk)
    assert isinstance(failure, ClusterError)
    assert re.search(words, str(failure))
