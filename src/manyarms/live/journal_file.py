"""The file of a journal: a snapshot, and a record for each event after it.

    magic     8 bytes
    version   uint32, little-endian as all that follows
    check     uint32, crc32 of the length
    length    uint64, of the snapshot, which follows (see `saving`)
    records   24 bytes each: crc32 (uint32), kind (uint8), three zeros, the number of the pull
              (int64), and the arm (int64) or the reward (float64); without a pull, the arm and
              the reward

A record of its own says what time it is, where that is kept: its number is 0, and nanoseconds since
1970 stand in place of the arm. What follows happened then, or within the next millisecond.

A record's crc32 continues that of the record before it, so that none can be missing. The last
write before a crash may be torn: a last record that is cut off or wrong is left out, and so are
zeros after it. Any other wrong record is damage.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import SavedFileError
from manyarms.live.saving import JOURNAL_MAGIC, MAGIC, check_version
from manyarms.live.store import Contents, Event, EventKind, Events

RECORD_BYTES = 24
_VERSION = 2  # 1 had pulls, rewards and abandoned pulls only
_HEADER = struct.Struct("<8sIIQ")
_SEED_BYTES = 64  # of a snapshot: its checksum is among them
BEGIN_BYTES = _HEADER.size + _SEED_BYTES  # of a file: no other snapshot begins so
_CHECK = struct.Struct("<I")
_WITH_ARM = struct.Struct("<B3xqq")
_WITH_REWARD = struct.Struct("<B3xqd")
_REST = dict.fromkeys(
    (EventKind.ASKED, EventKind.ABANDONED, EventKind.RETIRED, EventKind.RESTORED), _WITH_ARM
)
_REST |= dict.fromkeys((EventKind.TOLD, EventKind.OBSERVED, EventKind.ANSWERED), _WITH_REWARD)
_CLOCK = 255  # the kind of a record that says what time it is
_ROW = np.dtype(
    [("check", "<u4"), ("kind", "u1"), ("zeros", "u1", 3), ("number", "<i8"), ("rest", "<i8")]
)


def record(event: Event, check: int) -> tuple[bytes, int]:
    """Return a record, and the check that the next record continues from."""
    kind, pull, arm, reward, _ = event
    layout = _REST.get(kind, _WITH_ARM)
    rest = arm if layout is _WITH_ARM else reward
    return _record(layout.pack(kind, arm if kind == EventKind.OBSERVED else pull, rest), check)


def record_of_time(now: int, check: int) -> tuple[bytes, int]:
    """Return a record that says what time it is, in nanoseconds, and the next check."""
    return _record(_WITH_ARM.pack(_CLOCK, 0, now), check)


def rechained(records: bytes, check: int) -> tuple[bytes, int]:
    """Return records as they are if they continue from `check`, and the check after them."""
    parts = []
    for at in range(0, len(records), RECORD_BYTES):
        part, check = _record(records[at + _CHECK.size : at + RECORD_BYTES], check)
        parts.append(part)
    return b"".join(parts), check


def _record(body: bytes, check: int) -> tuple[bytes, int]:
    check = zlib.crc32(body, check)
    return _CHECK.pack(check) + body, check


def begin_file(saved: bytes) -> bytes:
    """Return a file without records."""
    check = zlib.crc32(struct.pack("<Q", len(saved)))
    return _HEADER.pack(JOURNAL_MAGIC, _VERSION, check, len(saved)) + saved


def first_check(saved: bytes) -> int:
    """Return the check that the first record continues from."""
    return zlib.crc32(saved[:_SEED_BYTES])


def first_check_in(begin: bytes) -> int:
    """Return the same, given the first `BEGIN_BYTES` of a file."""
    return first_check(begin[_HEADER.size :])


def read_file(data: bytes, what: str) -> tuple[Contents, int, int]:
    """Return what a file holds, where its valid part ends, and the check to continue from."""
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
    after = end + RECORD_BYTES
    if len(data) - after >= RECORD_BYTES and data.count(0, after) < len(data) - after:
        raise SavedFileError(
            f"{what} is damaged at byte {end}: event {sound} is wrong, and others follow. Use a "
            f"copy; or, to go on with the {sound} events before, cut a copy off at that byte."
        )
    return Contents(saved, _events(rows[:sound])), end, check


def _events(rows: NDArray[Any]) -> Events:
    kind, pull, rest = (rows[name].astype(np.int64) for name in ("kind", "number", "rest"))
    clock, seen = kind == _CLOCK, kind == EventKind.OBSERVED
    if not (clock | seen).any():
        return Events(kind, pull, rest, rest.view(np.float64))
    last = np.maximum.accumulate(np.where(clock, np.arange(len(kind)), -1))
    time = np.where(last < 0, 0.0, rest[last] / 1e9)
    arm, pull = np.where(seen, pull, rest), np.where(seen, -1, pull)
    kind, pull, arm, reward, time = (
        column[~clock] for column in (kind, pull, arm, rest.view(np.float64), time)
    )
    return Events(kind, pull, arm, reward, time=time)


def _read_header(data: bytes, what: str) -> bytes:
    if data.startswith(MAGIC):
        raise SavedFileError(f"{what} is a saved handle, not a journal. Read it with Live.load.")
    if not data.startswith(JOURNAL_MAGIC):
        begins = f"begins with {data[:8]!r}" if data else "is empty"
        raise SavedFileError(f"{what} is not a journal: it {begins}. Pass one that Journal wrote.")
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy.")
    _, version, check, length = _HEADER.unpack_from(data)
    check_version(version, _VERSION, what)
    saved = data[_HEADER.size : _HEADER.size + length]
    if zlib.crc32(struct.pack("<Q", length)) != check or len(saved) < length:
        raise SavedFileError(
            f"{what} is damaged: its header is wrong or it is cut off. Use a copy."
        )
    return saved
