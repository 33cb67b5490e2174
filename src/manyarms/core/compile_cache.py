"""Where compiled code is kept, and under which name.

Numba's cache sees neither a changed callee in another file nor its own options. So every loop is
cached in a directory named by a digest of our sources, of the user's functions that the loop
calls, and of the compiler's options.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

__all__ = ["cache_directory", "can_be_cached", "digest", "users_functions"]

_PACKAGE = Path(__file__).resolve().parent.parent
_KERNEL_ROOMS = ("core", "theory", "live", "policies", "instances", "engine")


def users_functions(functions: Iterable[Any]) -> list[Any]:
    """Return the functions that are not ours, with those they call."""
    found: dict[int, Any] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        ours = _PACKAGE in Path(function.__code__.co_filename).resolve().parents
        if ours or id(function) in found:
            continue
        found[id(function)] = function
        named = (function.__globals__.get(name) for name in function.__code__.co_names)
        waiting += [other for other in named if isinstance(other, FunctionType)]
    return list(found.values())


def can_be_cached(users: Iterable[Any]) -> bool:
    """Whether a later process will find the code again.

    Numba stores the classes of a script or notebook by value, and takes them for others later.
    """
    return all(function.__module__ != "__main__" for function in users)


def digest(options: object, users: Iterable[Any]) -> str:
    """Hash what Numba's own key ignores: options, and the sources of everything called."""
    parts = set()
    for function in users:
        path = Path(function.__code__.co_filename)
        # what was typed into a console has no file
        source = path.read_bytes() if path.is_file() else marshal.dumps(function.__code__)
        parts.add(function.__module__ + hashlib.sha256(source).hexdigest())
    text = repr((options, _package_digest(), sorted(parts)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _package_digest() -> str:
    text = hashlib.sha256()
    for room in _KERNEL_ROOMS:
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            text.update(path.read_bytes())
    return text.hexdigest()


def cache_directory(name: str) -> str | None:
    """Return a writable directory for this digest, or None: then nothing is cached."""
    home = os.environ.get("MANYARMS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    roots = [Path(home) if home else Path.home() / ".cache", Path(tempfile.gettempdir())]
    for root in roots:
        directory = root / "manyarms" / "compiled" / name
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return str(directory)
        except OSError:
            continue
    return None
