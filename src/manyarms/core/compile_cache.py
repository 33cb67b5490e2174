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
from types import FunctionType, ModuleType
from typing import Any

from manyarms.core.files import cache_root

__all__ = ["cache_directory", "can_be_cached", "digest", "users_functions"]

_PACKAGE = Path(__file__).resolve().parent.parent
_KERNELS = (  # the files whose functions are compiled
    "core/*.py",
    "theory/schedules.py",
    "protocol/in_flight.py",
    "protocol/policy.py",
    "policies/*.py",
    "policies/parts/*.py",
    "policies/field/*.py",
    "instances/_*.py",
    "lab/play.py",
)


def users_functions(functions: Iterable[Any]) -> list[Any]:
    """Return the functions that are not ours, with those they call."""
    found: dict[int, Any] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if id(function) in found or _PACKAGE in _file_of(function).parents:
            continue
        found[id(function)] = function
        waiting += [value for value in _globals_of(function) if isinstance(value, FunctionType)]
    return list(found.values())


def _globals_of(function: Any) -> list[Any]:
    """Return the global values that a function names, in its own module and in others."""
    names = function.__code__.co_names
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [value for value in values if isinstance(value, ModuleType)]
    return values + [getattr(module, name, None) for module in modules for name in names]


def _file_of(function: Any) -> Path:
    return Path(function.__code__.co_filename).resolve()


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
        for value in _globals_of(function):  # compiled code keeps the values it was made with
            if isinstance(value, int | float | str | tuple):
                parts.add(f"{function.__qualname__}: {value!r}")
    text = repr((options, _package_digest(), sorted(parts)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _package_digest() -> str:
    text = hashlib.sha256()
    for pattern in _KERNELS:
        for path in sorted(_PACKAGE.glob(pattern)):
            text.update(path.read_bytes())
    return text.hexdigest()


def cache_directory(name: str) -> str | None:
    """Return a directory for this digest that only we can write to, or None: no caching then.

    Numba's files are pickles: whoever can write to them can run code as us.
    """
    for root in _roots():
        directory = root / "compiled" / name
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = directory.stat().st_uid
            if hasattr(os, "getuid") and owner != os.getuid():
                continue
            with tempfile.TemporaryFile(dir=directory):
                return str(directory)
        except OSError:
            continue
    return None


def _roots() -> list[Path]:
    """Return where to look for room: MANYARMS_CACHE, the user's cache, a temporary folder."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    roots = [root] if (root := cache_root()) else []
    return [*roots, Path(tempfile.gettempdir()) / f"manyarms-{user}"]
