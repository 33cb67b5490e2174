"""One source, two machines: plain functions that Numba also compiles into the simulator.

This module imports numba on the first compilation only, and works without it: live use never
compiles. The decorators collect functions; CPython keeps calling them as they are.

* `kernel` and `rare`: one body for both machines.
* `twin`: a Python body, and a compiled one where 64-bit integer types must be spelled out.
* `generic`: dispatch on the class of the first argument (how `ask` finds its policy);
  `optional`: the same, with a body for all other classes.
* `compiled`: the machine code of a loop that calls all these.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from manyarms.core.code_digest import can_be_cached, digest, reached
from manyarms.core.compile_cache import CodeCache, cache_directory, has_code
from manyarms.core.gc_pause import gc_paused
from manyarms.core.loop_compiler import dumps, part_options, rebuild, whole_options
from manyarms.core.optional import need
from manyarms.errors import CompilationError, DuplicateNameError, ParameterError

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

# `_nrt=False` switches reference counting off, which makes a pull thirty times as fast or more.
# This is sound because kernels never allocate, and an accidental allocation does not compile.
# Nobody calls a kernel from C: making its wrapper would take a tenth of the time, or more.
CALLED: dict[str, Any] = {"no_cfunc_wrapper": True}
LOOP_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, **CALLED}
INLINE: dict[str, Any] = {"forceinline": True, **CALLED}

_collected: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = []
_met: dict[Any, int] = {}  # by the `overload` of a compiler: how many of these it knows
_generics: list[Dispatched[..., Any]] = []
_state_classes: dict[str, type] = {}


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
    """As `kernel`, for what is called too rarely to be worth inlining: there is one copy of it."""
    _collect(function, lambda *args: function, CALLED)
    return function


def twin(
    make_compiled: Callable[..., Callable[..., Any]], *, typed: bool = False
) -> Callable[[F], F]:
    """Give a Python function a second body for compiled code, made by `make_compiled()`.

    If it is `typed`, `make_compiled` is given the types of the arguments, as Numba has them.
    """
    body = functools.cache(make_compiled)

    def decorate(function: F) -> F:
        _collect(function, lambda *args: body(*args) if typed else body(), INLINE)
        return function

    return decorate


def on_gpu(function: Callable[..., Any]) -> Callable[[F], F]:
    """Let the decorated function stand for `function` on a GPU: the same results, another way."""

    def decorate(body: F) -> F:
        setattr(function, "on_gpu", body)  # noqa: B010  functions have no such attribute
        return body

    return decorate


def generic(function: Callable[P, R_co]) -> Dispatched[P, R_co]:
    """Make `function` a name whose bodies are registered class by class."""
    name = function.__name__

    def refuse(state: Any, *args: Any) -> Any:
        raise ParameterError(_no_body(name, state.__class__))

    return cast("Dispatched[P, R_co]", _dispatched(function, refuse, None))


def optional(function: Callable[P, R_co]) -> Dispatched[P, R_co]:
    """As `generic`; classes without a body of their own have that of `function`."""
    return cast("Dispatched[P, R_co]", _dispatched(function, function, function))


def _dispatched(
    function: Callable[..., Any], default: Callable[..., Any], compiled_default: Any
) -> Dispatched[..., Any]:
    bodies: dict[type, Callable[..., Any]] = {}

    @functools.wraps(function)
    def dispatch(*args: Any) -> Any:  # (state, *args) would be copied for the call
        return bodies.get(args[0].__class__, default)(*args)

    def register(state_class: type) -> Callable[[F], F]:
        known = _state_classes.setdefault(state_class.__name__, state_class)
        if not _met and _place(known) == _place(state_class):
            known = _state_classes[state_class.__name__] = state_class  # a cell run again
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

    result = cast("Dispatched[..., Any]", dispatch)
    result.bodies = bodies
    setattr(dispatch, "register", register)  # noqa: B010  a method of the protocol
    _generics.append(result)

    def choose(state: Any, *args: Any) -> Any:
        return bodies.get(_class_of(state), compiled_default)

    _collect(dispatch, choose, INLINE)
    return result


def compiled(loop: F, *state_classes: type) -> F:
    """Return `loop` as machine code, cached on disk, or `loop` itself with the JIT disabled.

    `state_classes` are the classes the loop's generic calls will meet; the source files of
    their functions are part of the cache's key, so that an edited policy compiles anew.
    """
    if not jit_enabled():
        return loop
    need("numba", "to simulate", "sim")
    from numba.extending import overload

    register_collected(overload, options=part_options)
    made: F = _compiled(loop, *_key(loop, state_classes))
    return made


def is_cached(loop: Callable[..., Any], *state_classes: type) -> bool:
    """Whether `compiled` would find machine code on disk, so that nobody waits for the compiler."""
    return jit_enabled() and has_code(_key(loop, state_classes)[0], loop.__name__)


def _key(loop: Callable[..., Any], state_classes: Iterable[type]) -> tuple[str, bool]:
    """Return the digest of all that the machine code depends on, and whether it can be kept."""
    functions = reached([loop, *bodies_of(*state_classes)])
    checks = os.environ.get("NUMBA_BOUNDSCHECK")
    return digest((LOOP_OPTIONS, INLINE, checks), functions), can_be_cached(functions)


def bodies_of(*state_classes: type) -> list[Callable[..., Any]]:
    """Return all bodies that are registered for the classes."""
    return [g.bodies[c] for g in _generics for c in state_classes if c in g.bodies]


@contextlib.contextmanager
def compiling(what: str) -> Iterator[None]:
    """Turn an error of Numba's compiler, many lines long, into one sentence about `what`."""
    try:
        with gc_paused():
            yield
    except Exception as error:  # Numba lets some of its own mistakes through as they are
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        steps = [k for k, line in enumerate(lines[:-1]) if "mode pipeline (step:" in line]
        reason = lines[steps[-1] + 1] if steps else f"{type(error).__name__}: {error}"
        raise CompilationError(
            f"Numba cannot compile {what}: {reason}. Functions on states must not allocate or "
            f"use Python objects, functions they call need @kernel, and `ask` returns "
            f"(slot, arm). With the environment variable NUMBA_DISABLE_JIT=1 CPython runs them "
            f"and shows its own errors. After a fix start a new process: Numba remembers failures."
        ) from error


def check_bodies(state: Any, functions: Iterable[Dispatched[..., Any]]) -> None:
    """Raise unless every one of the functions has a body for this state."""
    for function in functions:
        if type(state) not in function.bodies:
            raise ParameterError(_no_body(cast(Any, function).__name__, type(state)))


def _place(state_class: type) -> tuple[str, str]:
    return state_class.__module__, state_class.__qualname__


def _no_body(name: str, state_class: type) -> str:
    if _state_classes.get(state_class.__name__, state_class) is not state_class:
        return (
            f"{state_class.__name__} was defined a second time, and compiled code knows the first "
            f"one only. Start a new process, or give the new class another name."
        )
    if state_class.__module__.startswith("manyarms."):
        return (
            f"{state_class.__name__} has no `{name}`: the policy cannot do that. Use another one."
        )
    return (
        f"{state_class.__name__} has no `{name}`. Write one, and register it for this class "
        f"(docs/own_policy.md; for laws of rewards docs/own_world.md)."
    )


def _class_of(numba_type: Any) -> Any:
    return getattr(numba_type, "instance_class", None)


def _collect(
    function: Callable[..., Any], choose: Callable[..., Any], options: dict[str, Any]
) -> None:
    _collected.append((function, choose, options))


def register_collected(
    overload: Any,
    adapt: Callable[[Any], Any] = lambda body: body,
    options: Callable[[dict[str, Any]], dict[str, Any]] = lambda options: options,
) -> None:
    """Register all collected functions with a compiler, through its `overload`.

    `adapt` changes the bodies, and `options` the options, that this compiler needs changed.
    """
    for function, choose, own in _collected[_met.get(overload, 0) :]:
        adapted = _adapted(choose, adapt)
        overload(function, strict=False, jit_options=cast(Any, options(own)))(adapted)
    _met[overload] = len(_collected)


def _adapted(choose: Callable[..., Any], adapt: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args: adapt(choose(*args))


@functools.cache
def _compiled(loop: F, name: str, cached: bool) -> F:
    import numba

    made: Any = numba.njit(**whole_options(LOOP_OPTIONS))(loop)
    directory = cache_directory(name) if cached else None
    if directory is not None:
        made._cache = CodeCache(directory, loop, dumps, rebuild)
    return cast(F, made)
