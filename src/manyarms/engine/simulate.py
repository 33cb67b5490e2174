"""Play policies on an instance many times: checks, chunks, threads, progress."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.engine.progress import Progress, progress_for
from manyarms.engine.workbench import Late, Workbench
from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance
from manyarms.protocol.keys import run_key
from manyarms.protocol.policy import Policy
from manyarms.results import Result

__all__ = ["simulate"]

_CHECKPOINTS = 100
_MOST_PULLS = 1 << 40


def simulate(
    policies: Policy | Sequence[Policy],
    instance: Instance,
    *,
    horizon: int,
    replications: int = 100,
    first_replication: int = 0,
    seed: int = 0,
    workers: int | None = None,
    checkpoints: int | Iterable[int] | None = None,
    delay: int = 0,
    batch: int = 1,
    record_arms: bool = False,
    progress: bool | Progress | None = None,
) -> Result:
    """Play every policy on the instance, `replications` times.

    The k-th reward of an arm is the same for all policies of a replication, so differences
    between policies are paired. The result is the same, bit for bit, for any number of workers,
    and a policy's regret does not depend on which others are played beside it.

    Parameters
    ----------
    policies
        One policy or several.
    instance
        What to play on.
    horizon
        The number of pulls.
    replications
        The number of independent repetitions.
    first_replication
        The number of the first one: replications 50 to 99 of a run may be played alone, and are
        the same as when all 100 are.
    seed
        Decides everything random.
    workers
        The number of threads; as many as there are processors unless given.
    checkpoints
        The times at which regret is recorded, or how many of them, evenly spread; the horizon
        is always one. 100 unless given.
    delay
        How many further pulls are asked for before the reward of a pull is told; 0 is in turn.
    batch
        How many pulls are asked for at once, their rewards then told together; 1 is in turn.
    record_arms
        Whether to keep the arm of every pull (8 bytes each).
    progress
        True or False, or a callable that takes (done, total, note). By default a line on a
        terminal, for simulations of more than a second.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=1000, alpha=0.2, horizon=2000)
    >>> result = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=2000, replications=3)
    >>> result.regret.shape
    (1, 3, 100)
    """
    chosen = _check_policies(policies)
    if not isinstance(instance, Instance):
        raise ParameterError(
            f"`instance` must be an Instance such as instances.planted(...), got {instance!r}."
        )
    horizon = check_int("horizon", horizon, at_least=1, at_most=_MOST_PULLS)
    replications = check_int("replications", replications, at_least=1)
    first = check_int("first_replication", first_replication, at_most=_MOST_PULLS)
    workers = check_int("workers", _processors() if workers is None else workers, at_least=1)
    times = _check_times(checkpoints, horizon)
    late = _check_late(delay, batch)
    run_key(seed)  # checks it

    report = progress_for(progress)
    total = len(chosen) * replications * horizon
    benches = [
        Workbench(
            policy,
            instance,
            times=times,
            first=first,
            replications=replications,
            seed=seed,
            record_arms=record_arms,
            late=late,
        )
        for policy in chosen
    ]
    for bench in benches:
        report(0, total, f"compiling {bench.policy.label}")
        bench.compile()
    _play_all(benches, workers, total, report)
    return _gather(benches, instance, times, seed, first)


def _play_all(benches: list[Workbench], workers: int, total: int, report: Progress) -> None:
    stop = threading.Event()
    counts: queue.SimpleQueue[int] = queue.SimpleQueue()
    done = 0
    pool = ThreadPoolExecutor(workers, thread_name_prefix="manyarms")
    try:
        pending = {
            pool.submit(bench.play, block, stop, counts.put)
            for bench in benches
            for block in bench.blocks(workers)
        }
        while pending:
            finished, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            while not counts.empty():
                done += counts.get()
            report(done, total, "")
    finally:
        # after Ctrl-C or an error: the pieces in flight end, nothing else begins
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _gather(
    benches: list[Workbench],
    instance: Instance,
    times: NDArray[np.int64],
    seed: int,
    first_replication: int,
) -> Result:
    arms = np.stack([bench.arms for bench in benches])
    labels = _labels([bench.policy for bench in benches])
    return Result(
        policies=labels,
        specifications=tuple(repr(bench.policy) for bench in benches),
        instance=instance.label,
        n_arms=instance.n_arms,
        best_mean=instance.best_mean,
        horizon=int(times[-1]),
        seed=seed,
        first_replication=first_replication,
        times=times,
        regret=np.stack([bench.regret[:, :-1] for bench in benches]),
        best_pulls=np.stack([bench.best_pulls for bench in benches]),
        distinct_arms=np.stack([bench.distinct_arms for bench in benches]),
        recommended=np.stack([bench.recommended for bench in benches]),
        arms=arms if arms.shape[2] > 0 else None,
        seconds={label: sum(b.seconds) for label, b in zip(labels, benches, strict=True)},
    )


def _check_policies(policies: Any) -> list[Policy]:
    if isinstance(policies, str) or not isinstance(policies, Policy | Iterable):
        policies = [policies]  # refused below, in words that fit
    chosen = [policies] if isinstance(policies, Policy) else list(policies)
    if not chosen:
        raise ParameterError("`policies` must hold at least one policy, got none.")
    for policy in chosen:
        if not isinstance(policy, Policy):
            fix = (
                f"For a name use policy({policy!r})."
                if isinstance(policy, str)
                else ("A class becomes a policy by calling it.")
            )
            raise ParameterError(
                f"`policies` must hold policies such as MOSSPlusPlus(), got {policy!r}. {fix}"
            )
    labels = [policy.label for policy in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError(f"`policies` must differ, got {label} twice. Leave one out.")
    return chosen


def _labels(policies: list[Policy]) -> tuple[str, ...]:
    """Call policies by name, and by their parameters where names are not enough."""
    names = [policy.name for policy in policies]
    return tuple(
        policy.name if names.count(policy.name) == 1 else policy.label for policy in policies
    )


def _check_times(checkpoints: Any, horizon: int) -> NDArray[np.int64]:
    if checkpoints is None:
        checkpoints = min(_CHECKPOINTS, horizon)
    if not isinstance(checkpoints, Iterable) or getattr(checkpoints, "ndim", 1) == 0:
        count = check_int("checkpoints", checkpoints, at_least=1, at_most=horizon)
        times = [horizon * (k + 1) // count for k in range(count)]
    else:
        times = [
            check_int("checkpoints", time, at_least=1, at_most=horizon) for time in checkpoints
        ]
    return np.array(sorted({*times, horizon}), dtype=np.int64)


def _check_late(delay: Any, batch: Any) -> Late | None:
    delay = check_int("delay", delay, at_most=_MOST_PULLS)
    batch = check_int("batch", batch, at_least=1, at_most=_MOST_PULLS)
    if delay > 0 and batch > 1:
        raise ParameterError(
            f"`delay` or `batch` must be left out, got delay={delay} and batch={batch}. Rewards "
            f"come late one by one, or in batches."
        )
    return Late(delay, batch) if delay > 0 or batch > 1 else None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):  # what this process may use, where that can be told
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
