"""A digest of the code that results depend on: another version of the code has another digest.

It names the folder of compiled code, because Numba's own key sees neither a changed callee in
another file nor the compiler's options; and it marks stored chunks, because a run that is resumed
must not mix the results of two versions.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import marshal
import re
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent
_COMPILERS = ("numpy", "numba", "llvmlite")
_IMPORT = re.compile(
    r"^(?:from (manyarms[\w.]*) import (\([^)]*\)|.*)|import (manyarms[\w.]*))", re.MULTILINE
)


def reached(roots: Iterable[Any]) -> list[Any]:
    """Return the roots, and all functions that are called by roots outside this package.

    Roots are functions, and of ours also modules and classes.
    """
    found: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        root = waiting.pop()
        if id(root) not in found:
            found[id(root)] = root
            if not _is_ours(root):  # for ours, imports tell
                called = _globals_of(root).values()
                waiting += [value for value in called if isinstance(value, FunctionType)]
    return list(found.values())


def _globals_of(function: Any) -> dict[str, Any]:
    """Return the global values that a function names, in its own module and in others."""
    names, known = _names_in(function.__code__), function.__globals__
    values = {name: known[name] for name in names if name in known}
    modules = {name: one for name, one in values.items() if isinstance(one, ModuleType)}
    for module, one in modules.items():
        values |= {f"{module}.{name}": getattr(one, name) for name in names if hasattr(one, name)}
    return values


def _names_in(code: CodeType) -> set[str]:
    """Return the names in a function's code, and in the functions and generators within."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return {*code.co_names}.union(*map(_names_in, inner))


def _file_of(root: Any) -> Path:
    return _resolved(inspect.getfile(root))


@functools.cache
def _resolved(name: str) -> Path:
    return Path(name).resolve()


def _is_ours(root: Any) -> bool:
    return _PACKAGE in _file_of(root).parents


def can_be_cached(functions: Iterable[Any]) -> bool:
    """Whether a later process will find the code again.

    Numba stores the classes of a script or notebook by value, and takes them for others later;
    and what a closure holds has no name.
    """
    return all(
        function.__module__ != "__main__" and (function.__closure__ is None or _is_ours(function))
        for function in functions
    )


def digest(options: object, roots: Iterable[Any]) -> str:
    """Hash everything that results, or machine code, depend on.

    These are the options, the versions of the compilers, the files of the roots (see `reached`),
    with all that ours among them import, and the constants that users' functions name.
    """
    files, parts = set(), set()
    for root in roots:
        if _is_ours(root):
            files.add(_file_of(root))
            continue
        path = Path(root.__code__.co_filename)
        # what was typed into a console has no file
        source = path.read_bytes() if path.is_file() else marshal.dumps(root.__code__)
        parts.add(root.__module__ + hashlib.sha256(source).hexdigest())
        for name, value in _globals_of(root).items():  # compiled code keeps those it was made with
            if isinstance(value, int | float | str | tuple):
                parts.add(f"{root.__qualname__}: {name}={value!r}")
    versions = [version_of(name) for name in _COMPILERS]
    text = repr((options, versions, _digest_of_files(frozenset(files)), sorted(parts)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None if it is not there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _digest_of_files(roots: frozenset[Path]) -> list[tuple[str, str]]:
    """Return the files of ours that these import, directly or not, with their digests."""
    found: dict[Path, str] = {}
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path], imported = _read_source(path)
            waiting += imported
    return sorted((path.relative_to(_PACKAGE).as_posix(), own) for path, own in found.items())


@functools.cache
def _read_source(path: Path) -> tuple[str, list[Path]]:
    """Return the digest of a file, and what of ours it imports when it is imported.

    Imports within functions do not count: they lead up, to what does not decide results.
    """
    text = path.read_text(encoding="utf-8")  # any ends of lines: the same on all machines
    modules = []
    for source, names, module in _IMPORT.findall(text):
        modules.append(source or module)
        if _path_of(modules[-1]).name == "__init__.py":  # of a package's names, some are modules
            modules += [f"{source}.{name}" for name in re.findall(r"\w+", names)]
    imported = [path for path in map(_path_of, modules) if path.is_file()]
    return hashlib.sha256(text.encode()).hexdigest(), imported


@functools.cache
def _path_of(module: str) -> Path:
    base = _PACKAGE.parent.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
