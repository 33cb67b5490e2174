"""The digest of the code that results depend on, and the cache folder of the compiled code.

Numba's own cache does not notice if a function in another file, or a global constant, has changed.
So every loop has a folder for Numba's cache that is named by a digest of all that code. The same
digest marks stored chunks, because a resumed run must not mix results of two versions.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import marshal
import os
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from manyarms.core.files import cache_root
from manyarms.errors import CacheWarning

_PACKAGE = Path(__file__).resolve().parent.parent
_HASHED = ("core", "instances", "policies", "protocol", "simulation", "theory")
_COMPILERS = ("numpy", "numba", "llvmlite")
_warned: list[bool] = []  # not empty once the user was warned


def reached(roots: Iterable[Any]) -> list[Any]:
    """Return these functions, and all functions that those outside this package call."""
    found: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)  # of a function that Numba has decorated
        if isinstance(function, FunctionType) and id(function) not in found:
            found[id(function)] = function
            if not _is_ours(function):
                waiting += _globals_of(function).values()
    return list(found.values())


def digest(functions: Iterable[Any], *more: object) -> str:
    """Hash all code of this package that results depend on, the compilers' versions, and `more`.

    For functions outside this package (see `reached`), hash their files, and the values of the
    global constants that they name.
    """
    parts = {repr((_own_digest(), [version_of(name) for name in _COMPILERS], more))}
    for function in functions:
        if _is_ours(function):
            continue
        path = Path(function.__code__.co_filename)
        # code that was typed into a console has no file
        source = path.read_bytes() if path.is_file() else marshal.dumps(function.__code__)
        parts.add(function.__module__ + hashlib.sha256(source).hexdigest())
        for name, value in _globals_of(function).items():
            if isinstance(value, int | float | str | tuple):
                parts.add(f"{function.__qualname__}: {name}={value!r}")
            elif isinstance(value, np.ndarray):
                table = hashlib.sha256(value.tobytes()).hexdigest()
                parts.add(f"{function.__qualname__}: {name} {value.dtype} {value.shape} {table}")
    return hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()[:16]


def can_be_cached(functions: Iterable[Any]) -> bool:
    """Return whether a later process can use the compiled code.

    Numba stores the classes of a script or notebook by value, and does not recognize them later.
    The values in a closure are not part of the digest.
    """
    return all(
        function.__module__ != "__main__" and (function.__closure__ is None or _is_ours(function))
        for function in functions
    )


@functools.cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _own_digest() -> str:
    """Hash the source files of the packages that affect the results of a simulation."""
    found = hashlib.sha256()
    for package in _HASHED:
        for path in sorted((_PACKAGE / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")  # line endings do not matter
            found.update(f"{path.relative_to(_PACKAGE).as_posix()} {len(text)}\n{text}".encode())
    return found.hexdigest()


def _is_ours(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] == _PACKAGE.name


def _globals_of(function: Any) -> dict[str, Any]:
    """Return the global values that a function names, in its own module and in others."""
    names, known = _names_in(function.__code__), function.__globals__
    values = {name: known[name] for name in names if name in known}
    modules = {name: one for name, one in values.items() if isinstance(one, ModuleType)}
    for module, one in modules.items():
        values |= {f"{module}.{name}": getattr(one, name) for name in names if hasattr(one, name)}
    return values


def _names_in(code: CodeType) -> set[str]:
    """Return the names in a function's code, and in nested functions and generators."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return {*code.co_names}.union(*map(_names_in, inner))


def folder_for(name: str, *, make: bool = True) -> Path | None:
    """Return the folder of a digest; if there can be no cache, warn why and return None.

    Cached code is pickled. Any user who can write to the folder can run code as this user, so it
    must belong to this user, and others must not be able to write to it.
    """
    root = cache_root()
    if root is None:
        warn_uncached("there is no home folder")
        return None
    folder = root / "compiled" / name
    if make:
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            for place in (root, root / "compiled", folder):
                place.mkdir(0o700, exist_ok=True)
                _check_private(place)
        except OSError as error:
            warn_uncached(error)
            return None
    return folder


def _check_private(place: Path) -> None:
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"'{place}' must be a folder, not a link")
    if os.name != "posix":  # no owners and modes of this kind
        return
    if found.st_uid != os.geteuid():
        raise PermissionError(f"'{place}' belongs to another user (number {found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(f"other users can write to '{place}' (mode {mode:o})")


def warn_uncached(reason: object) -> None:
    """Warn once that code cannot be cached."""
    if not _warned:
        _warned.append(True)
        warnings.warn(
            f"Compiled code cannot be cached, so every process compiles: {reason}. Set "
            f"MANYARMS_CACHE to a folder that only you can write to.",
            CacheWarning,
            stacklevel=2,
        )
