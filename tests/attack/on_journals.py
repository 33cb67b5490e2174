"""Attacks on journals: processes are killed, power is cut, bytes change, disks are full."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import manyarms as ma
from manyarms.live.journal_file import RECORD_BYTES
from tests.attack.arena import CHILDREN, Arena, Attempt, attack, in_child
from tests.attack.on_files import PLANTS, PRECIOUS
from tests.helpers import flipped
from tests.inference.games import counts, new, step
from tests.live.crafted import opened

PAGES = (512, 4096)  # what a disk, and a system, writes at once


def _game() -> ma.Live:
    return new(ma.EmpMOSSPlusPlus(), n_arms=30, horizon=1_000_000)


def _known(data: bytes) -> bytes | None:
    """Return what a handle knows that was opened from these bytes; None if they are refused."""
    try:
        return opened(data).to_bytes()
    except ma.SavedFileError:
        return None


@attack("journal: kills of the process that writes")
def kills(arena: Arena) -> Iterator[Attempt]:
    for sync, compact_every in ((1, 150), ("always", 3000), ("never", 20)):
        history = sync == "never"  # then all events are kept, each once
        path, heard = arena.new() / "game", arena.new() / "heard"
        control = _game()
        for life in range(60):
            heard.unlink(missing_ok=True)
            child = CHILDREN.Process(
                target=_live_on, args=(path, heard, sync, compact_every, history)
            )
            child.start()
            while life % 5 and not heard.exists() and child.is_alive():
                time.sleep(0.001)
            time.sleep(arena.chance.uniform(0.0, 0.03))
            child.kill()
            child.join()
            acknowledged = heard.stat().st_size if heard.exists() else 0
            with ma.recorded(path, _game()) as live:
                known, steps = live.to_bytes(), 0
                table = live.events().table() if history else {"pull": range(live.pulls)}
                listed = list(table["pull"]) == list(range(live.pulls))
                while counts(control) != counts(live) and steps <= acknowledged:
                    step(control)
                    steps += 1
            held = (
                listed and control.to_bytes() == known and acknowledged <= steps <= acknowledged + 1
            )
            yield f"kill {life}, sync={sync}, after {acknowledged} calls", held
            control = ma.Live.from_bytes(known)


def _live_on(path: Path, heard: Path, sync: Any, compact_every: int, history: bool) -> None:
    """Play until the end, which is near; write a byte for each call that returned."""
    journal = ma.Journal(path, sync=sync, compact_every=compact_every, history=history)
    live = ma.recorded(journal, _game())
    with heard.open("wb", buffering=0) as file:
        while True:
            step(live)
            file.write(b".")


def _written(arena: Arena, events: int) -> tuple[bytes, list[bytes]]:
    """Return a journal, and what its handle knew after each of its events."""
    path = arena.new() / "game"
    with ma.recorded(ma.Journal(path, sync="never"), _game()) as live:
        known = [live.to_bytes()]
        while len(known) <= events:
            pending = live.pending
            if len(pending) < 3 or len(known) % 2:
                live.ask()
            elif len(known) % 20 == 0:
                live.abandon(pending[0])
            else:
                live.tell(arena.chance.choice(pending), float(len(known) % 3 == 0))
            known.append(live.to_bytes())
        return path.read_bytes(), known  # as it is before it is compacted


@attack("journal: power cuts, as a disk may leave them")
def power_cuts(arena: Arena) -> Iterator[Attempt]:
    whole, known = _written(arena, 300)
    first = len(whole) - RECORD_BYTES * (len(known) - 1)

    def holds(torn: bytes, *, may_refuse: bool = False) -> bool:
        pairs = enumerate(zip(torn, whole, strict=False))
        same = next((k for k, (a, b) in pairs if a != b), min(len(torn), len(whole)))
        found = _known(torn)
        return found == known[(same - first) // RECORD_BYTES] or (may_refuse and found is None)

    for cut in range(first, len(whole) + 1, 11):
        yield f"cut at {cut}", holds(whole[:cut])
        for page in PAGES:
            rest = -cut % page
            yield f"zeros from {cut} to a page of {page}", holds(whole[:cut] + bytes(rest))
            noise = whole[:cut] + arena.chance.randbytes(rest)
            yield f"noise from {cut} to a page of {page}", holds(noise, may_refuse=True)
    for page in PAGES:  # written after those that follow it: one may refuse, and not guess
        for begin in range(-(-first // page) * page, len(whole), page):
            torn = whole[:begin] + bytes(page) + whole[begin + page :]
            yield f"page of {page} at {begin} lost", holds(torn[: len(whole)], may_refuse=True)


@attack("journal: every bit flipped, every byte cut off")
def damaged_journals(arena: Arena) -> Iterator[Attempt]:
    whole, known = _written(arena, 60)
    last = len(whole) - RECORD_BYTES
    for bit in range(8 * len(whole)):
        found = _known(flipped(whole, bit))
        yield f"bit {bit}", found is None if bit < 8 * last else found == known[-2]
    for end in range(len(whole)):
        yield f"cut at {end}", _known(whole[:end]) in (None, *known)


@attack("journal: what is planted in its place, or its lock's")
def planted(arena: Arena) -> Iterator[Attempt]:
    for name in ("game", "game.lock"):
        for what in PLANTS:
            yield from in_child(_plant, arena.new(), name, what, seconds=20.0)


def _plant(folder: Path, name: str, what: str) -> Iterator[Attempt]:
    victim = folder / "victim"
    victim.write_bytes(PRECIOUS)
    PLANTS[what](folder / name, victim)
    with contextlib.suppress(ma.StoreError, ma.SavedFileError):
        ma.recorded(folder / "game", _game()).ask()
    yield f"{what} at {name}", victim.read_bytes() == PRECIOUS


# Disks that take no more


@attack("journal: files that may not grow")
def no_room(arena: Arena) -> Iterator[Attempt]:
    for _ in range(100):
        every = arena.chance.choice([30, 1_000_000])
        yield from in_child(_fill, arena.new() / "game", every, arena.chance.randrange(300, 4000))


def _fill(path: Path, compact_every: int, limit: int) -> Iterator[Attempt]:
    """Let the system refuse to write more: what was acknowledged stays, and nothing else."""
    import resource

    logging.disable()  # of compactions that failed
    live = ma.recorded(ma.Journal(path, sync="never", compact_every=compact_every), _game())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    known, refused = live.to_bytes(), False
    with contextlib.suppress(ma.StoreError):
        for _ in range(1000):
            step(live)
            known = live.to_bytes()
        refused = True
    live.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with ma.recorded(path) as again:
        yield f"{limit} bytes, refused: {refused}", again.to_bytes() == known


FAILING = ("open", "write", "fsync", "replace", "ftruncate")


@attack("journal: calls of the system that fail")
def failing_calls(arena: Arena) -> Iterator[Attempt]:
    logging.disable()
    try:
        for code in (errno.ENOSPC, errno.EIO, errno.EACCES):
            for lasting in (False, True):
                number, more = 0, True
                while more:
                    number += 1
                    more, held = _failing_at(arena.new() / "game", number, code, lasting)
                    yield f"call {number} fails with {code}, lasting: {lasting}", held
    finally:
        logging.disable(logging.NOTSET)


def _failing_at(path: Path, number: int, code: int, lasting: bool) -> tuple[bool, bool]:
    """Play while the so-manieth call fails; return whether there were as many, and all is well."""
    made = 0

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal made
            made += 1
            if made == number or (lasting and made > number):
                raise OSError(code, os.strerror(code))
            return real(*arguments, **options)

        return call

    live, known, after = _game(), _game().to_bytes(), b""
    with contextlib.ExitStack() as stack:
        for name in FAILING:
            stack.enter_context(mock.patch.object(os, name, failing(getattr(os, name))))
        with contextlib.suppress(ma.StoreError):
            ma.recorded(ma.Journal(path, sync="always", compact_every=15), live)
            for _ in range(25):
                done = ma.Live.from_bytes(known)
                step(done)
                after = done.to_bytes()  # a call that fails late may be in it, or not
                step(live)
                known = live.to_bytes()
            live.compact()
        with contextlib.suppress(ma.StoreError):
            live.close()
    with ma.recorded(path, _game()) as again:
        return made >= number, again.to_bytes() in (known, after)


@attack("handle: calls of the system that fail while it is saved")
def failing_saves(arena: Arena) -> Iterator[Attempt]:
    old, new_one = _game(), _game()
    step(new_one)
    for name in ("open", "write", "fsync", "replace", "fchmod", "close"):
        path = arena.new() / "game"
        old.save(path)
        error = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch.object(os, name, side_effect=error):
            said = _saved(new_one, path)
        found = ma.Live.load(path).to_bytes()
        yield f"{name} fails", said and found in (old.to_bytes(), new_one.to_bytes())


def _saved(live: ma.Live, path: Path) -> bool:
    """Whether saving worked, or ended in our own error."""
    try:
        live.save(path)
    except ma.PathError:
        pass
    except OSError:
        return False
    return True
