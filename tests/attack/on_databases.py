"""Attacks on a service's database: its file is moved, replaced, cut or linked; clocks jump."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from tests.attack.arena import Arena, Attempt, attack, in_child
from tests.attack.on_door import SHOP, served, still_serves
from tests.serve.machines import Node, call, in_thread, made_token, node, path_of, wait


def _acknowledged(one: Node, count: int) -> list[int]:
    """Ask so often; return the pulls that the service says are made."""
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


HARMS: dict[str, Callable[[Path], object]] = {
    "its file is removed": Path.unlink,
    "its file is moved": lambda file: file.rename(file.with_name("moved.db")),
    "its file is replaced by a copy": _replace,
    "its file is replaced by an empty one": _empty,
    "its WAL is removed": lambda file: Path(f"{file}-wal").unlink(),
    "its WAL is moved": lambda file: Path(f"{file}-wal").rename(file.with_name("moved-wal")),
    "its folder is moved": _swap_folder,
    "its lock is removed": lambda file: Path(f"{file}.lock").unlink(),
}


@attack("service: its file is taken away")
def files_taken_away(arena: Arena) -> Iterator[Attempt]:
    """What is acknowledged afterwards is in the file that the next start reads."""
    for what, harm in HARMS.items():
        folder = arena.new() / "data"
        folder.mkdir()
        with served(folder) as one:
            before = _acknowledged(one, 5)
            yield f"before {what}: {len(before)} asks are acknowledged", len(before) == 5
            harm(folder / "serve.db")
            after = _acknowledged(one, 20)
            one.kill()
            found = _pulls(folder)
            for pull in after:
                yield f"{what}, then pull {pull} is acknowledged and lost", pull in found
            yield f"{what}: {len(after)} of 20 asks are acknowledged", set(after) <= found


def _pulls(folder: Path) -> set[int]:
    """Return the pulls that a new start finds."""
    with node(f"sqlite:///{folder}/serve.db") as one:
        status, page = call(one.port, "GET", f"{SHOP}/events")
    events = page["events"] if status == 200 else ()
    return {event["pull"] for event in events if event["kind"] == "asked"}


@attack("service: its file has a second name")
def second_names(arena: Arena) -> Iterator[Attempt]:
    """Two processes could lead on one file, with a lock beside each name."""
    folder = arena.new()
    with served(folder) as one:
        (folder / "other.db").hardlink_to(folder / "serve.db")
        second = Node(f"sqlite:///{folder}/other.db").start(wait=False)
        try:
            end = time.monotonic() + 20
            leads = False
            while not leads and second.process and second.process.poll() is None:
                with contextlib.suppress(OSError):
                    leads = call(second.port, "GET", "/readyz", token=None, timeout=2)[0] == 200
                if time.monotonic() > end:
                    break
                time.sleep(0.1)
            yield "a second process leads by the other name", not leads
        finally:
            second.kill()
        (folder / "other.db").unlink()
        wait(lambda: call(one.port, "GET", "/readyz", token=None)[0] == 200)
        yield from still_serves(one)


@attack("service: jumps of the clock")
def jumps(arena: Arena) -> Iterator[Attempt]:
    seeds = [arena.chance.uniform(-1e9, 1e9) for _ in range(50)]
    yield from in_child(_jump, arena.new(), [*seeds, 0.0, -1.0, 3600.0, 1e11, -1.7e9])


def _jump(folder: Path, seconds: list[float]) -> Iterator[Attempt]:
    """Set the clock again and again: windows end in their time, tokens do not."""
    true = time.time
    with in_thread(f"sqlite:///{folder}/serve.db") as one:
        for name, window in (("long", 600.0), ("short", 0.1)):
            assert call(one.port, "PUT", path_of(name), {"n_arms": 9, "window": window})[0] == 201
        token = made_token(one.store, "v", "viewer", expires=600)
        for number, jump in enumerate(seconds, 1):
            with mock.patch.object(time, "time", lambda jump=jump: true() + jump):
                for name in ("long", "short"):
                    status = call(one.port, "POST", f"{path_of(name)}/asks", {})[0]
                    yield f"an ask after a jump by {jump} is answered {status}", status == 200
                end = time.monotonic() + 10
                while time.monotonic() < end and _facts(one.port, "short")[0]:
                    time.sleep(0.02)
                yield f"jump {jump}: short windows end", _facts(one.port, "short") == (0, number)
                yield f"jump {jump}: long ones do not", _facts(one.port, "long") == (number, 0)
                status = call(one.port, "GET", path_of("long"), token=token)[0]
                yield f"jump {jump}: a token is answered {status}", status == 200


def _facts(port: int, name: str) -> tuple[int, int]:
    facts = call(port, "GET", path_of(name))[1]
    return facts["pending"], facts["abandoned"]
