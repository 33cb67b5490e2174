"""Register attacks, run them, and count the attempts that succeed."""

from __future__ import annotations

import multiprocessing
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["ATTACKS", "CHILDREN", "Attack", "Attempt", "Workspace", "attack", "in_child"]
__all__ += ["run_attacks", "survives"]

# fork children from a process without threads and open files
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["tests.attack.on_handles"])


class Workspace(NamedTuple):
    """The inputs of an attack: an empty folder, and a seeded random number generator."""

    folder: Path
    chance: random.Random

    def new(self) -> Path:
        """Create a new, empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))


Attempt: TypeAlias = tuple[str, bool]  # a description, and whether manyarms withstood it
Attack: TypeAlias = Callable[[Workspace], Iterator[Attempt]]
ATTACKS: dict[str, Attack] = {}


def attack(name: str) -> Callable[[Attack], Attack]:
    """Register the decorated function as an attack."""

    def decorate(function: Attack) -> Attack:
        assert name not in ATTACKS, name
        ATTACKS[name] = function
        return function

    return decorate


def survives(call: Callable[[], object], *allowed: type[Exception], seconds: float = 60.0) -> bool:
    """Return whether a call ends in time, with a result or one of the allowed errors."""
    begun = time.monotonic()
    try:
        call()
    except allowed:
        pass
    except Exception:
        traceback.print_exc()
        return False
    return time.monotonic() - begun < seconds


def in_child(
    function: Callable[..., Iterator[Attempt]], *arguments: Any, seconds: float = 120.0
) -> Iterator[Attempt]:
    """Yield the attempts of a function that runs in a new process, which may crash or hang."""
    ours, theirs = CHILDREN.Pipe(duplex=False)
    child = CHILDREN.Process(target=_try_all, args=(theirs, function, arguments), daemon=True)
    child.start()
    theirs.close()
    outcome: Attempt | None = ("the beginning", True)
    try:
        while outcome is not None:
            before = outcome[0]
            if not ours.poll(seconds):
                yield f"it hangs after {before}", False
                break
            outcome = ours.recv()
            if outcome is not None:
                yield outcome
    except EOFError:
        child.join()
        yield f"it ended with code {child.exitcode} after {before}", False
    finally:
        child.kill()
        child.join()
        ours.close()


def _try_all(
    pipe: Connection, function: Callable[..., Iterator[Attempt]], arguments: tuple[Any, ...]
) -> None:
    for outcome in function(*arguments):
        pipe.send(outcome)
    pipe.send(None)


def run_attacks(attacks: dict[str, Attack], wanted: Sequence[str] = ()) -> int:
    """Run the attacks whose names begin with a wanted word; return 1 if an attempt succeeds."""
    chosen = [name for name in attacks if not wanted or name.startswith(tuple(wanted))]
    if not chosen:
        _write(f"No attack begins with {' or '.join(wanted)}. Known: {'; '.join(attacks)}.")
        return 1
    lost = 0
    _write(f"{'attack':<52} {'tried':>7} {'withstood':>10} {'seconds':>8}")
    for name in chosen:
        begun = time.monotonic()
        outcomes = list(_outcomes(attacks[name]))
        broken = [what for what, held in outcomes if not held]
        lost += len(broken)
        count = f"{len(outcomes):>7} {len(outcomes) - len(broken):>10}"
        _write(f"{name:<52} {count} {time.monotonic() - begun:>8.1f}")
        for what in broken[:5]:
            _write(f"    not withstood: {what}")
    _write("All attacks were withstood." if lost == 0 else f"{lost} attacks were not withstood.")
    return int(lost > 0)


def _outcomes(function: Attack) -> Iterator[Attempt]:
    with tempfile.TemporaryDirectory(prefix="manyarms-attack-") as folder:
        try:
            yield from function(Workspace(Path(folder), random.Random(7)))
        except Exception as error:  # an error in manyarms or in the attack
            traceback.print_exc()
            yield f"{type(error).__name__}: {error}", False


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
