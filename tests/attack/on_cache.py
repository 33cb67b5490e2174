"""Attacks on the compile cache: whoever gets code into it runs it as us."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from manyarms.core import compile_cache, jit
from manyarms.core.compile_cache import cache_directory
from manyarms.core.files import UnsafeError, read_private
from tests.attack.arena import Arena, Attempt, attack
from tests.helpers import flipped

LEVELS = ("", "manyarms", "manyarms/compiled", "manyarms/compiled/d")
OTHERS = 54321  # a user who is not us


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("MANYARMS_CACHE")
    os.environ["MANYARMS_CACHE"] = str(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.pop("MANYARMS_CACHE")
        if before is not None:
            os.environ["MANYARMS_CACHE"] = before


def _prepared(arena: Arena) -> Path:
    """Make a cache as we would; it lies two folders deep."""
    root = arena.new() / "home" / "cache"
    with _cache_in(root):
        assert cache_directory("d") is not None
    return root


def _refused(root: Path) -> bool:
    with _cache_in(root):
        return cache_directory("d") is None


@attack("cache: folders that others can write to")
def modes(arena: Arena) -> Iterator[Attempt]:
    root = _prepared(arena)
    for level in LEVELS:
        for mode in range(0o700, 0o1000):
            if mode & 0o022:
                (root / level).chmod(mode)
                yield f"mode {mode:o} of '{level}'", _refused(root)
        (root / level).chmod(0o700)
    root.parent.chmod(0o777)
    yield "a parent that all can write to", _refused(root)


@attack("cache: folders of others")
def owners(arena: Arena) -> Iterator[Attempt]:
    if os.geteuid() != 0:
        return  # nobody else may give folders away
    for level in ("..", *LEVELS):
        root = _prepared(arena)
        os.chown((root / level).resolve(), OTHERS, OTHERS)
        yield f"'{level}' of another user", _refused(root)


@attack("cache: links")
def links(arena: Arena) -> Iterator[Attempt]:
    for level in LEVELS[1:]:
        for mode in (0o700, 0o777):
            root = _prepared(arena)
            place = root / level
            place.rename(arena.new() / "moved")
            place.symlink_to(arena.new())
            place.resolve().chmod(mode)
            yield f"a link at '{level}' to a folder of mode {mode:o}", _refused(root)
    root = arena.new() / "link"
    root.symlink_to(arena.new())
    root.resolve().chmod(0o777)
    yield "a link above to a folder that all can write to", _refused(root)


class _Payload:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self._mark,)


def _loop(number: int) -> int:
    return 3 * number + 1


def _compiled() -> tuple[int, int]:
    """Run the loop as a new process would; return its result, and the hits of the cache."""
    jit._compiled.cache_clear()
    loop: Any = jit.compiled(_loop)
    return loop(5), sum(loop.stats.cache_hits.values())


@contextlib.contextmanager
def _kept(arena: Arena) -> Iterator[Path]:
    """Yield the file of the loop's machine code."""
    root = arena.new() / "cache"
    with _cache_in(root):
        assert _compiled() == (16, 0)
        (kept,) = root.rglob("*.code")
        assert _compiled() == (16, 1)
        yield kept
    jit._compiled.cache_clear()


@attack("cache: planted payloads")
def payloads(arena: Arena) -> Iterator[Attempt]:
    mark = arena.folder / "mark"
    payload = pickle.dumps((_Payload(mark), ()))
    sealed = compile_cache._sealed(payload)

    def plant(path: Path, data: bytes, *, mode: int = 0o600, owner: int | None = None) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
        if owner is not None:
            os.chown(path, owner, owner)

    def plant_link(path: Path) -> None:
        path.unlink()
        plant(arena.folder / "elsewhere", sealed)
        path.symlink_to(arena.folder / "elsewhere")

    ways: dict[str, Callable[[Path], None]] = {
        "a bare pickle": lambda path: plant(path, payload),
        "a pickle with the checksum of another": lambda path: plant(
            path, sealed[:48] + payload[1:]
        ),
        "a file that all can write to": lambda path: plant(path, sealed, mode=0o666),
        "a file that the group can write to": lambda path: plant(path, sealed, mode=0o660),
        "a link to a file elsewhere": plant_link,
        "an index of Numba's": lambda path: plant(path.with_suffix(".nbi"), payload),
    }
    if os.geteuid() == 0:
        ways["a file of another user"] = lambda path: plant(path, sealed, owner=OTHERS)
    with _kept(arena) as kept:
        for what, way in ways.items():
            way(kept)
            held = _compiled()[0] == 16 and not mark.exists()
            mark.unlink(missing_ok=True)
            yield what, held and _compiled() == (16, 1)  # and healed


@attack("cache: a prepared temporary folder")
def temporary_folder(arena: Arena) -> Iterator[Attempt]:
    folder = arena.new()
    folder.chmod(0o1777)
    planted = folder / f"manyarms-{os.geteuid()}" / "compiled"
    planted.mkdir(parents=True)
    code = (
        "import os, pathlib, tempfile\n"
        "from manyarms.core import compile_cache\n"
        "def homeless(): raise RuntimeError\n"
        "pathlib.Path.home = homeless\n"
        "print(compile_cache.cache_directory('d'))"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("MANYARMS_CACHE", "HOME")}
    environment = environment | {"TMPDIR": str(folder)}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    yield "without a home", done.stdout == "None\n" and not list(planted.iterdir())


@attack("cache: flipped bits, by checksum")
def flipped_bits(arena: Arena) -> Iterator[Attempt]:
    with _kept(arena) as kept:
        data = read_private(kept)
        for _ in range(3000):
            bit = arena.chance.randrange(8 * len(data))
            yield f"bit {bit}", not _believed(flipped(data, bit))
        for _ in range(200):
            cut = arena.chance.randrange(len(data))
            yield f"cut at {cut}", not _believed(data[:cut])


def _believed(data: bytes) -> bool:
    try:
        compile_cache._opened(data)
    except ValueError:
        return False
    return True


@attack("cache: flipped bits, loaded and healed")
def damaged_code(arena: Arena) -> Iterator[Attempt]:
    with _kept(arena) as kept:
        data = kept.read_bytes()
        for _ in range(60):
            bit = arena.chance.randrange(8 * len(data))
            kept.write_bytes(flipped(data, bit))
            yield f"bit {bit}", [_compiled(), _compiled()] == [(16, 0), (16, 1)]


@attack("cache: flipped bits, in new processes")
def damaged_code_in_new_processes(arena: Arena) -> Iterator[Attempt]:
    root = arena.new() / "cache"
    code = (
        "import manyarms as ma\n"
        "i = ma.instances.planted(n=1000, m=10)\n"
        "print(ma.simulate(ma.MOSS(), i, horizon=500, replications=3).regret.tobytes().hex())"
    )

    def play() -> str:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"MANYARMS_CACHE": str(root)},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    right = play()
    (kept,) = root.rglob("*.code")
    data = kept.read_bytes()
    for _ in range(5):
        bit = arena.chance.randrange(8 * len(data))
        kept.write_bytes(flipped(data, bit))
        yield f"bit {bit}", bool(right) and play() == right
        yield f"bit {bit} is healed", not _believed_damaged(kept)


def _believed_damaged(path: Path) -> bool:
    try:
        return not _believed(read_private(path))
    except (OSError, UnsafeError):
        return True
