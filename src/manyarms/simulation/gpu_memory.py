"""The memory of a GPU: the arrays of a batch of lanes, and the number of lanes being played."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.memory import is_shared
from manyarms.simulation.gpu_compiler import Row, cuda, is_simulated, numba_module

_WIDEST = 8  # threads that are started for one lane; more are not faster
_ALIGNED = 256  # bytes
_POLL_SECONDS = 0.0003


class Load:
    """Counts the lanes being played in all batches."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._lanes = 0
        self._lock = threading.Lock()

    def add(self, lanes: int) -> None:
        """Add lanes that start; a negative number removes lanes that have ended."""
        with self._lock:
            self._lanes += lanes

    def width(self) -> int:
        """Return how many threads to start for each lane, a power of two.

        All but one of them end at once. With fewer lanes in a warp, lanes wait less for each other.
        """
        width = 1
        while width < _WIDEST and 2 * width * self._lanes <= self.threads:
            width *= 2
        return width


class StreamMemory:
    """A stream of the GPU, and the memory of its batches, which run one after the other."""

    def __init__(self, size: int, load: Load) -> None:
        self.size, self.load = size, load
        self.stream: Any = cuda().stream()
        self._bytes: Any = None
        self._used = 0

    def begin(self, size: int) -> None:
        """Allocate memory for a batch; the one before must have ended."""
        self._used = 0
        if not is_simulated() and (self._bytes is None or self._bytes.size < size):
            self._bytes = None  # free it first
            self._bytes = cuda().device_array(max(size, min(self.size, 2 * size)), np.uint8)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of zeros."""
        if is_simulated():
            return np.zeros(shape, dtype)
        size = max(1, math.prod(shape)) * np.dtype(dtype).itemsize
        part = self._bytes[self._used : self._used + size]
        self._used += -(-size // _ALIGNED) * _ALIGNED
        numba_module("cuda.cudadrv.driver").device_memset(part, 0, size, self.stream)
        made = part.view(dtype)
        return made[:0].reshape(*shape) if 0 in shape else made.reshape(*shape)

    def copy(self, values: NDArray[Any]) -> Any:
        """Return an array with these values, on the GPU."""
        if is_simulated():
            return Row(values)
        made = self.zeros(values.shape, values.dtype)
        made.copy_to_device(np.ascontiguousarray(values), self.stream)
        return made

    def shared(self, part: Any) -> Any:
        """Return what all lanes share, with its arrays copied to the GPU."""
        if hasattr(part, "_fields"):
            return type(part)(*map(self.shared, part))
        return self.copy(part) if isinstance(part, np.ndarray) else part

    def lanes(self, template: Any, count: int, shared: Any) -> Any:
        """Return the states of `count` lanes: copies of the template, with one shared table."""
        if hasattr(template, "_fields"):
            return type(template)(*(self.lanes(part, count, shared) for part in template))
        if not isinstance(template, np.ndarray):
            return template
        if is_shared(template):
            return shared
        if len(template) == 1:
            ones = np.repeat(template, count)
            return ones if is_simulated() else self.copy(ones)
        made = self.zeros((count, len(template)), template.dtype)
        if template.view(np.uint8).any():
            self._fill(made, template, count)
        return made

    def _fill(self, rows: Any, row: NDArray[Any], count: int) -> None:
        if is_simulated():
            rows[:] = row
            return
        rows[:1].copy_to_device(row[None], self.stream)
        done = 1
        while done < count:  # twice as many each time
            more = min(done, count - done)
            rows[done : done + more].copy_to_device(rows[:more], self.stream)
            done += more

    def read(self, array: Any) -> Any:
        """Return a copy of an array after all work in the stream is done."""
        if is_simulated():
            return np.array(getattr(array, "values", array))
        done = cuda().event(timing=False)
        done.record(self.stream)
        while not done.query():  # waiting in the driver would also block other threads
            time.sleep(_POLL_SECONDS)
        found = array.copy_to_host(stream=self.stream)
        self.stream.synchronize()
        return np.asarray(found)


def lane_bytes(template: Any) -> int:
    if isinstance(template, tuple):
        return sum(map(lane_bytes, template))
    if isinstance(template, np.ndarray) and not is_shared(template):
        return template.nbytes
    return 0
