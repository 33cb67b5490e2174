"""Plain functions that CPython runs live, and that Numba compiles into the simulator.

This module imports numba on the first compilation only, and works without it: live use never
compiles. The decorators collect functions; CPython keeps calling them as they are.

* `kernel` and `rare`: one body for both.
* `twin`: a Python body, and a compiled one where 64-bit integer types must be spelled out.
* `generic`: dispatch on the class of the first argument (how `ask` finds its policy);
  `optional`: the same, with a body for all other classes.
* `compiled`: the machine code of a loop that calls all these.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from manyarms.core.compile_cache import folder_for, warn_uncached
from manyarms.core.fingerprint import Fingerprint, fingerprint, is_ours
from manyarms.core.gc_pause import gc_paused
from manyarms.core.loop_compiler import part_options, whole_options
from manyarms.core.optional import need
from manyarms.core.versions import environment
from manyarms.errors import CompilationError, DuplicateNameError, ParameterError

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

# `_nrt=False` switches reference counting off, which makes a pull thirty times as fast or more.
# This is sound because kernels never allocate, and an accidental allocation does not compile.
# Kernels are not called from C: making a wrapper would take a tenth of the compile time or more.
CALLED: dict[str, Any] = {"no_cfunc_wrapper": True}
LOOP_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, **CALLED}
INLINE: dict[str, Any] = {"forceinline": True, **CALLED}

_collected: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = []
_registered: dict[Any, int] = {}  # by the `overload` of a compiler: how many are registered with it
_generics: list[Dispatched[..., Any]] = []
_state_classes: dict[str, type] = {}
_compiled_bodies: dict[tuple[str, type], str] = {}  # digests, by generic function and class


class Dispatched(Protocol[P, R_co]):
    """A function whose body is chosen by the class of its first argument."""

    bodies: dict[type, Callable[..., Any]]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the body for the first argument's class."""

    def register(self, state_class: type) -> Callable[[F], F]:
        """Make the decorated function the body for a class."""


def jit_enabled() -> bool:
    """Return whether loops are compiled; with `NUMBA_DISABLE_JIT=1`, CPython runs them."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def kernel(function: F) -> F:
    """Let compiled code call `function`, which stays an ordinary Python function.

    It is inlined, because handing a state to a function costs more than most functions do.
    """
    _collect(function, lambda *args: function, INLINE)
    return function


def rare(function: F) -> F:
    """Like `kernel`, but never inlined, because it is called rarely."""
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
    """Register the decorated function as the body of `function` on a GPU, with the same results."""

    def decorate(body: F) -> F:
        setattr(function, "on_gpu", body)  # noqa: B010  functions have no such attribute
        return body

    return decorate


def generic(function: Callable[P, R_co]) -> Dispatched[P, R_co]:
    """Make `function` call the body that is registered for the class of its first argument."""
    name = function.__name__

    def refuse(state: Any, *args: Any) -> Any:
        raise ParameterError(_no_body(name, state.__class__))

    return cast("Dispatched[P, R_co]", _dispatched(function, refuse, None))


def optional(function: Callable[P, R_co]) -> Dispatched[P, R_co]:
    """Like `generic`, but classes without a body of their own use that of `function`."""
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
        if not _registered and _name_of(known) == _name_of(state_class):
            known = _state_classes[state_class.__name__] = state_class  # a cell was rerun
        if known is not state_class:
            # Numba treats two NamedTuples of the same name and fields as one type.
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
    """Return `loop` as machine code, cached on disk, or `loop` itself if the JIT is disabled.

    `state_classes` are the classes by which the loop's generic calls are dispatched.
    """
    if not jit_enabled():
        return loop
    need("numba", "to simulate", "sim")
    from numba.extending import overload

    register_collected(overload, options=part_options)
    made: F = _compiled(loop, cache_folder(loop, state_classes))
    return made


def is_cached(loop: Callable[..., Any], *state_classes: type) -> bool:
    """Return whether `compiled` would find machine code on disk."""
    folder = cache_folder(loop, state_classes, make=False) if jit_enabled() else None
    return folder is not None and any(folder.rglob("*.nbi"))


def cache_folder(
    loop: Callable[..., Any], state_classes: Iterable[type], *more: object, make: bool = True
) -> Path | None:
    """Return the folder that caches the loop's code for these classes; None if it cannot be cached.

    The name of the folder is a digest of all that the code depends on, `more` included. So every
    version of every policy has its own folder. This also keeps processes that compile at the same
    time apart: Numba can mix up two signatures that are added to one index at once.

    Code is not cached if a later process could not use it: Numba stores the classes of a script or
    notebook by value, and does not recognize them later.
    """
    classes = sorted(state_classes, key=_name_of)
    prints = [fingerprint([loop])]
    for state_class in classes:
        for name, body in _bodies(state_class):
            prints.append(fingerprint([body]))
            if make and not is_ours(body):
                _check_unchanged(name, state_class, prints[-1])
    unknown = [value for one in prints for value in one.unknown]
    if unknown:
        fix = "Make it a number, a tuple or an array."
        warn_uncached(f"it uses {unknown[0]}, which may differ in another process", fix)
    scripts = {"__main__", "__mp_main__"}
    if unknown or scripts & {one.__module__ for one in classes}.union(*(p.modules for p in prints)):
        return None
    checks = os.environ.get("NUMBA_BOUNDSCHECK")
    parts = [one.digest for one in prints], [*map(_name_of, classes)], loop.__qualname__
    return folder_for(environment(*parts, checks, *more)[:16], make=make)


def _check_unchanged(name: str, state_class: type, found: Fingerprint) -> None:
    """Raise if a body, or a value that it uses, has changed since it was compiled.

    Numba would use the earlier code, and cache it for the later one.
    """
    if _compiled_bodies.setdefault((name, state_class), found.digest) != found.digest:
        raise CompilationError(
            f"`{name}` of {state_class.__name__}, or a function or value that it uses, has changed "
            f"since it was compiled, and Numba would play the earlier code. Start a new process "
            f"(in a notebook: restart), or keep what changes in the state."
        )


def bodies_of(state_classes: Iterable[type]) -> list[Callable[..., Any]]:
    """Return all bodies that are registered for the classes, in an order."""
    classes = sorted(state_classes, key=_name_of)
    return [body for state_class in classes for _, body in _bodies(state_class)]


def _bodies(state_class: type) -> list[tuple[str, Callable[..., Any]]]:
    """Return the names of generic functions, with their bodies for a class."""
    return [
        (cast(Any, generic).__name__, generic.bodies[state_class])
        for generic in _generics
        if state_class in generic.bodies
    ]


def check_repeatable(state_classes: Iterable[type]) -> None:
    """Raise if bodies use random numbers or clocks that differ in every run."""
    uses = fingerprint(bodies_of(state_classes)).unrepeatable
    if uses:
        raise ParameterError(
            f"Compiled functions must not use `random`, `numpy.random`, `time` or `secrets`, "
            f"because runs could not be repeated, got {uses[0]}. Draw random numbers from the "
            f"`key` that `reset` gets (docs/own_policy.md), or from the `word` of a distribution."
        )


def compile_now(what: str, loop: Any, call: Callable[[], object]) -> None:
    """Compile a loop by calling it, or raise an error that says why `what` cannot be compiled.

    If the loop's cache may be the reason, remove it and compile again.
    """
    try:
        with gc_paused():
            try:
                call()
            except Exception as error:
                if not _drop_cache(loop, error):
                    raise
                call()
    except Exception as error:  # Numba raises errors of many types
        raise CompilationError(
            f"Numba cannot compile {what}: {_reason(error)} With the environment variable "
            f"NUMBA_DISABLE_JIT=1 CPython runs everything and shows its own errors. After a fix, "
            f"start a new process: Numba caches failures."
        ) from error


def _drop_cache(loop: Any, error: Exception) -> bool:
    """Remove the cached code of a loop, if it may have caused an error."""
    path = getattr(getattr(loop, "stats", None), "cache_path", None)
    if path is None or type(error).__module__.startswith("numba."):  # an error in a kernel
        return False
    folder = Path(path)
    warn_uncached(f"{error} ('{folder}')")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return True


_COLOURS = re.compile(r"\x1b\[\d+m")
_PLACE = re.compile(r'(?: at |File ")(\S.*?)(?: \(|", line )(\d+)')
_ALLOCATES = ("NRT required but not enabled", "Only accept returning of array passed")


def _reason(error: Exception) -> str:
    """Return what Numba found, and in which function and line."""
    text = _COLOURS.sub("", str(error))
    where = _place_in(text)
    if any(words in text for words in _ALLOCATES):
        return (
            f"memory is allocated{where}, which is not allowed in kernels. Create arrays and "
            f"records in `new_state`, and keep them in the state. Use numbers instead of "
            f"lists and strings."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    steps = [k for k, line in enumerate(lines[:-1]) if "mode pipeline (step:" in line]
    found = lines[steps[-1] + 1] if steps else f"{type(error).__name__}: {text}"
    return (
        f"{found.rstrip('.')}{where}. Functions that kernels call need @kernel, `ask` returns "
        f"(slot, arm), and kernels must not use Python objects; `math`, loops and branches work."
    )


def _place_in(text: str) -> str:
    """Return the function and the line that Numba complains about, the innermost outside Numba."""
    for path, line in _PLACE.findall(text):
        if f"{os.sep}numba{os.sep}" not in path:
            code, number = linecache.getline(path, int(line)).strip(), int(line)
            above = (linecache.getline(path, one) for one in range(number, 0, -1))
            names = (found[1] for one in above if (found := re.match(r"\s*def (\w+)", one)))
            return f" in `{next(names, '?')}` ({Path(path).name}, line {number}: `{code}`)"
    return ""


def check_bodies(state: Any, functions: Iterable[Dispatched[..., Any]]) -> None:
    """Raise unless every one of the functions has a body for this state."""
    for function in functions:
        if type(state) not in function.bodies:
            raise ParameterError(_no_body(cast(Any, function).__name__, type(state)))


def _name_of(state_class: type) -> str:
    return f"{state_class.__module__}.{state_class.__qualname__}"


def _no_body(name: str, state_class: type) -> str:
    if _state_classes.get(state_class.__name__, state_class) is not state_class:
        return (
            f"{state_class.__name__} was defined a second time, and compiled code knows the first "
            f"one only. Start a new process, or give the new class another name."
        )
    if state_class.__module__.startswith("manyarms."):
        return (
            f"{state_class.__name__} has no `{name}`: its policy does not support this. Use "
            f"another one."
        )
    return (
        f"{state_class.__name__} has no `{name}`. Write one, and register it for this class "
        f"(docs/own_policy.md; for distributions docs/own_rewards.md)."
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

    `adapt` and `options` adapt the bodies and their options to this compiler.
    """
    for function, choose, own in _collected[_registered.get(overload, 0) :]:
        adapted = _adapted(choose, adapt)
        overload(function, strict=False, jit_options=cast(Any, options(own)))(adapted)
    _registered[overload] = len(_collected)


def _adapted(choose: Callable[..., Any], adapt: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args: adapt(choose(*args))


@functools.cache
def _compiled(loop: F, folder: Path | None) -> F:
    import numba

    return cast(F, cached_in(folder, numba.njit, loop, **whole_options(LOOP_OPTIONS)))


def cached_in(folder: Path | None, decorator: Any, function: Any, **options: Any) -> Any:
    """Decorate a function with one of Numba's decorators; its cache is in `folder`.

    Numba reads `CACHE_DIR` when a function is decorated. Without a folder, or if Numba would use
    another one, code is not cached: only this folder's name changes with the code.

    The decorator gets the function and the options in one call: `cuda.jit(lto=False)(function)`
    loses `lto` in numba-cuda 0.30.
    """
    import numba

    config: Any = numba.config
    if folder is not None:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            made = decorator(function, cache=True, **options)
            if folder in Path(made.stats.cache_path).parents:
                return made
        except RuntimeError as error:  # no place for a cache
            warn_uncached(error)
        finally:
            config.CACHE_DIR = before
    return decorator(function, **options)
