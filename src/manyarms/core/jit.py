"""One source, two machines: plain functions that Numba also compiles into the simulator.

This is the only module that imports numba, and it does so on the first compilation only.
The decorators collect functions; CPython keeps calling them as they are.

* `kernel` and `rare`: one body for both machines.
* `twin`: a Python body, and a compiled one where 64-bit integer types must be spelled out.
* `generic`: dispatch on the class of the first argument (how `ask` finds its policy).
* `compiled`: the machine code of a loop that calls all these.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from manyarms.errors import DuplicateNameError, ParameterError

__all__ = ["Dispatched", "compiled", "generic", "jit_enabled", "kernel", "rare", "twin"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

# `_nrt=False` switches reference counting off. It halves the cost of a pull, is sound because
# kernels never allocate, and turns an accidental allocation into a compile error.
LOOP_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
INLINE: dict[str, Any] = {"forceinline": True}

_PACKAGE = Path(__file__).resolve().parent.parent
_KERNEL_ROOMS = ("core", "theory", "live", "policies", "instances", "engine")

_pending: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = []
_generics: list[Dispatched[..., Any]] = []
_state_classes: dict[str, type] = {}
_numba_met: list[bool] = []  # not empty once functions are registered with Numba


class Dispatched(Protocol[P, R_co]):
    """A function whose body is chosen by the class of its first argument."""

    bodies: dict[type, Callable[..., Any]]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the body for the first argument's class."""

    def register(self, state_class: type) -> Callable[[F], F]:
        """Make the decorated function the body for a class."""


def jit_enabled() -> bool:
    """Whether loops are compiled; `NUMBA_DISABLE_JIT=1` makes CPython run them instead."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def kernel(function: F) -> F:
    """Let compiled code call `function`, which stays an ordinary Python function.

    It is inlined, because handing a state to a function costs more than most functions do.
    """
    _collect(function, lambda *args: function, INLINE)
    return function


def rare(function: F) -> F:
    """As `kernel`, for what is called too rarely to be worth inlining: it compiles once."""
    _collect(function, lambda *args: function, {})
    return function


def twin(make_compiled: Callable[[], Callable[..., Any]]) -> Callable[[F], F]:
    """Give a Python function a second body for compiled code, made by `make_compiled()`."""
    body = functools.cache(make_compiled)

    def decorate(function: F) -> F:
        _collect(function, lambda *args: body(), INLINE)
        return function

    return decorate


def generic(function: Callable[P, R_co]) -> Dispatched[P, R_co]:
    """Make `function` a name whose bodies are registered class by class."""
    name = function.__name__
    bodies: dict[type, Callable[..., Any]] = {}

    @functools.wraps(function)
    def dispatch(state: Any, *args: Any) -> Any:
        try:
            body = bodies[state.__class__]
        except KeyError:
            raise ParameterError(_no_body(name, state.__class__)) from None
        return body(state, *args)

    def register(state_class: type) -> Callable[[F], F]:
        known = _state_classes.setdefault(state_class.__name__, state_class)
        if known is not state_class:
            # Numba takes two NamedTuples of one name and equal fields for one type.
            raise DuplicateNameError(
                f"A state class named {state_class.__name__!r} exists already, in "
                f"{known.__module__}. Give this one another name (in a notebook: restart, "
                f"or rename the class before you run the cell again)."
            )

        def decorate(body: F) -> F:
            bodies[state_class] = body
            return body

        return decorate

    result = cast("Dispatched[P, R_co]", dispatch)
    result.bodies = bodies
    setattr(dispatch, "register", register)  # noqa: B010  a method of the protocol
    _generics.append(result)
    _collect(dispatch, lambda state, *args: bodies.get(_class_of(state)), INLINE)
    return result


def compiled(loop: F, *state_classes: type) -> F:
    """Return `loop` as machine code, cached on disk, or `loop` itself with the JIT disabled.

    `state_classes` are the classes the loop's generic calls will meet; the source files of
    their functions are part of the cache's key, so that an edited policy compiles anew.
    """
    if not jit_enabled():
        return loop
    _register_pending()
    bodies = [g.bodies[c] for g in _generics for c in state_classes if c in g.bodies]
    users = _users_functions([loop, *bodies])
    return cast(F, _compiled(loop, _digest(users), _can_be_cached(users)))


def _no_body(name: str, state_class: type) -> str:
    return (
        f"{state_class.__name__} has no `{name}`. Write one and decorate it with "
        f"@{name}.register({state_class.__name__})."
    )


def _class_of(numba_type: Any) -> Any:
    return getattr(numba_type, "instance_class", None)


def _collect(
    function: Callable[..., Any], choose: Callable[..., Any], options: dict[str, Any]
) -> None:
    _pending.append((function, choose, options))
    if _numba_met:  # a policy defined after the first compilation
        _register_pending()


def _register_pending() -> None:
    from numba.extending import overload

    while _pending:
        function, choose, options = _pending.pop()
        overload(function, strict=False, jit_options=cast(Any, options))(choose)
    _numba_met.append(True)


@functools.cache
def _compiled(loop: F, digest: str, cached: bool) -> F:
    import numba

    directory = _cache_directory(digest) if cached else None
    config: Any = numba.config
    # Numba reads CACHE_DIR while it decorates; other libraries must not see ours.
    before = config.CACHE_DIR
    config.CACHE_DIR = directory or before
    try:
        return cast(F, numba.njit(cache=directory is not None, **LOOP_OPTIONS)(loop))
    finally:
        config.CACHE_DIR = before


def _users_functions(functions: Iterable[Any]) -> list[Any]:
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


def _can_be_cached(users: Iterable[Any]) -> bool:
    # Numba stores classes of a script or notebook by value, and never finds them again
    return all(function.__module__ != "__main__" for function in users)


def _digest(users: Iterable[Any]) -> str:
    """Hash what Numba's own key ignores: options, and the sources of everything called."""
    parts = set()
    for function in users:
        path = Path(function.__code__.co_filename)
        # what was typed into a console has no file
        source = path.read_bytes() if path.is_file() else marshal.dumps(function.__code__)
        parts.add(function.__module__ + hashlib.sha256(source).hexdigest())
    options = (LOOP_OPTIONS, INLINE, os.environ.get("NUMBA_BOUNDSCHECK"))
    text = repr((options, _package_digest(), sorted(parts)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _package_digest() -> str:
    text = hashlib.sha256()
    for room in _KERNEL_ROOMS:
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            text.update(path.read_bytes())
    return text.hexdigest()


def _cache_directory(digest: str) -> str | None:
    """Return a writable directory for this digest, or None: then nothing is cached."""
    home = os.environ.get("MANYARMS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    roots = [Path(home) if home else Path.home() / ".cache", Path(tempfile.gettempdir())]
    for root in roots:
        directory = root / "manyarms" / "compiled" / digest
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return str(directory)
        except OSError:
            continue
    return None
