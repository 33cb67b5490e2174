"""Compile the simulator's loop for a GPU, from the same functions as for the CPU.

A *lane* is one thread of the GPU that plays one replication. The states of all lanes have the shape
of a template: an array of the template becomes an array with a row for each lane. Arrays of length
one (a clock, a stream) are copied into the thread while it runs, mostly into registers.

Only this module imports numba.cuda, which the package `numba-cuda` provides. With the environment
variable NUMBA_ENABLE_CUDASIM=1 that package runs everything in CPython, without a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.compile_cache import warn_uncached
from manyarms.core.files import replace_file
from manyarms.core.jit import cache_folder, cached_in, jit_enabled, register_collected
from manyarms.core.memory import is_shared
from manyarms.core.versions import version_of
from manyarms.errors import DeviceError, MissingExtraError

_BLOCK = 32  # threads: a warp, so that as many fit as registers allow
_REGISTERS = 168  # per thread, so that 12 warps fit on a multiprocessor
_compiling = threading.Lock()  # one thread compiles at a time; CUDASIM runs one kernel at a time
_COMPILERS = ("numba-cuda", "nvidia-nvvm", "cuda-bindings")
# Private names of numba-cuda without which a GPU cannot be used: see docs/design.md.
_NEEDED = ("cuda.cudadrv.nvvm", "compile_ir"), ("cuda.cudadrv.driver", "device_memset")


def need_gpu() -> None:
    """Raise an error that says what is missing, unless a GPU can be used."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise MissingExtraError("numba-cuda", "to play on a GPU", "cuda")
    if not jit_enabled():
        raise DeviceError(
            "NUMBA_DISABLE_JIT is set, but a GPU needs the compiler. Unset it, or "
            'use engine="threads".'
        )
    if is_simulated():
        return
    if not cuda().is_available():
        error = cuda().cuda_error()
        reason = f"{error}".strip().splitlines()[0].rstrip(".") if error else "none was found"
        raise DeviceError(
            f"No GPU can be used: {reason}. An NVIDIA GPU and its driver are needed "
            f'(`nvidia-smi` shows both). Without them use engine="threads".'
        )
    for module, name in _NEEDED:
        if not hasattr(numba_module(module), name):
            raise DeviceError(
                f"numba-cuda {version_of('numba-cuda')} has no numba.{module}.{name} any more. "
                f'Install an earlier version, or use engine="threads".'
            )


def numba_module(name: str) -> Any:
    """Return a module of Numba; those of numba-cuda have no types and may be missing."""
    import numba

    return importlib.import_module(f"{numba.__name__}.{name}")


def cuda() -> Any:
    """Return numba.cuda."""
    numba_module("core.config").CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small batches are intended
    return numba_module("cuda")


def is_simulated() -> bool:
    """Whether numba-cuda's simulator is used instead of a GPU."""
    return bool(numba_module("core.config").ENABLE_CUDASIM)


def launch(
    kernel: Any, lanes: int, width: int, stream: Any, arguments: tuple[Any, ...], *, new: bool
) -> None:
    """Start a kernel; one thread in `width` has a lane, so that fewer lanes wait for each other.

    If it is `new`, it may have to be compiled. Only one thread compiles at a time.
    """
    blocks = -(-lanes * width // _BLOCK)
    with exact() if new or is_simulated() else contextlib.nullcontext():
        kernel[blocks, _BLOCK, stream](*arguments, lanes, width)


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """Compile so that results are bit-identical to the CPU's, and without negative indices.

    The compiler would contract a * b + c into one operation that is rounded once, and `cuda.jit`
    has no option to prevent it. Support for negative indices takes a fifth of all instructions.
    Kernels use none, because the dicts that replace arrays in CPython have none.
    """
    with _compiling, contextlib.ExitStack() as patches:
        if not is_simulated():
            nvvm, arrayobj = numba_module("cuda.cudadrv.nvvm"), numba_module("cuda.np.arrayobj")
            rounded = functools.partial(nvvm.compile_ir, fma=False)
            patches.enter_context(_replaced(nvvm, "compile_ir", rounded))
            if hasattr(arrayobj, "fix_integer_index"):
                patches.enter_context(_replaced(arrayobj, "fix_integer_index", _plain_index))
        yield


@contextlib.contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _plain_index(context: Any, builder: Any, kind: Any, place: Any, size: Any) -> Any:
    import numba

    return context.cast(builder, place, kind, numba.types.intp)


def lane_kernel(
    step: Callable[..., Any],
    own: dict[str, Any],
    common: dict[str, Any],
    compiled_in: Callable[[str, Any], bool],
) -> Any:
    """Return a kernel that calls `step(lane, own…, common…)` in each lane.

    Parameters
    ----------
    step
        A function that a decorator of `core.jit` has collected.
    own, common
        By name: templates of what each lane has for itself, and of what all lanes share. A template
        may be a NamedTuple of arrays, or None for what needs no template.
    compiled_in
        A function of the path of a number in a template, such as "state.arms.n", and the number. It
        returns whether the number is compiled in; then the kernel is only for templates with it.
    """
    text, names = _source(own, common, compiled_in)
    return _kernel(text, step, tuple(sorted(names.items(), key=str)))


@functools.cache
def _kernel(text: str, step: Any, names: tuple[tuple[str, Any], ...]) -> Any:
    import numba

    known: dict[str, Any] = {"cuda": cuda(), "step": step, **dict(names)}
    if is_simulated():
        known["row"] = Row
        exec(text, known)
        return cuda().jit(known["kernel"])
    register_collected(numba_module("cuda.extending").overload, _for_gpu)
    for name, value in names:
        if isinstance(value, np.dtype):
            known[name] = numba.from_dtype(value)
    classes = [value for _, value in names if hasattr(value, "_fields")]
    versions = [version_of(name) for name in _COMPILERS]
    folder = cache_folder(step, classes, text, versions, _REGISTERS)
    path = (folder or Path()) / "kernel.py"
    if folder is not None:
        try:
            replace_file(path, text.encode())  # Numba caches only functions that have a file
        except OSError as error:
            warn_uncached(error)
            folder = None
    exec(compile(text, str(path), "exec"), known)
    # An optimizing linker would also contract operations.
    options = {"lto": False, "max_registers": _REGISTERS}
    return cached_in(folder, cuda().jit, known["kernel"], **options)


def _source(
    own: dict[str, Any], common: dict[str, Any], compiled_in: Callable[[str, Any], bool]
) -> tuple[str, dict[str, Any]]:
    """Return the source of the kernel, and the classes and types that it names."""
    names: dict[str, Any] = {}
    opened: list[str] = []
    closed: list[str] = []

    def build(part: Any, path: str, shared: bool) -> str:
        if hasattr(part, "_fields"):
            kind = type(part).__name__
            names[kind] = type(part)
            fields = zip(part._fields, part, strict=True)
            return f"{kind}({', '.join(build(one, f'{path}.{f}', shared) for f, one in fields)})"
        if isinstance(part, bool | int | float) and compiled_in(path, part):
            return repr(float(part)) if isinstance(part, float) else repr(part)  # no np.float64
        if not isinstance(part, np.ndarray) or shared or is_shared(part):
            return path
        if is_simulated():
            return f"row({path}[lane:lane + 1])" if len(part) == 1 else f"row({path}[lane])"
        return local(part, path) if len(part) == 1 else f"{path}[lane]"

    def local(part: NDArray[Any], path: str) -> str:
        name = f"one_{len(opened)}"
        names[f"{name}_type"] = part.dtype
        fields = [f".{field}" for field in part.dtype.names or ()] or [""]
        opened.append(f"{name} = cuda.local.array(1, {name}_type)")
        opened.extend(f"{name}[0]{field} = {path}[lane]{field}" for field in fields)
        closed.extend(f"{path}[lane]{field} = {name}[0]{field}" for field in fields)
        return name

    mine = [build(part, name, False) for name, part in own.items()]
    ours = [build(part, name, True) for name, part in common.items()]
    head = f"def kernel({', '.join([*own, *common, 'lanes', 'width'])}):"
    where = ["thread = cuda.grid(1)", "lane = thread // width"]
    lines = [*opened, f"step({', '.join(['lane', *mine, *ours])})", *closed]
    guarded = ["if thread % width == 0 and lane < lanes:", *(f"    {line}" for line in lines)]
    return "\n    ".join([head, *where, *guarded]), names


def _for_gpu(body: Any) -> Any:
    """Return the body for a GPU, where `math.floor` and `math.ceil` would return floats."""
    if body is None:
        return None
    body = getattr(body, "on_gpu", body)
    ours = _gpu_math()
    swaps = {math: ours, math.ceil: ours.ceil, math.floor: ours.floor}
    swapped = {
        name: swaps[value]
        for name, value in body.__globals__.items()
        if name in body.__code__.co_names and isinstance(value, ModuleType | type(math.ceil))
        if value in swaps
    }
    if not swapped:
        return body
    known = {**body.__globals__, **swapped}
    made = FunctionType(body.__code__, known, body.__name__, body.__defaults__, body.__closure__)
    made.__module__, made.__qualname__ = body.__module__, body.__qualname__
    return made


@functools.cache
def _gpu_math() -> Any:
    def ceil(x: float) -> Any:
        return np.int64(math.ceil(x))

    def floor(x: float) -> Any:
        return np.int64(math.floor(x))

    module, jit = ModuleType("math"), cuda().jit(device=True)
    vars(module).update({**vars(math), "ceil": jit(ceil), "floor": jit(floor)})
    return module


class Row:
    """A lane's row of an array in numba-cuda's simulator; its elements are Python numbers."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = np.asarray(values)
        self.length = len(self.values)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Any:
        if not 0 <= place < self.length:
            raise IndexError(f"place {place} of {self.length}")
        fields = self.values.dtype.names
        return _Fields(self.values, place) if fields else self.values[place].item()

    def __setitem__(self, place: int, value: Any) -> None:
        self.values[place] = value

    def pop(self, place: int, default: None) -> None:
        """Set a record to zero, like a dict that removes it."""
        self.values[place] = np.zeros((), self.values.dtype)


class _Fields:
    """A record of a row."""

    def __init__(self, values: NDArray[Any], place: int) -> None:
        self.__dict__["_own"] = values[place : place + 1]

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_own"][name][0].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["_own"][name] = value
