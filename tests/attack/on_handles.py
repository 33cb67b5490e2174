"""Attacks on handles: damaged and crafted files, forks, signals and interrupts."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.policies import field
from tests.attack.runner import Attempt, Workspace, attack, in_child, survives
from tests.helpers import flipped
from tests.inference.random_events import counts, in_turn, new, step
from tests.live.crafted import (
    crafted_bytes,
    crafted_events,
    inflating_bytes,
    opened,
    opened_and_played,
    played,
    replayed,
)
from tests.live.forking import what_forks_say
from tests.live.stores import copied, known


@attack("snapshot: every bit flipped, every byte cut off")
def damaged_handles(workspace: Workspace) -> Iterator[Attempt]:
    live = played(ma.MOSSPlusPlus())
    data = known(live)
    for bit in range(8 * len(data)):
        yield f"bit {bit}", _is_refused_or_the_same(live, flipped(data, bit))
    for end in range(len(data)):
        yield f"cut at {end}", _is_refused(live, data[:end])


def _is_refused(live: ma.Live, data: bytes) -> bool:
    try:
        opened(live, data)
    except ma.SavedFileError:
        return True
    return False


def _is_refused_or_the_same(live: ma.Live, data: bytes) -> bool:
    """Unused bits in a snapshot's last byte may change; the store's checksum covers them."""
    try:
        return known(opened(live, data)) == known(live)
    except ma.SavedFileError:
        return True


# Crafted files have correct checksums


@attack("snapshot: crafted")
def crafted_handles(workspace: Workspace) -> Iterator[Attempt]:
    policies = (ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Prospector(), field.UCB1())
    for number, policy in enumerate(policies):
        yield from in_child(_craft, policy, number)


def _craft(policy: ma.Policy, seed: int) -> Iterator[Attempt]:
    live = played(policy)
    same = partial(opened, live, known(live))
    yield f"{policy}, unchanged", opened_and_played(same) == "played"
    for number, crafted in enumerate(crafted_bytes(known(live), one_in=6, seed=seed)):
        make = partial(opened, live, crafted)
        ends = partial(opened_and_played, make, seconds=1.0)  # it may never end
        yield f"{policy}, snapshot {number}", survives(ends)


@attack("snapshot: crafted, larger than memory")
def inflating_handles(workspace: Workspace) -> Iterator[Attempt]:
    live = played(ma.MOSS())
    for number, data in enumerate(inflating_bytes()):
        yield f"snapshot {number}", _is_refused(live, data)


@attack("log: crafted events")
def crafted_logs(workspace: Workspace) -> Iterator[Attempt]:
    policies = (ma.MOSS(), ma.MOSSPlusPlus(), ma.Doubling(ma.MOSS()), field.UCB1())
    for seed, policy in enumerate((*policies, field.Thompson())):
        yield from in_child(_craft_events, policy, seed)


def _craft_events(policy: ma.Policy, seed: int) -> Iterator[Attempt]:
    live, chance = played(policy, moves=False), random.Random(seed)
    before = copied(live)
    live._experiment.log = []
    in_turn(live, 60)
    for number in range(200):
        make = partial(replayed, before, crafted_events(chance, live._experiment.log))
        yield f"{policy}, log {number}", opened_and_played(make) != "hung"


# Calls that are interrupted


@attack("handle: forks while threads are busy")
def forks(workspace: Workspace) -> Iterator[Attempt]:
    for path in (None, workspace.folder / "experiment"):
        said = what_forks_say(100, path)
        for number in range(100):
            words = said[number] if number < len(said) else "nothing"
            refused = words.count("and this is a forked process") == 2
            went_on = "went on" in words or "not finished" in words
            yield f"fork {number} of {path} said {words}", refused if path else went_on
    with ma.load(workspace.folder / "experiment") as live:
        yield "the experiment continues", live.pulls > 0


@attack("handle: used in signal handlers")
def signals(workspace: Workspace) -> Iterator[Attempt]:
    for path in (None, workspace.folder / "experiment"):
        yield from in_child(_signal, path, 700)


def _signal(path: Path | None, count: int) -> Iterator[Attempt]:
    """Query or ask in a handler; this is refused, or acts as if before or after the call."""
    live, seen = _begun(path), list[Any]()

    def handler(*_: object) -> None:
        try:
            seen.append(repr(live.arms()) if len(tried) % 2 else live.ask().id)
        except (ma.TurnError, ma.StoreError):
            seen.append("refused")

    tried: list[bool] = []
    while len(tried) < count:
        seen.clear()
        before, asked = repr(live.arms()), {pull.id for pull in live.pending}
        _interrupted(partial(step, live), handler, len(tried))
        if not seen:  # the signal came too late
            continue
        if isinstance(seen[0], str):
            held = seen[0] in ("refused", before, repr(live.arms()))
        else:
            ids = [pull.id for pull in live.pending]
            held = sorted(set(ids)) == ids and seen[0] not in asked
        shown = live.progress()
        held &= shown.pulls == shown.told + len(live.pending) + shown.abandoned
        tried.append(held)
        yield f"signal {len(tried)}", held


@attack("handle: Ctrl-C during calls")
def interrupts(workspace: Workspace) -> Iterator[Attempt]:
    for path in (None, workspace.folder / "experiment"):
        yield from in_child(_interrupt, path, 300)


def _interrupt(path: Path | None, count: int) -> Iterator[Attempt]:
    """Check that the handle is as before or after the call, or refuses, and reopens correctly."""

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    live, tried = _begun(path), 0
    kept: set[bytes] = set()  # possible states of its store
    while tried < count:
        before, done = copied(live), copied(live)
        step(done)
        whole = {known(before), known(done)}
        kept |= whole
        try:
            interrupted = _interrupted(partial(step, live), handler, tried)
            live.progress()
            held = not interrupted or known(live) in whole
        except (ma.TurnError, ma.StoreError):  # closed, now or by an earlier interrupt of a write
            live.close()
            live = _begun(path) if path else before
            held = known(live) in kept
            interrupted = True
        if not interrupted:
            kept.clear()
            continue
        tried += 1
        yield f"Ctrl-C {tried}, at {counts(live)}", held


def _begun(path: Path | None) -> ma.Live:
    return new(horizon=50_000, store=path, now=lambda: 1e9)


def _interrupted(action: Callable[[], object], handler: Any, seed: int) -> bool:
    """Run an action, with a signal at a random moment; return whether it was interrupted."""
    after = random.Random(seed + os.getpid()).uniform(5e-6, 2e-4)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            action()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGALRM, before)
    return False
