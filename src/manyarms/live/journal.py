"""A store in one file, to which every event is appended."""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.core.checks import check_flag, check_int, check_number, check_path
from manyarms.core.files import (
    PART,
    FileLock,
    LockedError,
    check_single,
    is_file,
    path_errors,
    replacing,
    write_all,
    write_file,
)
from manyarms.core.process_copy import HarmlessTimer
from manyarms.errors import ParameterError, StoreError
from manyarms.live.compaction import Compaction
from manyarms.live.history import GameHistory
from manyarms.live.journal_file import (
    BEGIN_BYTES,
    begin_file,
    first_check,
    read_file,
    record,
    record_of_time,
)
from manyarms.live.store import (
    COMPACT_EVERY,
    Contents,
    Event,
    EventKind,
    Snapshot,
    is_long,
    is_worth_a_copy,
)

_TICK = 1_000_000  # nanoseconds: the time is written no more often
_APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_GLANCE = 0.1  # seconds, at most, between looks whether the file is still there: a look takes 3 us

_logger = logging.getLogger(__name__)


class Journal:
    """A store in one file: `recorded(Journal(path), live)`, or `recorded(path, live)` for short.

    Parameters
    ----------
    path
        The file; it is created with the first handle that is recorded in it.
    sync
        When an event must be on the disk: with "always", before the call returns; with a number, at
        most that many milliseconds later (default: 100); with "never", whenever the system writes
        it. This matters only for power cuts. A process that dies loses nothing in any case.
    compact_every
        After this many events (default: 20000), and after more than there are arms tried, the file
        is replaced by one that begins with all that is known. This bounds the size of the file and
        the time it takes to open it. If it fails, the game goes on, a warning is logged, and it is
        tried again later. With more than 1000 arms tried, a forked copy of the process writes the
        new file while the game goes on. This is done on Linux, and only where no other thread runs:
        elsewhere one call takes some microseconds for each arm tried. With a million of them, call
        `live.compact()` there when you have the time.
    history
        Whether to keep every event for good, and when it happened (default: False): see `events`.
        A file that is compacted then stays, as `path`.000001 and so on, and each call takes 24
        bytes more. Such a journal is not compacted when it is closed. One that has a history keeps
        it, whatever is given here.

    Notes
    -----
    A journal has one writer, which a lock beside the file (`path`.lock) ensures. If either file is
    moved, removed or replaced meanwhile, this is noticed within a tenth of a second, and every call
    is refused. Adding arms compacts the file. If the power fails during a call that wrote several
    events, the first of them may be there and the others not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import manyarms as ma
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.journal"
    >>> journal = ma.Journal(path, sync="always")
    >>> with ma.recorded(journal, ma.MOSS().live(n_arms=1000, horizon=500)) as live:
    ...     pull = live.ask()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: str | float = 100,
        compact_every: int = COMPACT_EVERY,
        history: bool = False,
    ) -> None:
        self.path = Path(os.path.realpath(check_path("path", path)))
        self.failure = ""
        self.compact_on_close = not history  # else there would be a file more each time
        self._pause = _check_sync(sync)  # seconds until written records are synced; None never
        self._least = check_int("compact_every", compact_every, at_least=1)
        self._history = check_flag("history", history)
        self._time = 0  # the last that was written, in nanoseconds
        self._lock: FileLock | None = None
        self._process = 0
        self._file = -1
        self._guard = threading.RLock()  # of `_file`, which the timer's thread uses, too
        self._timer: HarmlessTimer | None = None
        self._end = 0  # of what was written wholly
        self._torn = False  # whether something else follows
        self._check = 0
        self._records = 0
        self._failed_at = 0  # records there were when compacting failed last
        self._compaction: Compaction | None = None  # the file that is to replace this one
        self._may_copy = True  # this process; not any more once that failed
        self._glance = 0.0  # when to look whether the file is still there

    def __str__(self) -> str:
        return str(self.path)

    def load(self) -> Contents | None:
        """Lock the file and return what it holds; None if it is not there."""
        self._lock = self._locked()
        self._process, self.failure = os.getpid(), ""
        try:
            return self._load()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> FileLock:
        # beside the file, because the file itself is replaced
        try:
            return FileLock(self.path.with_name(self.path.name + ".lock"), remove=True)
        except LockedError as error:
            where = "" if error.holder is None else f" in process {error.holder}"
            if error.holder == os.getpid():
                where = " in this process"
            raise StoreError(
                f"{self} is open already{where}: a journal has one writer. Close it there, or let "
                f"that process do the asking."
            ) from error

    def _load(self) -> Contents | None:
        name, token, number = glob.escape(self.path.name), "[0-9a-f]" * 8, "[0-9]" * 6
        # what a compaction that did not end has left, now and once
        for ending in (token + PART, token + ".tmp", f"{number}.{token}{PART}"):
            for left in self.path.parent.glob(f"{name}.{ending}"):
                left.unlink()
        try:
            file = os.open(self.path, _APPEND)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):  # to read a pipe would take for ever
            os.close(file)
            raise OSError(errno.EINVAL, "A journal must be a regular file", str(self))
        self._file = file
        with open(file, "rb", closefd=False) as reader:
            data = reader.read()
        held, end, check = read_file(data, str(self))
        if self._kept() or np.any(held.events.time):  # it was begun with a history
            self._history, self.compact_on_close = True, False
        self._go_on(end, len(held.events.kind), check)
        self._drop_kept_twice()
        check_single(self.path, os.fstat(file))
        self._torn = end < len(data)
        return held

    def _go_on(self, end: int, records: int, check: int) -> None:
        self._end, self._records, self._check = end, records, check
        self._torn, self._failed_at, self._glance, self._time = False, 0, 0.0, 0

    def append(self, events: Sequence[Event], snapshot: Snapshot) -> None:
        """Append a record for each event; if arms were added, write a new file instead."""
        parts, check, now = [], self._check, self._time
        if self._history and abs(time.time_ns() - now) >= _TICK:
            now = time.time_ns()
            data, check = record_of_time(now, check)
            parts.append(data)
        for event in events:
            data, check = record(event, check)
            parts.append(data)
        if any(event.kind == EventKind.ADDED for event in events):
            self._replace(snapshot(), b"".join(parts))  # no record has room for names
            return
        self._write(b"".join(parts))
        self._check, self._time = check, now
        self._records += len(parts)
        if self._compaction is not None:
            self._go_on_compacting(self._compaction)
        elif is_long(self._records - self._failed_at, snapshot.arms_tried, self._least):
            self._compact(snapshot)

    def _compact(self, snapshot: Snapshot) -> None:
        """Replace the file, or let a copy of this process begin to."""
        with self._going_on_if_it_fails():
            if self._may_copy and is_worth_a_copy(snapshot):
                kept = self._next_kept() if self._history else None
                with contextlib.suppress(OSError):  # no room for another process
                    self._compaction = Compaction(self.path, snapshot, self._end, kept)
                    self._time = 0  # the new file has none yet
                    return
            self.save(snapshot())

    def _go_on_compacting(self, compaction: Compaction) -> None:
        """Give the new file some of what was written meanwhile; if it has all, let it replace."""
        with self._going_on_if_it_fails():
            if not compaction.caught_up(self._file, self._end):
                return
            self._check_place()
            try:
                compaction.replace()
                self._let_go()
                self._file = os.open(self.path, _APPEND)
            except BaseException as error:
                if not is_file(self._file, self.path):
                    self.failure = repr(error)
                raise
            self._compaction = None
            self._go_on(compaction.end, compaction.records, compaction.check)

    @contextlib.contextmanager
    def _going_on_if_it_fails(self) -> Iterator[None]:
        """Log what a compaction raises and go on, because the events are written."""
        try:
            yield
        except Exception as error:
            if self._compaction is not None:
                self._may_copy = False
                self._stop_compacting()
            if self.failure:
                raise
            with contextlib.suppress(OSError):
                self._drop_kept_twice()
            self._failed_at = self._records
            _logger.warning("%s could not be compacted, and goes on as it was: %r", self, error)
        except BaseException:  # Ctrl-C: what is half done must not go on
            self._stop_compacting()
            raise

    def _stop_compacting(self) -> None:
        compaction, self._compaction = self._compaction, None
        if compaction is not None:
            compaction.stop()

    def save(self, snapshot: bytes) -> None:
        """Replace the file by one that begins with a snapshot and has no records."""
        self._replace(snapshot, b"")

    def _replace(self, snapshot: bytes, last: bytes) -> None:
        """Replace the file; what a history keeps of it ends with the records `last`."""
        self._stop_compacting()
        if self._file >= 0:
            self._check_place()  # else we might replace somebody else's
        data, end, old = begin_file(snapshot), self._end, None
        if self._history and (self._records > 0 or last):
            old = self._next_kept()
            os.link(self.path, old)
        try:
            with replacing(self.path) as part:
                write_file(part, data)
                if os.name == "nt":
                    self._let_go()  # Windows replaces no file that is open
            self._let_go()
            self._file = os.open(self.path, _APPEND)
        except BaseException as error:
            if not is_file(self._file, self.path):  # else it is as it was
                self.failure = repr(error)
            raise
        self._go_on(len(data), 0, first_check(snapshot))
        if old and last:  # not before: else a crash could leave them without the arms that came
            with old.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                file.write(last)
                file.flush()
                os.fsync(file.fileno())

    def _kept(self) -> list[Path]:
        """Return the files that were compacted, oldest first."""
        pattern = f"{glob.escape(self.path.name)}.{'[0-9]' * 6}"
        return sorted(self.path.parent.glob(pattern))

    def _drop_kept_twice(self) -> None:
        """Remove the last file that was kept if the journal was not replaced after that."""
        for kept in self._kept()[-1:]:
            with kept.open("rb") as last, self.path.open("rb") as journal:
                twice = last.read(BEGIN_BYTES) == journal.read(BEGIN_BYTES)
            if twice:
                kept.unlink()

    def _next_kept(self) -> Path:
        """Return where the file goes when it is compacted next."""
        kept = self._kept()
        number = int(kept[-1].suffix[1:]) + 1 if kept else 1
        return self.path.with_name(f"{self.path.name}.{number:06d}")

    def history(self) -> list[Contents]:
        """Return all that was kept, oldest first: snapshots, and the events after each."""
        with path_errors(self.path, "Name a journal, which this user may read"):
            parts = [read_file(path.read_bytes(), str(path))[0] for path in self._kept()]
            return [*parts, read_file(self.path.read_bytes(), str(self))[0]]

    def events(self) -> GameHistory:
        """Return the events in the file, as `live.events()` does.

        Without `history=True` these are the events since the file was last compacted, and when
        they happened is not known. A journal that is in use elsewhere may be read.
        """
        return GameHistory(self.history())

    def close(self) -> None:
        """Sync the file, close it and release the lock."""
        if self._process != os.getpid():
            return  # never opened, or a fork's: it must not touch what is its parent's
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        try:
            if self._file >= 0 and not self.failure:
                self._check_place()
                while self._compaction is not None:  # else short games would never be compacted
                    self._go_on_compacting(self._compaction)
                    if self._compaction is not None and self._compaction.waits:
                        time.sleep(0.005)
                if self._pause is not None:
                    os.fsync(self._file)
        finally:
            self._stop_compacting()
            self._let_go()
            if self._lock is not None:
                self._lock.release()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            # nobody else has it: but an interrupt may have left the guard locked, by another thread
            self._guard = threading.RLock()
            if self._process == os.getpid():
                self._stop_compacting()
            self.close()

    def _write(self, data: bytes) -> None:
        if time.monotonic() >= self._glance:
            self._check_place()
        try:
            if self._torn:
                os.ftruncate(self._file, self._end)
                self._torn = False
            write_all(self._file, data)
            if self._pause == 0 or (self._pause and not self._sync_soon()):
                os.fsync(self._file)
        except BaseException as error:
            self.failure = repr(error)
            with contextlib.suppress(OSError):  # let no half of a record stay
                os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def _check_place(self) -> None:
        """Raise unless the file and its lock are those that were opened."""
        if self._lock is None or not (self._lock.stands() and is_file(self._file, self.path)):
            self.failure = "it or its lock was moved, removed or replaced while it was open here"
            if self._file < 0:
                self.failure = "it is closed"
            raise StoreError(f"Cannot write to {self}: {self.failure}. Open it again.")
        self._glance = time.monotonic() + _GLANCE

    def _let_go(self) -> None:
        with self._guard:
            file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _sync_soon(self) -> bool:
        """Start a timer unless one runs; return False if no thread can be started."""
        if self._timer is None:
            timer = HarmlessTimer(self._pause or 0, _sync_later, [weakref.ref(self)])
            timer.daemon = True
            with self._guard:  # it may ring before it is noted
                try:
                    timer.start()
                except RuntimeError:  # too many threads, or the interpreter is shutting down
                    return False
                self._timer = timer
        return True

    def _sync(self) -> None:
        with self._guard:
            self._timer = None
            if self._file < 0:
                return
            file = os.dup(self._file)
        try:
            os.fsync(file)  # others may ask meanwhile
        except OSError as error:
            self.failure = repr(error)
        finally:
            os.close(file)


def _sync_later(journal: weakref.ref[Journal]) -> None:
    found = journal()  # nobody else may have it any more: then it was closed
    if found is not None:
        found._sync()


def _check_sync(sync: Any) -> float | None:
    """Return after how many seconds written events are synced: 0 at once, None never."""
    if isinstance(sync, str):
        if sync not in ("always", "never"):
            raise ParameterError(
                f"`sync` must be 'always', 'never' or a number of milliseconds, got {sync!r}."
            )
        return 0.0 if sync == "always" else None
    return check_number("sync", sync, above=0.0) / 1000
