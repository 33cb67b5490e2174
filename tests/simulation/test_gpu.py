"""The GPU engine without a GPU: its compiler, and the CUDA simulator."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED, NO_ROOM
from manyarms.errors import DeviceError
from manyarms.instances.tape import record_of, rewind, tape
from manyarms.simulation import Sweep, cell, gpu, gpu_compiler, gpu_memory
from manyarms.simulation.play import Stretch, play
from manyarms.simulation.runner import CpuRunner, rows_of
from tests.instances.test_distributions import Pareto, Tips
from tests.policies.pairs import EVERY_POLICY, label

ROOT = Path(__file__).parents[2]


def compiler(test: Any) -> Any:
    """Mark a test that compiles for a GPU; `make gpu` and a workflow run it."""
    absent = importlib.util.find_spec("numba_cuda") is None
    test = pytest.mark.skipif(absent, reason="numba-cuda is not installed; see `make gpu`")(test)
    for mark in (pytest.mark.compiled, pytest.mark.slow, pytest.mark.long):
        test = mark(test)
    return test


class HostMemory(gpu_memory.StreamMemory):
    """Arrays of the same shapes as on a GPU, in main memory."""

    def __init__(self) -> None:
        self.size, self.load, self.stream = 1 << 30, gpu_memory.Load(64), None

    def begin(self, size: int) -> None:
        pass

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def copy(self, values: Any) -> Any:
        return np.array(values)

    def _fill(self, rows: Any, row: Any, count: int) -> None:
        rows[:] = row


def _batch(policy: ma.Policy, instance: ma.Instance | None = None, **options: Any) -> gpu.LaneBatch:
    arms = instance or ma.instances.planted(n=200, m=20)
    one = cell(policy, arms, horizon=400, replications=2, **options)
    runner = gpu.GpuRunner(one, one.players[0], seed=1)
    return runner.batch(np.arange(2), HostMemory(), runner.lane())


def _ptx(policy: ma.Policy, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    """Compile a policy's kernel for a GPU of compute capability 9.0 (needs no GPU)."""
    import numba

    dispatcher = gpu_compiler.numba_module("cuda.dispatcher")
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: _Hopper)
    batch = _batch(policy, **options)
    assert not batch.kernel.targetoptions["lto"]  # an optimizing linker changes rounding
    stretch = Stretch(batch.key, 0, 0, 5, batch.scale)
    arguments = (*batch.own, batch.world, batch.numbers, stretch, batch.measured, 2, 1)
    kinds = numba.void(*map(numba.typeof, arguments))
    options = {"device": False, "abi": "numba", "cc": (9, 0), "output": "ptx"}
    with gpu_compiler.exact():
        made, _ = gpu_compiler.cuda().compile(batch.kernel.py_func, kinds, **options)
    return made if isinstance(made, str) else made.decode()


class _Hopper:
    compute_capability = (9, 0)


@compiler
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_policies_compile_for_a_gpu(policy: ma.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ".visible .entry" in _ptx(policy, monkeypatch)


@compiler
def test_own_distributions_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ".visible .entry" in _ptx(ma.MOSS(), monkeypatch, instance=DRAWN)


@compiler
def test_late_rewards_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ".visible .entry" in _ptx(ma.MOSS(), monkeypatch, delay=3)


@compiler
def test_a_numba_cuda_without_its_private_names(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, nvvm = (
        gpu_compiler.numba_module("cuda.np.arrayobj"),
        gpu_compiler.numba_module("cuda.cudadrv.nvvm"),
    )
    fix_index, compile_ir = arrays.fix_integer_index, nvvm.compile_ir
    with gpu_compiler.exact():
        assert arrays.fix_integer_index is not fix_index
    assert (arrays.fix_integer_index, nvvm.compile_ir) == (fix_index, compile_ir)
    monkeypatch.delattr(arrays, "fix_integer_index")
    with gpu_compiler.exact():
        assert nvvm.compile_ir is not compile_ir
    monkeypatch.setattr(gpu_compiler.cuda(), "is_available", lambda: True)
    gpu_compiler.need_gpu()
    monkeypatch.delattr(nvvm, "compile_ir")
    with pytest.raises(
        DeviceError, match=r"has no numba\.cuda\.cudadrv\.nvvm\.compile_ir any more"
    ):
        gpu_compiler.need_gpu()


@compiler
def test_products_and_sums_are_rounded_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel compares T_i μ* - rewards; a fused operation would break ties differently."""
    made = _ptx(ma.Parallel(best_mean=0.9), monkeypatch)
    plain = [line.split()[0] for line in made.splitlines() if line.strip()]
    assert "mul.rn.f64" in plain
    assert not {"mul.f64", "add.f64", "sub.f64"}.intersection(plain)
    batch = _batch(ma.Parallel(best_mean=0.9))
    assert batch.kernel.targetoptions["lto"] is False  # the linker could also fuse them


@compiler
def test_gpu_kernels_are_cached_in_another_folder() -> None:
    folders = [
        Path(_batch(one).kernel.stats.cache_path).parent for one in (ma.MOSS(), ma.Quantile())
    ]
    assert folders[0] != folders[1]
    for folder in folders:
        assert folder.parent == Path(os.environ["MANYARMS_CACHE"]) / "manyarms" / "compiled"
        assert (folder / "kernel.py").read_text().startswith("def kernel(state, rewards, tape,")


LANE_OPTIONS = {
    "few arms": {"instance": ma.instances.planted(n=40, m=4)},
    "more arms than 32 bits": {"instance": ma.instances.planted(n=3 * 10**9, m=10**8)},
    "late rewards": {"instance": ma.instances.planted(n=40, m=4), "delay": 5},
}


def _in_rows(part: Any) -> Any:
    """Return a lane's template for CPython, with 32-bit numbers and little memory."""
    if hasattr(part, "_fields"):
        return type(part)(*map(_in_rows, part))
    return gpu_compiler.Row(part) if isinstance(part, np.ndarray) else part


@pytest.mark.patient
@pytest.mark.interpreted
@pytest.mark.parametrize("options", LANE_OPTIONS.values(), ids=LANE_OPTIONS)
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_every_policy_fits_into_the_memory_of_a_lane(
    policy: ma.Policy, options: dict[str, Any]
) -> None:
    options = {"horizon": 60, "replications": 1, **options}
    simulated = ma.simulate(policy, seed=3, record_arms=True, **options)
    played = cell(policy, **options)
    host = CpuRunner(played, played.players[0], seed=3, record_arms=True)
    runner = gpu.GpuRunner(played, played.players[0], seed=3, arms=7)
    while True:
        measured = host._new_measured(1)
        stretch = Stretch(host._key, 0, 0, played.horizon, host._scale)
        state, rewards, reel = _in_rows(runner.lane())
        play(state, rewards, host._world, reel, stretch, measured)
        if measured.distinct_arms[0] != NO_ROOM:
            break
        runner.arms *= 2
    assert simulated.arms is not None
    assert np.array_equal(measured.arms, simulated.arms[0])
    assert np.array_equal(rows_of(measured), simulated.rows[0])


SIMULATED = """
import tempfile
from pathlib import Path
import numpy as np
import manyarms as ma
from manyarms import simulation
from manyarms.simulation import gpu
from tests.simulation.test_gpu import CASES, small

gpu.FIRST_ARMS = 15  # so few that runs restart with more memory

for policy, options in CASES:
    found = [
        ma.simulate(policy, replications=3, seed=3, record_arms=True, engine=engine, **options)
        for engine in ("threads", "cuda")
    ]
    for part in ("regret", "best_pulls", "first_best", "distinct_arms", "recommended", "arms"):
        one, other = (getattr(result, part) for result in found)
        assert np.array_equal(one, other), (policy, part)
written = []
for engine in ("threads", "cuda"):
    with tempfile.TemporaryDirectory() as folder:
        simulation.run(small(), folder, engine=engine, progress=False)
        written.append([p.read_bytes() for p in sorted(Path(folder).glob("*.parquet"))])
assert written[0] == written[1]
"""
COINS = ma.instances.planted(n=60, m=3)
MANY = ma.instances.planted(n=10**9, m=10**8)
DRAWN = ma.instances.reservoir(Pareto(2.0, 1.7), rewards=Tips(16.0))
NOISY = ma.instances.planted(n=60, m=3, rewards=ma.instances.Gaussian())
CASES: list[tuple[ma.Policy, dict[str, Any]]] = [
    (ma.MOSS(), {"instance": MANY, "horizon": 1100}),
    (ma.MOSSPlusPlus(), {"instance": NOISY, "horizon": 300}),
    (ma.Parallel(), {"instance": COINS, "horizon": 200, "delay": 3}),
    (ma.MOSS(), {"instance": DRAWN, "horizon": 100}),
]


def small() -> Sweep:
    cells = [
        cell(
            ma.MOSS(),
            ma.instances.planted(n=50, m=m),
            horizon=60,
            replications=3,
            parameters={"m": m},
        )
        for m in (2, 5)
    ]
    return Sweep("run", tuple(cells))


@compiler
def test_the_simulator_plays_like_the_cpu() -> None:
    for policy, options in CASES:  # compiled here, because a process's first kernel is slow
        ma.simulate(policy, replications=1, **options)
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": _path()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SIMULATED],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _path() -> str:
    return os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])


def test_without_a_gpu_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ma.errors.MissingExtraError, match=r"pip install \"manyarms\[cuda\]\""):
        ma.simulate(ma.MOSS(), COINS, horizon=10, engine="cuda")


@pytest.mark.compiled
def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_compiler, "cuda", lambda: _NoDriver)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)  # numba-cuda is installed
    with pytest.raises(DeviceError, match=r"No GPU can be used: no driver\..*engine=\"threads\""):
        gpu_compiler.need_gpu()


class _NoDriver:
    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def cuda_error() -> str:
        return "no driver"


def test_a_full_tape_is_reported() -> None:
    reel, world = tape(BOUNDED, 60, 2), COINS.world(10)
    rewind(reel)
    assert [record_of(reel, world, 7, arm) for arm in (5, 6, 5)] == [0, 1, 0]
    assert record_of(reel, world, 7, 8) == NO_ROOM


def test_lanes_get_narrower_with_more_load() -> None:
    load = gpu_memory.Load(64)
    widths = []
    for _ in range(4):
        load.add(4)
        widths.append(load.width())
    assert widths == [8, 8, 4, 4]
