"""Attacks on files during writing: another user replaces the temporary file by a link."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from manyarms.core.files import PART, replace_file
from tests.attack.runner import Attempt, Workspace, attack

PRECIOUS = b"precious"


@attack("part: replaced during writing")
def replaced_parts(workspace: Workspace) -> Iterator[Attempt]:
    folder = workspace.new()
    victim = workspace.new() / "victim"
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
            # a user who can write to the folder could also put a link there afterwards
            whole = path.is_symlink() or not path.exists() or path.read_bytes() == content
            yield f"write {number}", whole and victim.read_bytes() == PRECIOUS
    finally:
        stop.set()
        attacker.join()
    yield f"{planted[0]} links were planted", planted[0] > 0  # else nothing was tested
