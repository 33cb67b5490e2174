"""Work on everything as it is now, in a copy of this process, while this process goes on."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
import warnings
from collections.abc import Callable

CAN_FORK = hasattr(os, "fork")
_LONGEST = 120.0  # seconds; then the copy has met a lock that nobody opens any more
_MOST_FILES = 1 << 20  # that a process has open: the system may say that there is no limit
_DONE, _FAILED = b"+", b"-"  # what a copy writes last, after the length of what came before
_LENGTH_BYTES = 8


class ProcessCopy:
    """A fork of this process that computes something and ends.

    Raises an `OSError` if there can be none.
    """

    def __init__(self, work: Callable[[], bytes]) -> None:
        self._read, write = os.pipe()
        self._parts: list[bytes] = []
        self._deadline = time.monotonic() + _LONGEST
        # else a handler might raise in the copy, and what called this would go on there, too
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads, NumPy's included
                self._child = os.fork()
        except BaseException:
            os.close(self._read)
            os.close(write)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise
        if self._child == 0:
            _compute(work, write, before)
        os.close(write)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except BaseException:  # of a handler
            self.stop()
            raise

    def poll(self) -> bytes | None:
        """Return the result, None if it is not there yet; raise an `OSError` if it failed."""
        os.set_blocking(self._read, False)
        try:
            return self.wait()
        except BlockingIOError:
            if not self._parts and time.monotonic() > self._deadline:
                self.stop()
                raise TimeoutError("the copy of this process took too long") from None
        return None

    def wait(self) -> bytes:
        """Return the result when it is there; raise an `OSError` if it failed."""
        while data := os.read(self._read, 1 << 20):
            self._parts.append(data)
        os.close(self._read)
        self._read = -1
        status = 0
        with contextlib.suppress(ChildProcessError):  # somebody else has waited for it
            _, status = os.waitpid(self._child, 0)
        data = b"".join(self._parts)
        result, length, end = data[: -_LENGTH_BYTES - 1], data[-_LENGTH_BYTES - 1 : -1], data[-1:]
        whole = int.from_bytes(length, "little") == len(result)
        if whole and end == _DONE and not status:
            return result
        why = f"it ended with status {status}"
        if whole and end == _FAILED:
            why = result.decode()
        raise OSError(f"the copy of this process failed: {why}")

    def kill(self) -> None:
        """End the copy; whoever waits for it learns that it failed."""
        if self._read >= 0:  # else its number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)

    def stop(self) -> None:
        """End the copy, and forget it."""
        self.kill()
        with contextlib.suppress(OSError):
            os.set_blocking(self._read, True)
            self.wait()


def _compute(work: Callable[[], bytes], write: int, signals: set[signal.Signals | int]) -> None:
    """Write the result, in the copy, and end."""
    try:
        _be_alone(write)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        with open(write, "wb") as sink:
            try:
                result, end = work(), _DONE
            except BaseException as error:
                result, end = repr(error).encode(errors="replace"), _FAILED
            sink.write(result)
            sink.write(len(result).to_bytes(_LENGTH_BYTES, "little") + end)
    finally:
        os._exit(0)


def _be_alone(write: int) -> None:
    """Share nothing with the process that goes on but the pipe, and run nothing of its own."""
    gc.disable()  # else objects that are garbage might close what is not theirs any more
    signal.set_wakeup_fd(-1)  # else what is sent to the copy would be heard there
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    os.closerange(3, write)  # else a lock, a session or a client would outlive this process
    os.closerange(write + 1, _MOST_FILES)
    os.nice(5)
