"""Versions: of this package by its source, and of installed packages."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent.parent
PACKAGE = _FOLDER.name
_HASHED = ("core", "instances", "policies", "protocol", "simulation", "theory")
_COMPILERS = ("numpy", "numba", "llvmlite")
_INSTALLED = {"site-packages", "dist-packages"}  # folders


def environment(*more: object) -> str:
    """Hash the source of this package, the compilers' versions, and `more`."""
    parts = _own_digest(), [version_of(name) for name in _COMPILERS], more
    return hashlib.sha256(repr(parts).encode()).hexdigest()


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
        for path in sorted((_FOLDER / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")  # line endings do not matter
            found.update(f"{path.relative_to(_FOLDER).as_posix()} {len(text)}\n{text}".encode())
    return found.hexdigest()


def _is_standard(package: str, path: Path | None) -> bool:
    if package not in sys.stdlib_module_names:
        return False
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return path is None or any(folder in path.parents for folder in folders)


@functools.cache
def release_of(package: str) -> str | None:
    """Return the name and version of an installed package; None if it is the user's own code."""
    if package in (PACKAGE, "__main__", "__mp_main__"):
        return package if package == PACKAGE else None
    try:
        module: Any = sys.modules.get(package) or importlib.util.find_spec(package)
    except (ImportError, ValueError):
        module = None
    places = [getattr(module, name, None) for name in ("__file__", "origin")]
    places += list(getattr(module, "__path__", None) or ())  # of a package without __init__.py
    path = next((Path(place) for place in places if place and Path(place).exists()), None)
    installed = path is not None and bool(_INSTALLED & {*path.parts})
    if not installed:
        version = ".".join(map(str, sys.version_info[:2]))
        return f"python {version}" if _is_standard(package, path) else None
    names = [package]
    if version_of(package) is None:  # sklearn is called scikit-learn
        names = sorted({*importlib.metadata.packages_distributions().get(package, ())})
    versions = [f"{name} {version_of(name)}" for name in names]
    return ", ".join(versions) or None
