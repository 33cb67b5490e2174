"""Attacks on a service's database: its files are removed, moved or replaced."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack.on_http import SHOP, served
from tests.attack.runner import Attempt, Workspace, attack
from tests.serve.machines import Node, call, node


def _acknowledged(one: Node, count: int) -> list[int]:
    """Ask `count` times; return the pulls that the service acknowledged."""
    pulls = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            status, answer = call(one.port, "POST", f"{SHOP}/asks", {}, timeout=10)
            if status == 200:
                pulls.append(answer["pulls"][0]["pull"])
    return pulls


def _replace(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.replace(file)


def _empty(file: Path) -> None:
    file.unlink()
    file.touch()


def _swap_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("moved"))
    file.parent.mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "its file is removed": Path.unlink,
    "its file is moved": lambda file: file.rename(file.with_name("moved.db")),
    "its file is replaced by a copy": _replace,
    "its file is replaced by an empty one": _empty,
    "its WAL is removed": lambda file: Path(f"{file}-wal").unlink(),
    "its WAL is moved": lambda file: Path(f"{file}-wal").rename(file.with_name("moved-wal")),
    "its folder is moved": _swap_folder,
    "its lock is removed": lambda file: Path(f"{file}.lock").unlink(),
}


@attack("service: its file is removed")
def removed_files(workspace: Workspace) -> Iterator[Attempt]:
    """Check that later acknowledged pulls are in the file that the next start reads."""
    for what, change in CHANGES.items():
        folder = workspace.new() / "data"
        folder.mkdir()
        with served(folder) as one:
            before = _acknowledged(one, 5)
            yield f"before {what}: {len(before)} asks are acknowledged", len(before) == 5
            change(folder / "serve.db")
            after = _acknowledged(one, 20)
            one.kill()
            found = _pulls(folder)
            for pull in after:
                yield f"{what}, then pull {pull} is acknowledged and lost", pull in found
            yield f"{what}: {len(after)} of 20 asks are acknowledged", set(after) <= found


def _pulls(folder: Path) -> set[int]:
    """Start the service again; return the pulls that it knows."""
    with node(f"sqlite:///{folder}/serve.db") as one:
        status, page = call(one.port, "GET", f"{SHOP}/events")
    events = page["events"] if status == 200 else ()
    return {event["pull"] for event in events if event["kind"] == "asked"}
