"""The third machine: the functions that Numba compiles for the CPU, compiled for a GPU.

A *lane* is one thread of the GPU with a state of its own. The states of all lanes have one shape,
that of a template: an array of the template becomes an array with a row for each lane. What has
one place only (a clock, a stream) lives in the thread while it runs, mostly in registers.

Only this module imports numba.cuda, which the package `numba-cuda` brings. With the environment
variable NUMBA_ENABLE_CUDASIM=1 that package runs all this in CPython, without a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.code_digest import can_be_cached, digest, reached, version_of
from manyarms.core.compile_cache import CodeCache, cache_directory
from manyarms.core.jit import bodies_of, jit_enabled, register_collected
from manyarms.core.memory import is_shared
from manyarms.errors import DeviceError, MissingExtraError

BLOCK = 32  # threads: a warp, so that as many fit as registers allow
_REGISTERS = 168  # of a thread: so that 12 warps share a processor
_ALIGNED = 256  # bytes
_NAP = 0.0003  # seconds
_alone = threading.Lock()  # one thread compiles at a time, and the simulator runs one kernel
_COMPILERS = ("numba-cuda", "nvidia-nvvm", "cuda-bindings")
# Private names of numba-cuda without which a GPU cannot be used: see docs/design.md.
_NEEDED = ("cuda.cudadrv.nvvm", "compile_ir"), ("cuda.cudadrv.driver", "device_memset")


def need_gpu() -> None:
    """Raise unless there is a GPU that can be used; say what is missing."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise MissingExtraError("numba-cuda", "to play on a GPU", "cuda")
    if not jit_enabled():
        raise DeviceError(
            "NUMBA_DISABLE_JIT is set, and without the compiler no GPU can be used. Unset it, or "
            'take engine="threads".'
        )
    cuda = _cuda()
    if _simulated():
        return
    if not cuda.is_available():
        raise DeviceError(
            f"No GPU can be used: {_reason(cuda)} An NVIDIA GPU and its driver are needed "
            f'(`nvidia-smi` shows both). Without them take engine="threads".'
        )
    for module, name in _NEEDED:
        if not hasattr(_numba(module), name):
            raise DeviceError(
                f"numba-cuda {version_of('numba-cuda')} has no numba.{module}.{name} any more. "
                f'Install an earlier version, or take engine="threads".'
            )


def gpu_is_there() -> bool:
    """Whether there is a GPU that can be used."""
    try:
        need_gpu()
    except (DeviceError, MissingExtraError):
        return False
    return True


def _reason(cuda: Any) -> str:
    error = cuda.cuda_error()
    return f"{error}".strip().splitlines()[0].rstrip(".") + "." if error else "none was found."


def _numba(module: str) -> Any:
    """Return a module of Numba's; those of numba-cuda have no types, and may not be there."""
    import numba

    return importlib.import_module(f"{numba.__name__}.{module}")


def _cuda() -> Any:
    _config().CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small batches are no mistake
    return _numba("cuda")


def _config() -> Any:
    import numba

    return numba.config


def _simulated() -> bool:
    return bool(_config().ENABLE_CUDASIM)


def new_stream() -> Any:
    """Return a queue for work on the GPU. Work in different queues may run at the same time."""
    return _cuda().stream()


def free_bytes() -> int:
    """Return how much memory of the GPU is free."""
    return 1 << 24 if _simulated() else int(_cuda().current_context().get_memory_info().free)


def processors() -> int:
    """Return the number of the GPU's processors, each of which runs many threads."""
    return 1 if _simulated() else int(_cuda().get_current_device().MULTIPROCESSOR_COUNT)


class Slab:
    """A block of the GPU's memory that is cut into arrays; `reset` frees all of them."""

    def __init__(self, size: int, stream: Any) -> None:
        self.size = size
        self._stream = stream
        self._bytes: Any = _cuda().device_array(size, np.uint8) if not _simulated() else None
        self._used = 0

    def reset(self) -> None:
        """Make all memory free."""
        self._used = 0

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of zeros."""
        if _simulated():
            return np.zeros(shape, dtype)
        size = max(1, math.prod(shape)) * np.dtype(dtype).itemsize
        part = self._bytes[self._used : self._used + size]
        self._used += _rounded(size)
        _numba("cuda.cudadrv.driver").device_memset(part, 0, size, self._stream)
        made = part.view(dtype)
        return made[:0].reshape(*shape) if 0 in shape else made.reshape(*shape)

    def copy(self, values: NDArray[Any]) -> Any:
        """Return an array with these values."""
        if _simulated():
            return _Row(values)
        made = self.zeros(values.shape, values.dtype)
        made.copy_to_device(np.ascontiguousarray(values), self._stream)
        return made

    def shared(self, part: Any) -> Any:
        """Return what all lanes share: copies of arrays; numbers as they are."""
        if hasattr(part, "_fields"):
            return type(part)(*map(self.shared, part))
        return self.copy(part) if isinstance(part, np.ndarray) else part

    def lanes(self, template: Any, count: int, shared: Any) -> Any:
        """Return the state of `count` lanes, each as the template is, with one shared table."""
        if hasattr(template, "_fields"):
            return type(template)(*(self.lanes(part, count, shared) for part in template))
        if not isinstance(template, np.ndarray):
            return template
        if is_shared(template):
            return shared
        if len(template) == 1:
            ones = np.repeat(template, count)
            return ones if _simulated() else self.copy(ones)
        made = self.zeros((count, len(template)), template.dtype)
        if template.view(np.uint8).any():
            self._fill(made, template, count)
        return made

    def _fill(self, rows: Any, row: NDArray[Any], count: int) -> None:
        if _simulated():
            rows[:] = row
            return
        rows[:1].copy_to_device(row[None], self._stream)
        done = 1
        while done < count:  # twice as many each time
            more = min(done, count - done)
            rows[done : done + more].copy_to_device(rows[:more], self._stream)
            done += more


def read(array: Any, stream: Any) -> NDArray[Any]:
    """Return a copy of an array, once all work in the stream is done."""
    if _simulated():
        return np.array(getattr(array, "values", array))
    done = _cuda().event(timing=False)
    done.record(stream)
    while not done.query():  # to wait within the driver would keep other threads waiting, too
        time.sleep(_NAP)
    found = array.copy_to_host(stream=stream)
    stream.synchronize()
    return np.asarray(found)


def _rounded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def lane_bytes(template: Any) -> int:
    """Return how much memory a lane takes."""
    if isinstance(template, tuple):
        return sum(map(lane_bytes, template))
    if isinstance(template, np.ndarray) and not is_shared(template):
        return template.nbytes
    return 0


def launch(
    kernel: Any, lanes: int, width: int, stream: Any, arguments: tuple[Any, ...], *, new: bool
) -> None:
    """Start a kernel; one thread in `width` has a lane, so that fewer wait for each other.

    If it is `new`, it may have to be compiled, which one thread does at a time.
    """
    blocks = -(-lanes * width // BLOCK)
    with _exact() if new or _simulated() else contextlib.nullcontext():
        kernel[blocks, BLOCK, stream](*arguments, lanes, width)


@contextlib.contextmanager
def _exact() -> Iterator[None]:
    """Compile so that results are those of the CPU, bit for bit, and no index may be negative.

    The compiler would make one operation, rounded once, of a * b + c. And it would count negative
    indices from an array's end, which takes a fifth of all instructions; dicts have none.
    """
    with _alone, contextlib.ExitStack() as patches:
        if not _simulated():
            nvvm, arrayobj = _numba("cuda.cudadrv.nvvm"), _numba("cuda.np.arrayobj")
            rounded = functools.partial(nvvm.compile_ir, fma=False)
            patches.enter_context(_replaced(nvvm, "compile_ir", rounded))
            if hasattr(arrayobj, "fix_integer_index"):
                patches.enter_context(_replaced(arrayobj, "fix_integer_index", _as_it_is))
        yield


@contextlib.contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _as_it_is(context: Any, builder: Any, kind: Any, place: Any, size: Any) -> Any:
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
        A function made known by the decorators of `core.jit`.
    own, common
        By name: templates of what each lane has for itself, and what all share. A template may be
        a NamedTuple of arrays, or None for what needs no template.
    compiled_in
        Given the way to a number of a template, such as "state.arms.n", and the number: whether it
        is compiled in. Then the kernel serves templates of this number only.
    """
    text, names = _source(own, common, compiled_in)
    return _kernel(text, step, tuple(sorted(names.items(), key=str)))


@functools.cache
def _kernel(text: str, step: Any, names: tuple[tuple[str, Any], ...]) -> Any:
    import numba

    cuda = _cuda()
    known: dict[str, Any] = {"cuda": cuda, "step": step, **dict(names)}
    if _simulated():
        known["row"] = _Row
        exec(text, known)
        return cuda.jit(known["kernel"])
    register_collected(_numba("cuda.extending").overload, _for_device)
    for name, value in names:
        if isinstance(value, np.dtype):
            known[name] = numba.from_dtype(value)
    exec(text, known)
    # the linker, if it had a hand in optimizing, would undo what `_exact` asks for
    made = cuda.jit(known["kernel"], lto=False, max_registers=_REGISTERS)
    classes = (value for _, value in names if hasattr(value, "_fields"))
    functions = reached([step, *bodies_of(*classes)])
    versions = [version_of(name) for name in _COMPILERS]
    if can_be_cached(functions):
        folder = cache_directory(digest((text, versions, _REGISTERS), functions))
        if folder is not None:
            made._cache = _kernel_cache(folder, known["kernel"])
    return made


def _source(
    own: dict[str, Any], common: dict[str, Any], compiled_in: Callable[[str, Any], bool]
) -> tuple[str, dict[str, Any]]:
    """Write the kernel, and return it with the classes and types that it names."""
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
        if _simulated():
            return f"row({path}[lane:lane + 1])" if len(part) == 1 else f"row({path}[lane])"
        return place(part, path) if len(part) == 1 else f"{path}[lane]"

    def place(part: NDArray[Any], path: str) -> str:
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
    text = "\n    ".join([head, *where, *guarded])
    return text, names


def _for_device(body: Any) -> Any:
    """Return the body for a GPU; `math` is CPython's there: floor and ceil give integers."""
    if body is None:
        return None
    body = getattr(body, "on_gpu", body)
    ours = _device_math()
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
def _device_math() -> Any:
    def ceil(x: float) -> Any:
        return np.int64(math.ceil(x))

    def floor(x: float) -> Any:
        return np.int64(math.floor(x))

    module = ModuleType("math")
    vars(module).update(vars(math))
    vars(module).update(ceil=_cuda().jit(device=True)(ceil), floor=_cuda().jit(device=True)(floor))
    return module


def _kernel_cache(folder: Any, function: Any) -> CodeCache:
    return CodeCache(
        folder,
        function,
        lambda parts: bytes(_numba("cuda.serialize").dumps(parts)),
        lambda target, states: _numba("cuda.dispatcher")._Kernel._rebuild(**states),
        lambda kernel: (kernel._reduce_states(),),
    )


class _Row:
    """A lane's row of an array, as the simulator reads it: in Python's own numbers."""

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
        """Make a record zero, as a dict does that has none."""
        self.values[place] = np.zeros((), self.values.dtype)


class _Fields:
    """A record of a row."""

    def __init__(self, values: NDArray[Any], place: int) -> None:
        self.__dict__["_own"] = values[place : place + 1]

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_own"][name][0].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["_own"][name] = value
