"""The file format of journals: a header, a saved handle, and a record for each event since.

    magic     8 bytes
    version   uint32, little-endian as all that follows
    check     uint32, crc32 of the length
    length    uint64, of the saved handle, which follows (see `container`)
    records   24 bytes each: crc32 (uint32), kind (uint8), three zeros, the number of the pull
              (int64), and the arm (int64) or the reward (float64)

A record's crc32 continues that of the record before it, so that none can be missing. The last
write before a crash may be torn: a last record that is cut off or wrong is left out, and so is a
tail of zeros. Any other wrong record is damage.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import SavedFileError
from manyarms.live.container import JOURNAL_MAGIC, MAGIC

__all__ = [
    "ABANDONED",
    "ASKED",
    "RECORD_BYTES",
    "TOLD",
    "Events",
    "Recorded",
    "begin_file",
    "first_check",
    "read_file",
    "record",
]

ASKED, TOLD, ABANDONED = 1, 2, 3
RECORD_BYTES = 24
_VERSION = 1
_HEADER = struct.Struct("<8sIIQ")
_CHECK = struct.Struct("<I")
_WITH_ARM = struct.Struct("<B3xqq")
_WITH_REWARD = struct.Struct("<B3xqd")
_ROW = np.dtype(
    [("check", "<u4"), ("kind", "u1"), ("zeros", "u1", 3), ("number", "<i8"), ("rest", "<i8")]
)


class Events(NamedTuple):
    """What happened, in order."""

    kind: NDArray[Any]
    number: NDArray[Any]  # of the pull
    arm: NDArray[Any]  # where kind is ASKED
    reward: NDArray[Any]  # where kind is TOLD


class Recorded(NamedTuple):
    """What a journal's file holds."""

    saved: bytes
    events: Events
    end: int  # of the sound part of the file
    check: int  # to be continued


def record(kind: int, number: int, rest: float, check: int) -> tuple[bytes, int]:
    """Return a record, and the check that the next one continues."""
    layout = _WITH_REWARD if kind == TOLD else _WITH_ARM
    body = layout.pack(kind, number, rest)
    check = zlib.crc32(body, check)
    return _CHECK.pack(check) + body, check


def begin_file(saved: bytes) -> bytes:
    """Return a file without records."""
    check = zlib.crc32(struct.pack("<Q", len(saved)))
    return _HEADER.pack(JOURNAL_MAGIC, _VERSION, check, len(saved)) + saved


def first_check(saved: bytes) -> int:
    """Return the check that the first record continues."""
    return zlib.crc32(saved[:64])


def read_file(data: bytes, what: str) -> Recorded:
    """Take a journal's file apart; raise if it is damaged."""
    saved = _read_header(data, what)
    begin = _HEADER.size + len(saved)
    rows = np.frombuffer(data, _ROW, (len(data) - begin) // RECORD_BYTES, begin)
    check = first_check(saved)
    sound = len(rows)
    view = memoryview(data)
    for k, stored in enumerate(rows["check"].tolist()):
        at = begin + RECORD_BYTES * k
        if zlib.crc32(view[at + 4 : at + RECORD_BYTES], check) != stored:
            sound = k
            break
        check = stored
    end = begin + RECORD_BYTES * sound
    if len(data) - end >= 2 * RECORD_BYTES and data.count(0, end) < len(data) - end:
        raise SavedFileError(
            f"{what} is damaged at byte {end}: event {sound} is wrong, and others follow. Use a "
            f"copy; or, to go on with the {sound} events before, cut a copy off at that byte."
        )
    return Recorded(saved, _events(rows[:sound], what), end, check)


def _read_header(data: bytes, what: str) -> bytes:
    if data.startswith(MAGIC):
        raise SavedFileError(f"{what} is a saved handle, no journal. Read it with Live.load.")
    if not data.startswith(JOURNAL_MAGIC):
        begins = f"begins with {data[:8]!r}" if data else "is empty"
        raise SavedFileError(f"{what} is no journal: it {begins}. Pass a file that Journal wrote.")
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy.")
    _, version, check, length = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise SavedFileError(
            f"{what} has format {version}, and this manyarms reads format {_VERSION}. Install a "
            f"newer manyarms, unless the file is damaged."
        )
    saved = data[_HEADER.size : _HEADER.size + length]
    if zlib.crc32(struct.pack("<Q", length)) != check or len(saved) < length:
        raise SavedFileError(
            f"{what} is damaged: its header is wrong or it is cut off. Use a copy."
        )
    return saved


def _events(rows: NDArray[Any], what: str) -> Events:
    kind = rows["kind"].astype(np.int64)
    if not np.isin(kind, (ASKED, TOLD, ABANDONED)).all():
        raise SavedFileError(f"{what} holds events of an unknown kind.")
    rest = rows["rest"].astype(np.int64)
    return Events(kind, rows["number"].astype(np.int64), rest, rest.view(np.float64))
