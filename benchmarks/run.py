"""Measure every number that the project states about speed and memory.

    python benchmarks/run.py                  all but field, gpu and peers
    python benchmarks/run.py pulls live       some
    python benchmarks/run.py field            all policies that are not the paper's (minutes)
    python benchmarks/run.py gpu              a GPU against all processors (minutes)
    python benchmarks/run.py peers            other libraries (installs them into environments)
    python benchmarks/run.py pulls live recorded --json FILE    ratios to the floor, for `speed.py`

Machines are shared and noisy, so each cost is the best of several repetitions. It is compared with
the floor, or with another cost, measured alternately with it. Ratios carry over to other machines
better than nanoseconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import manyarms as ma
from manyarms.core.jit import compiled
from manyarms.core.rng import draw, unit
from speed import entry

HERE = Path(__file__).parent
HORIZON, N_ARMS, ALPHA = 50_000, 20_000, 0.4
LIMITS = {  # multiples of the floor
    "moss": 60,
    "moss-oracle": 20,
    "quantile": 20,
    "parallel": 35,
    "moss++": 20,
    "empmoss++": 20,
}

KNOWN: dict[str, dict[str, object]] = {  # parameters that policies need at alpha = 0.4
    "patience": {"best_mean": 0.9},
    "moss-oracle": {"alpha": ALPHA},
    "parallel": {"best_mean": 0.9},
    "anytime-parallel": {"best_mean": 0.9},
}


class Measured(NamedTuple):
    """Costs as multiples of the floor measured alternately with them, and floors in nanoseconds."""

    ratios: dict[str, float]
    floors: dict[str, float]


def paper_policies(alpha: float = ALPHA) -> list[ma.Policy]:
    return [
        ma.MOSS(),
        ma.MOSSOracle(alpha=alpha),
        ma.Quantile(),
        ma.Parallel(best_mean=0.9),
        ma.MOSSPlusPlus(beta=0.5),
        ma.EmpMOSSPlusPlus(beta=0.5),
    ]


def eight_policies() -> list[ma.Policy]:
    doubled = [ma.Doubling(ma.MOSSPlusPlus()), ma.Doubling(ma.Parallel(best_mean=0.9))]
    return [*paper_policies(), *doubled]


def _floor_loop(keys: Any, mean: float, count: int) -> float:
    regret = 0.0
    for k in range(count):
        if unit(draw(keys[0], k)) < mean:
            regret += 0.1
    return regret


def floor() -> float:
    """Return the seconds per pull of a loop that hashes a counter, compares, and adds regret."""
    loop, keys, count = compiled(_floor_loop), np.array([1], np.uint64), 5_000_000
    loop(keys, 0.9, 1)
    begun = time.process_time()
    loop(keys, 0.9, count)
    return (time.process_time() - begun) / count


def python_floor() -> float:
    """Return the processor seconds per pull of the same loop in CPython, the floor of live use."""
    begun, count = time.process_time(), 50_000
    _floor_loop([1], 0.9, count)
    return (time.process_time() - begun) / count


def seconds_per_pull(policy: ma.Policy, *, n: int, horizon: int, replications: int) -> float:
    """Return the processor time per pull of a simulation, without the 2 ms overhead of a call.

    Processor time, because the machine may run other work.
    """
    played, begun = (
        _simulated(policy, n=n, horizon=pulls, replications=replications) for pulls in (horizon, 1)
    )
    return (played - begun) / ((horizon - 1) * replications)


def _simulated(policy: ma.Policy, *, n: int, horizon: int, replications: int) -> float:
    instance = ma.instances.planted(n=n, alpha=ALPHA, horizon=HORIZON)
    begun = time.process_time()
    ma.simulate(
        policy,
        instance,
        horizon=horizon,
        replications=replications,
        workers=1,
        checkpoints=1,
        progress=False,
    )
    return time.process_time() - begun


def best_of(repetitions: int, *measures: Callable[[], float]) -> list[float]:
    """Return the best of each measure; measures alternate."""
    for measure in measures:
        measure()  # compile, touch memory
    rounds = [[measure() for measure in measures] for _ in range(repetitions)]
    return [min(values) for values in zip(*rounds, strict=True)]


def pulls() -> Measured:
    """Measure the cost per pull against the floor."""
    title(f"cost per pull: n = {N_ARMS}, T = {HORIZON}, alpha = {ALPHA}, reward tape included")
    return _cost_per_pull(eight_policies(), replications=40)


def field() -> Measured:
    """Measure the same for every other registered policy."""
    title(f"cost per pull of other policies: n = {N_ARMS}, T = {HORIZON}, alpha = {ALPHA}")
    paper = {policy.name for policy in paper_policies()} | {"anytime-moss++", "anytime-parallel"}
    names = [name for name in ma.policy_names() if name not in paper]
    policies = [ma.policy(name, **KNOWN.get(name, {})) for name in names]
    return _cost_per_pull(policies, replications=4)


def _cost_per_pull(policies: list[ma.Policy], *, replications: int) -> Measured:
    ratios = {}
    grounds = []
    print(f"{'policy':<22}{'ns':>8}{'floors':>8}{'limit':>8}")
    for policy in policies:
        cost, ground = best_of(
            7,
            partial(seconds_per_pull, policy, n=N_ARMS, horizon=HORIZON, replications=replications),
            floor,
        )
        limit = LIMITS.get(policy.name, "")
        print(f"{policy.name:<22}{cost * 1e9:>8.1f}{cost / ground:>8.1f}{limit:>8}")
        ratios[f"simulated/{policy.name}"] = cost / ground
        grounds.append(ground * 1e9)
    print(f"{'the floor':<22}{min(grounds):>8.2f}")
    return Measured(ratios, {"simulated": min(grounds)})


def figure() -> None:
    """Time all of Figure 2(a), after compilation."""
    title("Figure 2(a): 6 policies, 9 hardnesses, 100 replications, 50000 pulls: 270 million pulls")
    for policy in paper_policies():
        seconds_per_pull(policy, n=100, horizon=10, replications=1)
    workers = len(os.sched_getaffinity(0))
    begun = time.perf_counter()
    for alpha in (k / 10 for k in range(1, 10)):
        instance = ma.instances.planted(n=N_ARMS, alpha=alpha, horizon=HORIZON)
        ma.simulate(
            paper_policies(alpha), instance, horizon=HORIZON, replications=100,
            checkpoints=1, workers=workers, progress=False,
        )  # fmt: skip
    seconds = time.perf_counter() - begun
    print(f"{seconds:.1f} s on {workers} processors, {270 / seconds:.0f} million pulls per second")
    print("(its authors' code: 12 hours on 40 cores)")


def arms() -> None:
    """Show that cost and memory do not depend on the number of arms."""
    title(
        f"flat in n: T = {HORIZON}, ns per pull and peak memory of a process with 20 replications"
    )
    print(f"{'policy':<12}{'n = 10^5':>10}{'n = 10^9':>10}{'ratio':>8}{'MB':>10}{'MB':>10}")
    for policy in (ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()):
        few, many = best_of(
            7,
            partial(seconds_per_pull, policy, n=10**5, horizon=HORIZON, replications=20),
            partial(seconds_per_pull, policy, n=10**9, horizon=HORIZON, replications=20),
        )
        memory = [_peak_megabytes(policy, n) for n in (10**5, 10**9)]
        print(
            f"{policy.name:<12}{few * 1e9:>10.1f}{many * 1e9:>10.1f}{many / few:>8.2f}"
            f"{memory[0]:>10.1f}{memory[1]:>10.1f}"
        )


def _peak_megabytes(policy: ma.Policy, n: int) -> float:
    return _megabytes(
        f"instance = ma.instances.planted(n={n}, alpha={ALPHA}, horizon={HORIZON})\n"
        f"ma.simulate(ma.policy({policy.name!r}), instance, horizon={HORIZON}, replications=20,"
        " workers=1)\n"
    )


def _megabytes(code: str) -> float:
    """Return the peak memory of a process that runs the code."""
    # VmHWM, because getrusage includes the size of the parent process
    most = (
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(*(line.split()[1] for line in lines if line.startswith('VmHWM')))"
    )
    return int(_python(f"import manyarms as ma\n{code}{most}")) / 1024


def horizon() -> None:
    """Show that the cost per pull does not grow with the horizon."""
    title("linear in T: MOSS++, n = 10^6, ns per pull")
    short, long = best_of(
        3,
        partial(seconds_per_pull, ma.MOSSPlusPlus(), n=10**6, horizon=10**5, replications=100),
        partial(seconds_per_pull, ma.MOSSPlusPlus(), n=10**6, horizon=10**7, replications=2),
    )
    print(f"T = 10^5: {short * 1e9:.1f}, T = 10^7: {long * 1e9:.1f}, ratio {long / short:.2f}")


def workers() -> None:
    """Compare two threads with one."""
    title("workers: 6 policies, 40 replications, 50000 pulls, wall-clock seconds")
    instance = ma.instances.planted(n=N_ARMS, alpha=ALPHA, horizon=HORIZON)

    def play(count: int) -> float:
        begun = time.perf_counter()
        ma.simulate(
            paper_policies(), instance, horizon=HORIZON, replications=40, workers=count,
            progress=False,
        )  # fmt: skip
        return time.perf_counter() - begun

    one, two = best_of(5, partial(play, 1), partial(play, 2))
    print(f"1 worker {one:.2f}, 2 workers {two:.2f}: {one / two:.2f} times as fast")


def gpu() -> None:
    """Compare a GPU, full and with 2000 replications, with all processors."""
    title(f"10^9 pulls per second: n = {N_ARMS}, T = {HORIZON}, alpha = {ALPHA}")
    instance = ma.instances.planted(n=N_ARMS, alpha=ALPHA, horizon=HORIZON)

    def rate(policy: ma.Policy, replications: int, engine: Literal["cuda", "threads"]) -> float:
        begun = time.perf_counter()
        ma.simulate(
            policy, instance, horizon=HORIZON, replications=replications, engine=engine,
            progress=False,
        )  # fmt: skip
        return replications * HORIZON / (time.perf_counter() - begun) / 1e9

    print(f"{'policy':<16}{'GPU, twice':>16}{'2000 runs':>12}{'processors':>12}{'times':>8}")
    for policy in (ma.Patience(), *paper_policies()):
        full = 101_376 if policy.name in ("moss", "parallel") else 202_752
        rate(policy, 2000, "cuda")  # compiles, and measures the memory that it needs
        one, two, few = (rate(policy, count, "cuda") for count in (full, full, 2000))
        rate(policy, 1, "threads")
        cores = rate(policy, 8000, "threads")
        numbers = f"{one:>8.2f}{two:>8.2f}{few:>12.2f}{cores:>12.2f}"
        print(f"{policy.name:<16}{numbers}{(one + two) / 2 / cores:>8.0f}", flush=True)


def start() -> None:
    """Time compilation, import and the first pull."""
    title("start-up, in new processes")
    every = (
        "import time, manyarms as ma\n"
        "begun = time.perf_counter()\n"
        "instance = ma.instances.planted(n=1000, m=10)\n"
        "policies = [ma.MOSS(), ma.MOSSOracle(m=10), ma.Quantile(), ma.Parallel(),\n"
        "            ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(),\n"
        "            ma.Doubling(ma.MOSSPlusPlus()), ma.Doubling(ma.Parallel())]\n"
        "ma.simulate(policies, instance, horizon=10, replications=1)\n"
        "print(time.perf_counter() - begun)"
    )
    one = (
        "import time; begun = time.perf_counter()\n"
        "import manyarms as ma\n"
        "imported = time.perf_counter()\n"
        "ma.MOSSPlusPlus, ma.simulate, ma.instances  # loads what is imported lazily\n"
        "loaded = time.perf_counter()\n"
        "ma.simulate(ma.MOSSPlusPlus(), ma.instances.planted(n=1000, m=10), horizon=1,"
        " replications=1)\n"
        "print(imported - begun, loaded - begun, time.perf_counter() - begun)"
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = float(_python(every, MANYARMS_CACHE=cache))
        warm = float(_python(every, MANYARMS_CACHE=cache))
        times = np.array([_python(one, MANYARMS_CACHE=cache).split() for _ in range(3)], float)
    imported, loaded, first = times.min(axis=0)
    print(f"all eight policies: {cold:.1f} s cold, {warm:.2f} s from the cache")
    print(f"import manyarms: {imported:.3f} s; with numpy and all our names: {loaded:.3f} s")
    print(f"first simulated pull of a process with a cache: {first:.2f} s after the import begins")


def live() -> Measured:
    """Measure ask + tell, in microseconds."""
    title("live ask + tell, microseconds of processor time, T = 20000, CPython only")
    sizes = (10**3, 10**6, 10**9)
    heads = [f"n = 10^{len(str(n)) - 1}" for n in sizes]
    print(f"{'policy':<18}" + "".join(f"{head:>10}" for head in heads) + f"{'largest / least':>18}")
    ratios = {}
    grounds = []
    for policy in eight_policies():
        *costs, ground = best_of(
            3, *(partial(live_seconds, policy, n) for n in sizes), python_floor
        )
        ratios[f"live/{policy.name}"] = costs[1] / ground
        grounds.append(ground * 1e9)
        row = "".join(f"{cost * 1e6:>10.1f}" for cost in costs)
        print(f"{policy.name:<18}{row}{max(costs) / min(costs):>18.2f}")
    for n, pulls in ((10**3, 0), (10**6, 20_000), (10**9, 20_000)):
        print(f"n = {n}, {pulls} pulls of MOSS++: {_live_megabytes(n, pulls):.1f} MB")
    return Measured(ratios, {"live": min(grounds)})


def live_seconds(
    policy: ma.Policy,
    n: int,
    horizon: int = 20_000,
    *,
    path: Path | None = None,
    durable: Literal["process", "power"] = "process",
    clock: Callable[[], float] = time.process_time,
) -> float:
    rewards = np.random.default_rng(1).integers(0, 2, horizon).astype(float).tolist()
    handle = policy.live(n_arms=n, horizon=horizon, seed=7, store=path, durable=durable)
    begun = clock()
    for reward in rewards:
        handle.tell(handle.ask(), reward)
    seconds = clock() - begun
    handle.close()
    if path is not None:
        path.unlink()
    return seconds / horizon


def _live_megabytes(n: int, pulls: int) -> float:
    return _megabytes(
        f"live = ma.MOSSPlusPlus().live(n_arms={n}, horizon=20000)\n"
        f"for _ in range({pulls}): live.tell(live.ask(), 1.0)\n"
    )


def recorded() -> Measured:
    """Measure the cost of recording."""
    ratios = {}
    grounds = []
    title("recorded in SQLite: ask + tell, microseconds of processor time, n = 10^6, T = 20000")
    print(f"{'policy':<18}{'without':>10}{'recorded':>10}{'ratio':>8}{'power, clock':>14}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        for policy in eight_policies():
            without, written, ground = best_of(
                3,
                partial(live_seconds, policy, 10**6),
                partial(live_seconds, policy, 10**6, path=path),
                python_floor,
            )
            ratios[f"recorded/{policy.name}"] = written / ground
            grounds.append(ground * 1e9)
            disk = partial(
                live_seconds, durable="power", clock=time.perf_counter
            )  # it waits for the disk
            synced = disk(policy, 10**6, horizon=200, path=path)
            costs = f"{without * 1e6:>10.1f}{written * 1e6:>10.1f}{written / without:>8.1f}"
            print(f"{policy.name:<18}{costs}{synced * 1e6:>14.0f}")
    return Measured(ratios, {"recorded": min(grounds)})


def reopening() -> None:
    """Measure the time to open a recorded experiment."""
    title("opening an experiment after 10^6 events, n = 10^6, seconds of processor time")
    print(f"{'policy':<18}{'open':>10}{'worst ask':>12}{'saved, kB':>12}{'save, ms':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for policy in (ma.MOSS(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()):
            _reopening(policy, Path(folder) / "shop.db")


def _reopening(policy: ma.Policy, path: Path, pulls: int = 500_000) -> None:
    rewards = np.random.default_rng(1).integers(0, 2, pulls).astype(float).tolist()
    handle = policy.live(n_arms=10**6, horizon=pulls, seed=7, store=path)
    worst = 0.0
    with handle:
        for reward in rewards:
            begun = time.process_time()
            pull = handle.ask()
            worst = max(worst, time.process_time() - begun)
            handle.tell(pull, reward)

    def opened() -> float:
        begun = time.process_time()
        ma.load(path).close()
        return time.process_time() - begun

    (opening,) = best_of(3, opened)
    begun = time.process_time()
    handle.save(saved := path.with_name("saved.db"))
    saving = time.process_time() - begun
    size = saved.stat().st_size
    path.unlink()
    costs = f"{opening:>10.2f}{worst:>12.3f}{size / 1e3:>12.0f}{saving * 1e3:>10.0f}"
    print(f"{policy.name:<18}{costs}")


def peers() -> None:
    """Compare with other libraries on the same loop."""
    title(f"microseconds per step at n = {N_ARMS}")
    script = [sys.executable, str(HERE / "peers" / "run_peers.py")]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    print(f"{'library':<36}{'microseconds':>14}")
    for row in map(json.loads, done.stdout.splitlines()):
        label = f"{row['peer']} {row.get('version', '')} {row.get('policy', '')}"
        print(f"{label:<36}{row.get('microseconds_per_step', row.get('reason')):>14}")
    for policy in paper_policies():
        cost = min(live_seconds(policy, N_ARMS, clock=time.perf_counter) for _ in range(3))
        print(f"{'manyarms live ' + policy.name:<36}{cost * 1e6:>14.1f}")
    for policy in paper_policies():
        cost = min(
            seconds_per_pull(policy, n=N_ARMS, horizon=HORIZON, replications=20) for _ in range(3)
        )
        print(f"{'manyarms simulated ' + policy.name:<36}{cost * 1e6:>14.3f}")


def title(text: str) -> None:
    print(f"\n{text}")


def _python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    every = (pulls, figure, arms, horizon, workers, start, live, recorded, reopening)
    benches: tuple[Callable[[], Measured | None], ...] = (*every, field, gpu, peers)
    named = {bench.__name__: bench for bench in benches}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ", ".join(named)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{names}; all but the last three if none"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where to write ratios to the floor"
    )
    given = parser.parse_args()
    chosen = given.names or [bench.__name__ for bench in every]
    for name in set(chosen) - set(named):
        parser.error(f"unknown benchmark {name!r}; known: {names}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors")
    ratios: dict[str, float] = {}
    floors: dict[str, float] = {}
    for name in chosen:
        measured = named[name]()
        if measured is not None:
            ratios |= measured.ratios
            floors |= measured.floors
    if given.json is not None:
        text = json.dumps(entry(ratios, floors), indent=1)
        given.json.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
