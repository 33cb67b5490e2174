"""Compacting a journal in a copy of this process, while this one goes on writing to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from manyarms.core.files import open_part, replacing, write_all, write_file
from manyarms.core.process_copy import ProcessCopy
from manyarms.live.journal_file import (
    BEGIN_BYTES,
    RECORD_BYTES,
    begin_file,
    first_check_in,
    rechained,
)

_AT_ONCE = 512  # records that a call copies, in half a millisecond


class Compaction:
    """A new file for a journal: a snapshot, and the records that were written since.

    A copy of this process writes the snapshot. Then this process copies the records, some with each
    call. Until the new file replaces the journal, nothing in the journal changes.

    Parameters
    ----------
    path
        The journal.
    snapshot
        Returns what is known now.
    end
        Where the journal ends now.
    kept
        Where the journal is to be kept as it is now, if at all.
    """

    def __init__(
        self, path: Path, snapshot: Callable[[], bytes], end: int, kept: Path | None
    ) -> None:
        self.end = self.records = self.check = 0  # of the new file
        self._copied = end  # how far the journal is in the new file
        self._journal_end = end  # when this last looked
        self._copy: ProcessCopy | None = None
        self._files = contextlib.ExitStack()
        try:
            part = self._part = self._files.enter_context(replacing(path))
            spare = None if kept is None else self._files.enter_context(replacing(kept))

            def write() -> bytes:
                write_file(part, begin_file(snapshot()))
                if spare is not None:
                    with path.open("rb") as journal:
                        write_file(spare, journal.read(end))
                return b""

            self._copy = ProcessCopy(write)
        except BaseException:
            self.stop()
            raise

    @property
    def waits(self) -> bool:
        """Whether the copy of this process was at work when this last looked."""
        return self._copy is not None

    def caught_up(self, journal: int, end: int) -> bool:
        """Copy some of the journal's records up to `end`; return whether the new file has all.

        Raises an `OSError` if the copy of this process has failed.
        """
        new, self._journal_end = end - self._journal_end, end
        if self._copy is not None:
            if self._copy.poll() is None:
                return False
            self._copy = None
            with self._part.open("rb") as file:
                self.check = first_check_in(file.read(BEGIN_BYTES))
                self.end = os.fstat(file.fileno()).st_size
        # more than a call has written, or the end would never be reached
        size = min(max(_AT_ONCE * RECORD_BYTES, 2 * new), end - self._copied)
        data = os.pread(journal, size, self._copied)
        if len(data) < size:
            raise OSError("the journal has become shorter")
        data, self.check = rechained(data, self.check)
        with open_part(self._part) as file:
            os.lseek(file.fileno(), self.end, os.SEEK_SET)
            write_all(file.fileno(), data)
        self.records += size // RECORD_BYTES
        self.end += size
        self._copied += size
        return self._copied == end

    def replace(self) -> None:
        """Let the new file be the journal."""
        self._files.close()

    def stop(self) -> None:
        """Leave the journal as it is."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.stop()
        with contextlib.suppress(InterruptedError), self._files:
            raise InterruptedError  # so that nothing is replaced
