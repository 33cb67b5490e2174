"""Attacks on handles: what is saved is damaged or crafted, and calls are broken into."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.live.store import Event
from manyarms.policies import field
from tests.attack.arena import Arena, Attempt, attack, in_child, survives
from tests.helpers import flipped
from tests.inference.games import counts, in_turn, new, step
from tests.live.crafted import (
    crafted_bytes,
    crafted_events,
    inflating_bytes,
    journal_of,
    opened_and_played,
    saved,
)
from tests.live.forking import what_forks_say
from tests.live.stores import on_shelf


@attack("handle: every bit flipped, every byte cut off")
def damaged_handles(arena: Arena) -> Iterator[Attempt]:
    data = saved(ma.MOSSPlusPlus())
    for bit in range(8 * len(data)):
        yield f"bit {bit}", _is_refused(flipped(data, bit))
    for end in range(len(data)):
        yield f"cut at {end}", _is_refused(data[:end])


def _is_refused(data: bytes) -> bool:
    try:
        ma.Live.from_bytes(data)
    except ma.SavedFileError:
        return True
    return False


# Crafted files: their checksums are right


@attack("handle: crafted")
def crafted_handles(arena: Arena) -> Iterator[Attempt]:
    policies = (ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Prospector(), field.UCB1())
    for number, policy in enumerate(policies):
        yield from in_child(_craft, policy, number)


def _craft(policy: ma.Policy, seed: int) -> Iterator[Attempt]:
    data = saved(policy)
    yield f"{policy.label}, unchanged", opened_and_played(data) == "played"
    for number, crafted in enumerate(crafted_bytes(data, one_in=6, seed=seed)):
        played = partial(opened_and_played, crafted, seconds=1.0)  # it may play for ever
        yield f"{policy.label}, file {number}", survives(played)


@attack("handle: crafted, of more than memory holds")
def inflating_handles(arena: Arena) -> Iterator[Attempt]:
    for number, data in enumerate(inflating_bytes()):
        yield f"file {number}", _is_refused(data)


@attack("journal: crafted events")
def crafted_journals(arena: Arena) -> Iterator[Attempt]:
    policies = (ma.MOSS(), ma.MOSSPlusPlus(), ma.Doubling(ma.MOSS()), field.UCB1())
    for seed, policy in enumerate((*policies, field.Thompson())):
        yield from in_child(_craft_events, policy, seed)


def _craft_events(policy: ma.Policy, seed: int) -> Iterator[Attempt]:
    snapshot, events = _recorded(policy)
    chance = random.Random(seed)
    for number in range(200):
        data = journal_of(snapshot, crafted_events(chance, events))
        yield f"{policy.label}, journal {number}", opened_and_played(data) != "hung"


def _recorded(policy: ma.Policy) -> tuple[bytes, list[Event]]:
    """Return a snapshot, and the events that follow it."""
    live = ma.Live.from_bytes(saved(policy, moves=False))
    kept = on_shelf(live)
    in_turn(live, 60)
    return kept


# Calls that are broken into


@attack("handle: forks while threads are busy")
def forks(arena: Arena) -> Iterator[Attempt]:
    for path in (None, arena.folder / "game"):
        said = what_forks_say(100, path)
        for number in range(100):
            words = said[number] if number < len(said) else "nothing"
            refused = words.count("and this one is its fork") == 2
            went_on = "went on" in words or "not done" in words
            yield f"fork {number} of {path} said {words}", refused if path else went_on
    with ma.recorded(arena.folder / "game") as live:
        yield "the journal goes on", live.pulls > 0


@attack("handle: used within signal handlers")
def signals(arena: Arena) -> Iterator[Attempt]:
    for path in (None, arena.folder / "game"):
        yield from in_child(_signal, path, 700)


def _signal(path: Path | None, count: int) -> Iterator[Attempt]:
    """Save, or ask, in a handler: refused, or as if it came before or after the call."""
    live, seen = _begun(path), list[Any]()

    def handler(*_: object) -> None:
        try:
            seen.append(live.to_bytes() if len(tried) % 2 else live.ask().id)
        except (ma.TurnError, ma.StoreError):
            seen.append("refused")

    tried: list[bool] = []
    while len(tried) < count:
        seen.clear()
        before, known = live.to_bytes(), {pull.id for pull in live.pending}
        _interrupted(partial(step, live), handler, len(tried))
        if not seen:  # it came too late
            continue
        if isinstance(seen[0], bytes):
            held = seen[0] in (before, live.to_bytes())
        else:
            ids = [pull.id for pull in live.pending]
            held = sorted(set(ids)) == ids and seen[0] not in known
        shown = live.progress()
        held &= shown.pulls == shown.told + len(live.pending) + shown.abandoned
        tried.append(held)
        yield f"signal {len(tried)}", held


@attack("handle: Ctrl-C within calls")
def interrupts(arena: Arena) -> Iterator[Attempt]:
    for path in (None, arena.folder / "game"):
        yield from in_child(_interrupt, path, 300)


def _interrupt(path: Path | None, count: int) -> Iterator[Attempt]:
    """Afterwards the handle is as before or after the call, or refuses; its journal goes on."""

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    live, tried = _begun(path), 0
    kept: set[bytes] = set()  # what its journal may hold, since a call was not interrupted
    while tried < count:
        before = live.to_bytes()
        done = ma.Live.from_bytes(before)
        step(done)
        whole = {before, done.to_bytes()}
        kept |= whole
        try:
            interrupted = _interrupted(partial(step, live), handler, tried)
            held = not interrupted or live.to_bytes() in whole
        except (ma.TurnError, ma.StoreError):  # shut, now or by one that came into a write
            live.close()
            live = _begun(path) if path else ma.Live.from_bytes(before)
            held = live.to_bytes() in kept
            interrupted = True
        if not interrupted:
            kept.clear()
            continue
        tried += 1
        yield f"Ctrl-C {tried}, at {counts(live)}", held


def _begun(path: Path | None) -> ma.Live:
    live = new(horizon=50_000)
    return live if path is None else ma.recorded(ma.Journal(path, sync="never"), live)


def _interrupted(action: Callable[[], object], handler: Any, seed: int) -> bool:
    """Do something, with a signal at some moment; return whether it was interrupted by it."""
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
