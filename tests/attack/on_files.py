"""Attacks on files that are being written: links that others plant beside them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from manyarms.core.files import PART, FileLock, replace_file
from tests.attack.arena import Arena, Attempt, attack

PRECIOUS = b"precious"
PLANTS: dict[str, Callable[[Path, Path], None]] = {
    "a link": lambda place, victim: place.symlink_to(victim),
    "a link to nothing": lambda place, victim: place.symlink_to(victim.with_name("nothing")),
    "a second name": lambda place, victim: place.hardlink_to(victim),
    "a pipe": lambda place, victim: os.mkfifo(place),
    "a folder": lambda place, victim: place.mkdir(),
    "a link to a device": lambda place, victim: place.symlink_to("/dev/null"),
}


@attack("lock: what is planted in its place")
def planted_locks(arena: Arena) -> Iterator[Attempt]:
    for what, plant in PLANTS.items():
        folder = arena.new()
        victim, lock = folder / "victim", folder / "lock"
        victim.write_bytes(PRECIOUS)
        plant(lock, victim)
        refused = False
        try:
            FileLock(lock).release()
        except OSError:
            refused = True
        unharmed = victim.read_bytes() == PRECIOUS and not (folder / "nothing").exists()
        yield what, refused and unharmed


@attack("part: replaced while it is written")
def replaced_parts(arena: Arena) -> Iterator[Attempt]:
    folder = arena.new()
    victim = arena.new() / "victim"
    victim.write_bytes(PRECIOUS)
    stop, planted = threading.Event(), [0]

    def plant() -> None:
        while not stop.is_set():
            for part in folder.glob(f"*{PART}"):
                with contextlib.suppress(OSError):
                    part.unlink()
                    part.symlink_to(victim)
                    planted[0] += 1

    attacker = threading.Thread(target=plant)
    attacker.start()
    try:
        for number in range(1500):
            path, content = folder / f"file{number}", b"x" * 100_000
            with contextlib.suppress(OSError):
                replace_file(path, content)
            # whoever can write to the folder can put a link there afterwards, too
            whole = path.is_symlink() or not path.exists() or path.read_bytes() == content
            yield f"write {number}", whole and victim.read_bytes() == PRECIOUS
    finally:
        stop.set()
        attacker.join()
    yield f"{planted[0]} links were planted", planted[0] > 0  # else nothing was tried


@attack("file: links of others in its place")
def links_of_others(arena: Arena) -> Iterator[Attempt]:
    if os.geteuid() != 0:
        return  # nobody else may give links away
    folder = arena.new()
    victim, link = folder / "victim", folder / "link"
    victim.write_bytes(PRECIOUS)
    link.symlink_to(victim)
    os.chown(link, 54321, 54321, follow_symlinks=False)
    replace_file(link, b"new")
    yield "a link of another user", victim.read_bytes() == PRECIOUS and link.read_bytes() == b"new"
