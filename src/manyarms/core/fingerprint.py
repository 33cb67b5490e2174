"""Digests of code and of data: what a policy's results, and its compiled code, depend on.

A fingerprint hashes the definitions and values that functions and classes use: base classes,
globals, attributes of modules, closures, defaults, and imports inside functions, and all that these
use. What is installed counts by its version, this package by its source files. Bytecode is hashed,
not source, because a file may be edited after it was imported.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType, NoneType
from typing import Any, NamedTuple

import numpy as np

from manyarms.core.versions import PACKAGE, release_of

_UNREPEATABLE = ("random", "numpy.random", "time", "secrets")  # modules

_ATOMS = {NoneType, bool, int, float, complex, str, bytes, type(...), type(NotImplemented)}
_INSIDE: dict[type, tuple[str, ...]] = {  # attributes that say all about an object
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    type(functools.cache(len)): ("__wrapped__",),
}
_BOOKKEEPING = {  # attributes of a class that do not change what it does
    *("__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__annotations_cache__"),
}
_GLOBAL_STEPS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}  # of bytecode
_ATTRIBUTE_STEPS = {"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"}


class Fingerprint(NamedTuple):
    """What some functions and classes depend on."""

    digest: str
    modules: frozenset[str]  # that have definitions of the user
    unknown: tuple[str, ...]  # values that another process cannot recognize, such as a lock
    unrepeatable: tuple[str, ...]  # uses of modules such as `random`, which differ in every run


def fingerprint(roots: Iterable[Any]) -> Fingerprint:
    """Hash all that these functions and classes use. `roots` has an order."""
    roots = list(roots)
    walk = _Walk({_package(_module_of(root)) for root in roots})
    texts = [walk.digest(root) for root in roots]
    texts += map(walk.text, walk.definitions)  # which grow
    unknown, unrepeatable = dict.fromkeys(walk.unknown), dict.fromkeys(walk.unrepeatable)
    modules = frozenset(walk.modules)
    return Fingerprint(_sha("\n".join(texts)), modules, tuple(unknown), tuple(unrepeatable))


def digest_of_files(modules: Iterable[str]) -> str:
    """Hash the files of modules that can be imported."""
    found = []
    for name in sorted(modules):
        path = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        if name not in ("__main__", "__mp_main__") and path.is_file():
            found.append((name, _sha(path.read_bytes().replace(b"\r\n", b"\n"))))
    return _sha(repr(found))


def digest_of_data(value: Any, other: Callable[[Any], Iterable[str]]) -> str:
    """Hash numbers, strings, arrays, members of enums, and tuples, lists, sets and dicts of them.

    `other` returns texts for anything else, or raises.
    """
    return _Data(other).digest(value)


def is_ours(definition: Any) -> bool:
    """Return whether a function or class belongs to this package."""
    return _package(_module_of(definition)) == PACKAGE


def _sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _package(module: str) -> str:
    return module.partition(".")[0]


def _module_of(definition: Any) -> str:
    """Return the module in which a function's code or a class was written."""
    if isinstance(definition, FunctionType):
        return str(definition.__globals__.get("__name__"))
    return str(getattr(definition, "__module__", None))


class _Data:
    """Hashes plain data. A value that contains itself is hashed as its place on the way to it."""

    def __init__(self, other: Callable[[Any], Iterable[str]]) -> None:
        self._other = other
        self._seen: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no other object gets the same id
        self._depth = 0

    def digest(self, value: Any) -> str:
        if type(value) in _ATOMS:
            text = f"{value:x}" if type(value) is int else repr(value)  # any number of digits
            return _sha(f"{type(value).__name__} {text}")
        place = id(value)
        if place not in self._seen:
            self._seen[place] = f"above {self._depth}"
            self._kept.append(value)
            self._depth += 1
            parts = [type(value).__qualname__, *self._parts(value)]
            self._depth -= 1
            self._seen[place] = _sha("\n".join(parts))
        return self._seen[place]

    def _parts(self, value: Any) -> Iterator[str]:
        kind = type(value)
        if kind in (tuple, list):
            yield from map(self.digest, list(value))
        elif kind in (set, frozenset):
            yield from sorted(map(self.digest, sorted(value, key=_order)))
        elif kind in (dict, MappingProxyType):
            for pair in list(value.items()):
                yield from map(self.digest, pair)
        elif isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            yield f"{array.dtype!r} {array.shape}"
            yield self.digest(array.tolist()) if array.dtype.hasobject else _sha(array.tobytes())
            yield from (self.digest(getattr(value, name, None)) for name in ("mask", "fill_value"))
        elif isinstance(value, enum.Enum) and type(self) is _Data:
            yield f"{kind.__module__} {value.name}"
        else:
            yield from self._other(value)


def _order(value: Any) -> str:
    """Return a key that sorts values in the same way in every process."""
    place = (getattr(value, name, "") for name in ("__module__", "__qualname__"))
    return f"{type(value).__name__} {[*place]} {value if type(value) in _ATOMS else ''}"


class _Uses(NamedTuple):
    """What the code of a function names."""

    chains: set[tuple[str, ...]]  # a global, and the attributes that are read from it
    attributes: set[str]  # of anything
    imports: set[tuple[str, int, tuple[str, ...]]]  # name, level, and what is imported from there


def _uses(code: CodeType) -> _Uses:
    chains: list[list[str]] = []
    uses, open_chain = _Uses(set(), set(), set()), False
    before: list[Any] = [None, None]
    for step in dis.get_instructions(code):
        if step.opname == "EXTENDED_ARG":
            continue
        if step.opname in _GLOBAL_STEPS:
            chains.append([step.argval])
            open_chain = True
        elif step.opname in _ATTRIBUTE_STEPS:
            uses.attributes.add(step.argval)
            if open_chain:
                chains[-1].append(step.argval)
        else:
            open_chain = False
        if step.opname == "IMPORT_NAME":
            uses.imports.add((step.argval, before[0], tuple(before[1] or ())))
        before = [before[1], step.argval]
    uses.chains.update(map(tuple, chains))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            nested = _uses(inner)
            uses.chains.update(nested.chains)
            uses.attributes.update(nested.attributes)
            uses.imports.update(nested.imports)
    return uses


class _Walk(_Data):
    """Hashes definitions, and the values that they use.

    Functions and classes are numbered in the order in which they are met, and stand for themselves
    by their numbers. Those of `packages` are followed even if these are installed.
    """

    def __init__(self, packages: set[str]) -> None:
        super().__init__(self._object)
        self.definitions: list[Any] = []
        self._numbers: dict[int, int] = {}
        self.modules: set[str] = set()
        self.unknown: list[str] = []
        self.unrepeatable: list[str] = []
        self._names: list[str] = []  # from the root to the value
        self._packages = packages

    def digest(self, value: Any) -> str:
        if not isinstance(value, FunctionType | type):
            return super().digest(value)
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.definitions)
            self.definitions.append(value)
        return f"definition {self._numbers[id(value)]}"

    def text(self, definition: Any) -> str:
        """Return a digest of a definition, and number those that it uses."""
        is_class = isinstance(definition, type)
        parts = self._class(definition) if is_class else self._function(definition)
        self._names = [definition.__qualname__]
        try:
            return _sha("\n".join(parts))
        except RecursionError:
            self.unknown.append(f"`{self._names[-1]}` (nested too deeply) in `{self._names[0]}`")
            return ""

    def _release_of(self, module: str) -> str | None:
        """Return the version that stands for a module; None if its definitions are followed."""
        package = _package(module)
        found = release_of(package)
        fixed = package == PACKAGE or (found or "").startswith("python ")
        return found if fixed or package not in self._packages else None

    def _named(self, name: str, value: Any) -> str:
        self._names.append(name)
        text = f"{name} {self.digest(value)}"
        self._names.pop()
        return text

    def _function(self, function: FunctionType) -> Iterator[str]:
        module = _module_of(function)
        release = self._release_of(module)
        if release is not None:
            yield f"{release} {module} {function.__qualname__}"
            if release == PACKAGE or _is_at(function, module, function.__qualname__):
                return
        else:
            self.modules.add(module)
            yield self.digest(function.__code__)
            yield from self._used(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            try:
                yield self._named(name, cell.cell_contents)
            except ValueError:  # it has no value yet
                yield name
        parts = function.__defaults__, function.__kwdefaults__, vars(function)
        yield from map(self.digest, parts)

    def _code(self, code: CodeType) -> Iterator[str]:
        yield from map(_sha, (code.co_code, code.co_exceptiontable))
        yield repr((code.co_flags, code.co_argcount, code.co_posonlyargcount))
        yield repr((code.co_kwonlyargcount, code.co_names, code.co_varnames))
        yield repr((code.co_freevars, code.co_cellvars))
        yield self.digest(code.co_consts)

    def _used(self, function: FunctionType) -> Iterator[str]:
        """Yield the globals and the imports of a function."""
        uses, known = _uses(function.__code__), function.__globals__
        for first, *path in sorted(uses.chains):
            if first in known:
                yield from self._reached(first, known[first], path, uses.attributes)
        for name, level, members in sorted(uses.imports):
            full = name
            if level > 0:
                full = importlib.util.resolve_name("." * level + name, str(known["__package__"]))
            self._check_repeatable(full, full)
            yield full
            release = self._release_of(full)
            module = _imported(full) if release is None else None
            if module is None:
                yield str(release)
                continue
            yield from self._module(module, uses.attributes, set())
            for member in members:
                value = getattr(module, member, None) or _imported(f"{full}.{member}")
                yield from self._reached(f"{full}.{member}", value, [], uses.attributes)

    def _reached(
        self, name: str, value: Any, path: list[str], attributes: set[str]
    ) -> Iterator[str]:
        """Yield a value, or the one that its attributes lead to through modules."""
        for attribute in path:
            if not isinstance(value, ModuleType):
                break
            name = f"{value.__name__}.{attribute}"
            self._check_repeatable(name, name)
            if (release := self._release_of(value.__name__)) is None:
                self.modules.add(value.__name__)
                value = getattr(value, attribute, None)
            else:
                value = sys.modules.get(name, f"{release} {name}")
        if isinstance(value, ModuleType):
            yield name
            yield from self._module(value, attributes, set())
            return
        owner = getattr(value, "__self__", None) if callable(value) else None
        for place in (value if callable(value) else None, type(value), type(owner)):
            self._check_repeatable(name, str(getattr(place, "__module__", None)))
        yield self._named(name, value)

    def _module(self, module: ModuleType, attributes: set[str], seen: set[str]) -> Iterator[str]:
        """Yield a module's name, and if it is the user's, its values that have these names."""
        name, release = module.__name__, self._release_of(module.__name__)
        self._check_repeatable(name, name)
        yield f"{release} {name}"
        if release is None and name not in seen:
            self.modules.add(name)
            for attribute in sorted(attributes & vars(module).keys()):
                value = vars(module)[attribute]
                if isinstance(value, ModuleType):
                    yield from self._module(value, attributes, seen | {name})
                else:
                    yield from self._reached(f"{name}.{attribute}", value, [], attributes)

    def _check_repeatable(self, name: str, module: str) -> None:
        if any(f"{module}.".startswith(f"{one}.") for one in _UNREPEATABLE):
            self.unrepeatable.append(f"`{name}` in `{self._names[0]}`")

    def _class(self, kind: type) -> Iterator[str]:
        module = str(kind.__module__)
        release = self._release_of(module)
        if release is not None:
            yield f"{release} {module} {kind.__qualname__}"
            return
        self.modules.add(module)
        yield self.digest(type(kind))
        yield from map(self.digest, kind.__mro__[1:])
        for name, part in sorted(vars(kind).items()):
            if name not in _BOOKKEEPING:
                yield self._named(name, part)

    def _object(self, value: Any) -> Iterator[str]:
        """Yield what makes up an object that is neither plain data nor a definition."""
        kind = type(value)
        if isinstance(value, ModuleType):
            yield from self._module(value, set(), set())
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif kind in _INSIDE:
            yield from (self.digest(getattr(value, name)) for name in _INSIDE[kind])
        elif _package(kind.__module__) == "numba" and hasattr(value, "py_func"):
            yield from (self.digest(value.py_func), self.digest(value.targetoptions))
        elif hasattr(kind, "__objclass__") and not hasattr(value, "__self__"):
            # a method of a class written in C, or a slot
            yield f"{value.__name__} {self.digest(value.__objclass__)}"
        else:
            yield from self._stored(value)

    def _stored(self, value: Any) -> Iterator[str]:
        """Yield what `pickle` would store of an object."""
        kind = type(value)
        if self._release_of(str(kind.__module__)) is not None:
            home = vars(sys.modules.get(kind.__module__, sys))
            name = next((name for name, other in list(home.items()) if other is value), None)
            if name is not None:  # a part of that module, such as a marker
                yield f"{name} {self.digest(kind)}"
                return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reduce = copyreg.dispatch_table.get(kind)
                parts = reduce(value) if reduce else value.__reduce_ex__(4)
            if not isinstance(parts, str):
                parts = [list(part) if isinstance(part, Iterator) else part for part in parts]
        except Exception:  # the object's class may raise anything
            self.unknown.append(f"`{self._names[-1]}` (a {kind.__name__}) in `{self._names[0]}`")
            return
        yield self.digest(kind)
        yield self.digest(parts)


def _is_at(value: Any, module: str, name: str) -> bool:
    """Return whether a module has this value under this name."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _imported(name: str) -> ModuleType | None:
    """Import a module that a function imports when it is called; None if this fails."""
    try:
        return importlib.import_module(name)
    except Exception:  # the module's code may raise anything
        return None
