"""Simulate in memory: policies on one instance, or a whole sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance
from manyarms.protocol.policy import Policy
from manyarms.simulation.chunks import Chunk, plan
from manyarms.simulation.executors import (
    Meter,
    check_engine,
    chunk_player,
    play_chunks,
    processors,
)
from manyarms.simulation.progress import ProgressCallback, progress_for
from manyarms.simulation.results import Result, cell_facts, result_of
from manyarms.simulation.runner import Played
from manyarms.simulation.sweep import Cell, Engine, Sweep, cell
from manyarms.simulation.sweep_results import SweepResults

_MOST_NUMBERS = 10**9  # 8 GB
_PARTS = 4  # chunks per player and thread


def simulate(
    policies: Policy | type | Sequence[Policy | type],
    instance: Instance,
    *,
    horizon: int,
    replications: int = 100,
    first_replication: int = 0,
    seed: int = 0,
    workers: int | None = None,
    engine: Engine = "threads",
    executor: Executor | None = None,
    checkpoints: int | Iterable[int] | None = None,
    delay: int = 0,
    batch: int = 1,
    record_arms: bool = False,
    progress: bool | ProgressCallback | None = None,
) -> Result:
    """Simulate each policy on the instance, `replications` times.

    The k-th reward of an arm is the same for all policies of a replication, so differences
    between policies are paired. On processors of one kind, results are bit-identical for any number
    of workers and any executor. A policy's regret does not depend on the other policies that are
    simulated. Another processor, a GPU or another C library may round the last bit of a logarithm
    differently. A run then differs if a choice depends on that bit.

    Parameters
    ----------
    policies
        One policy or several. A plain class with `ask` and `tell` is accepted (see `plain_policy`).
    instance
        The instance to simulate.
    horizon
        The number of pulls.
    replications
        The number of independent repetitions (default: 100).
    first_replication
        The number of the first replication (default: 0). Replications 50 to 99 can be simulated
        alone; they are the same as in a run of all 100.
    seed
        The seed of all random numbers (default: 0).
    workers
        The number of threads, or of the executor's workers (default: the number of processors).
    engine
        "threads" (default), threads of this process; or "cuda", a GPU, which needs the extra
        `cuda`.
    executor
        An executor of `concurrent.futures` to use instead of threads, such as a
        `ProcessPoolExecutor` or Dask's `client.get_executor()` (default: none). It is not shut
        down.
    checkpoints
        The times at which regret is recorded, or the number of evenly spaced times (default: 100).
        The horizon is always one of them.
    delay
        The number of further pulls that are asked for before the reward of a pull is told (default:
        0).
    batch
        The number of pulls that are asked for at once. Their rewards are told together (default:
        1).
    record_arms
        Whether to keep the arm of every pull (8 bytes each; default: False).
    progress
        Whether to show a progress line, or a callable that takes (done, total, note). By default a
        line is shown on a terminal if the simulation takes more than a second.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=1000, alpha=0.2, horizon=2000)
    >>> result = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=2000, replications=3)
    >>> result.regret.shape
    (1, 3, 100)
    """
    only = cell(
        policies,
        instance,
        horizon=horizon,
        replications=replications,
        first_replication=first_replication,
        checkpoints=checkpoints,
        delay=delay,
        batch=batch,
    )
    sweep = Sweep("simulation", (only,), seed)
    how: dict[str, Any] = {"workers": workers, "engine": engine, "executor": executor}
    return run_in_memory(sweep, **how, record_arms=record_arms, progress=progress).cells[0]


def run_in_memory(
    sweep: Sweep,
    *,
    workers: int | None = None,
    engine: Engine = "threads",
    executor: Executor | None = None,
    record_arms: bool = False,
    progress: bool | ProgressCallback | None = None,
) -> SweepResults:
    """Run a sweep and return its results, without writing files.

    Parameters
    ----------
    sweep
        The sweep to run.
    workers, engine, executor, record_arms, progress
        As for `simulate`.

    Examples
    --------
    >>> import manyarms as ma
    >>> coins = ma.instances.planted(n=100, m=5)
    >>> short = cell(ma.MOSS(), coins, horizon=50, replications=3)
    >>> [result.regret.shape for result in run_in_memory(Sweep("short", (short,))).cells]
    [(1, 3, 50)]
    """
    check_engine(engine, executor, workers)
    _check_memory(sweep, record_arms)
    _check_recorded(sweep, record_arms)
    meter = Meter(sweep.pulls, progress_for(progress))
    played: defaultdict[tuple[int, int], dict[int, Played]] = defaultdict(dict)

    def keep(chunk: Chunk, part: Played) -> None:
        played[chunk.cell_number, chunk.player_number][chunk.first] = part

    player = chunk_player(
        engine,
        executor,
        seed=sweep.seed,
        workers=workers,
        meter=meter,
        record_arms=record_arms,
    )
    # small chunks, so that no thread is idle for long
    chunks = plan(sweep, parts=_PARTS * processors(workers))
    play_chunks(chunks, player, meter, keep)
    meter.show()
    cells = [
        _gather(sweep, each, [played[number, k] for k in range(len(each.players))])
        for number, each in enumerate(sweep.cells)
    ]
    return SweepResults(cells, sweep.objective)


def _check_memory(sweep: Sweep, record_arms: bool) -> None:
    """Raise an error if the results of a sweep do not fit into memory."""
    numbers = sum(
        player.replications * (len(each.times) + 3 + each.horizon * record_arms)
        for each in sweep.cells
        for player in each.players
    )
    if numbers > _MOST_NUMBERS:
        arms = " and every pull" if record_arms else ""
        raise ParameterError(
            f"`replications` must be small enough for {_MOST_NUMBERS:.0e} numbers in memory, one "
            f"for each policy, replication and checkpoint{arms}, got {numbers:.3g}. Use fewer "
            f"replications or `checkpoints`, or write results to a folder with `simulation.run`.",
            parameter="replications",
        )


def _check_recorded(sweep: Sweep, record_arms: bool) -> None:
    """Raise an error if the arms of a cell would not fit into one array."""
    for each in sweep.cells if record_arms else ():
        counts = {player.label: player.replications for player in each.players}
        if len(set(counts.values())) > 1:
            raise ParameterError(
                f"`record_arms` must be False if policies have different numbers of replications, "
                f"got {counts}. Give them the same number, or different cells.",
                parameter="record_arms",
            )


def _gather(sweep: Sweep, each: Cell, played: list[dict[int, Played]]) -> Result:
    """Join the chunks of a cell; `played` has them by player and first replication."""
    own = [[parts[first] for first in sorted(parts)] for parts in played]
    arms = [[part.arms for part in mine if part.arms is not None] for mine in own]
    spent = [sum(part.seconds for part in mine) for mine in own]
    return result_of(
        cell_facts(each),
        seed=sweep.seed,
        objective=sweep.objective,
        times=np.array(each.times, np.int64),
        rows=tuple(np.concatenate([part.rows for part in mine]) for mine in own),
        arms=np.stack([np.concatenate(mine) for mine in arms]) if all(arms) else None,
        seconds={player.label: s for player, s in zip(each.players, spent, strict=True)},
    )
