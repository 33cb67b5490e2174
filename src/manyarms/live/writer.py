"""The writing side of a journal: hears of every event, and puts it into the file."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from manyarms.core.files import replace_file, write_all
from manyarms.errors import JournalError
from manyarms.live.handle import Live
from manyarms.live.records import ABANDONED, ASKED, TOLD, begin_file, first_check, record

__all__ = ["Writer"]

_APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Writer:
    """Appends to a journal's file while its handle is locked; the handle's `Observer`.

    After a failed write it refuses everything: the handle may know more than the file does. So it
    does after a call that was interrupted (Ctrl-C, a signal) between `begin` and `done`.
    """

    def __init__(self, path: Path, live: Live, *, pause: float | None, most: int) -> None:
        self._path = path
        self._live = live
        self._pause = pause  # seconds until written records are synced; None never
        self._most = most  # records before the file is compacted
        self._process = os.getpid()
        self._file = -1
        self._closed = False
        self._busy = False  # an event is being made, or was and is not done
        self._end = 0  # of what was written wholly
        self._records = 0
        self._check = 0
        self._gathered: list[bytes] | None = None
        self._failure: BaseException | None = None
        self._timer: threading.Timer | None = None

    def go_on(self, *, end: int, records: int, check: int) -> None:
        """Append to the file that is there."""
        self._file = os.open(self._path, _APPEND)
        self._end, self._records, self._check = end, records, check

    def compact(self) -> None:
        """Replace the file by one that begins with all the handle knows, and has no records."""
        self.refuse_if_unfit()
        self._compact()

    def _compact(self) -> None:
        saved = self._live.to_bytes()
        data = begin_file(saved)
        try:
            if os.name == "nt":
                self._let_go()  # Windows replaces no file that is open
            replace_file(self._path, data)
            self._let_go()
            self._file = os.open(self._path, _APPEND)
        except BaseException as error:
            self._fail(error)
        self._end, self._records, self._check = len(data), 0, first_check(saved)
        if self._gathered is not None:
            self._gathered.clear()  # they are in what was saved

    def begin(self) -> None:
        """Refuse, before anything changes, what could not be written."""
        self.refuse_if_unfit()
        self._busy = True

    def done(self) -> None:
        """Let the next event come."""
        self._busy = False

    def asked(self, number: int, arm: int) -> None:
        """Write down a pull that was asked for."""
        self._put(ASKED, number, arm)
        if self._records >= self._most:  # here, because now the handle is done with the event
            self._compact()
        self.done()

    def told(self, number: int, reward: float) -> None:
        """Write down a reward."""
        self.begin()
        self._put(TOLD, number, reward)

    def abandoned(self, number: int) -> None:
        """Write down that a pull was given up."""
        self.begin()
        self._put(ABANDONED, number, 0)

    def rearranged(self) -> None:
        """Begin anew with the arms there are now."""
        self._compact()
        self.done()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Write the events within at once, with one sync."""
        with self._live._lock:
            self.refuse_if_unfit()
            try:
                self._gathered = []
                yield
                self._write_gathered()
            except Exception:
                self._write_gathered()
                raise
            except BaseException as error:  # an interruption: its caller hears of none of them
                self._failure = error
                raise

    def _write_gathered(self) -> None:
        data, self._gathered = b"".join(self._gathered or ()), None
        if data and self._failure is None:
            self._write(data)

    def refuse_after_failure(self) -> None:
        """Raise if the handle may know more than the file does."""
        if self._failure is not None:
            raise JournalError(
                f"{self._path} could not be written: {self._failure!r}. Make room and open the "
                f"journal again; that shows whether the last ask or tell is in it."
            ) from self._failure
        if self._busy:
            raise JournalError(
                f"{self._path}: a call was interrupted before it was done. Open the journal again; "
                f"that shows whether it is in it."
            )

    def refuse_if_unfit(self) -> None:
        """Raise if nothing can be written any more."""
        self.refuse_after_failure()
        if self._closed:
            raise JournalError(f"{self._path} is closed. Open the journal again.")
        if self._process != os.getpid():
            raise JournalError(
                f"{self._path} was opened by process {self._process}, and this one is its fork. "
                f"Let that process do the asking."
            )

    def close(self) -> None:
        """Make the file durable and let go of it."""
        with self._live._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._closed:
                return
            self._closed = True
            try:
                if self._pause is not None and self._failure is None:
                    os.fsync(self._file)
            finally:
                self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _put(self, kind: int, number: int, rest: float) -> None:
        data, self._check = record(kind, number, rest, self._check)
        self._records += 1
        if self._gathered is None:
            self._write(data)
        else:
            self._gathered.append(data)

    def _write(self, data: bytes) -> None:
        try:
            write_all(self._file, data)
            if self._pause == 0 or (self._pause and not self._sync_soon()):
                os.fsync(self._file)
        except BaseException as error:
            with contextlib.suppress(OSError):  # let no half of a record stay
                os.ftruncate(self._file, self._end)
            self._fail(error)
        self._end += len(data)

    def _sync_soon(self) -> bool:
        """Start the clock, if it does not run; return False if there can be none."""
        if self._timer is None:
            timer = threading.Timer(self._pause or 0, self._sync)
            timer.daemon = True
            try:
                timer.start()
            except RuntimeError:  # too many threads, or the interpreter is shutting down
                return False
            self._timer = timer
        return True

    def _sync(self) -> None:
        with self._live._lock:
            self._timer = None
            if self._file < 0:
                return
            file = os.dup(self._file)
        try:
            os.fsync(file)  # others may ask meanwhile
        except OSError as error:
            self._failure = error
        finally:
            os.close(file)

    def _fail(self, error: BaseException) -> NoReturn:
        """Write nothing any more."""
        self._failure = error
        if isinstance(error, OSError):
            self.refuse_after_failure()
        raise error
