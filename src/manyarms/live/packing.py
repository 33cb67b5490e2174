"""Numbers and text as bytes, and back: the format of snapshots.

    magic     8 bytes
    format    uint32, little-endian as all that follows
    checksum  32 bytes, blake2b of everything after it
    whole     uint64, the length of the body before compression
    body      zlib: the length of the text (uint64), the text (JSON), the columns

The text is a JSON object that also lists the columns: name, type, count, and whether differences
are stored, which is done where numbers increase. Columns are stored byte by byte: first the lowest
bytes of all numbers.

Reading runs nothing from the data. The checksum is no signature: everybody can compute it. So what
is read must be of the right kinds, fit together, and inflate to no more than `_most` bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import shown
from manyarms.errors import SavedFileError
from manyarms.protocol.state_dump import Columns

MAGIC = b"\x89arms\r\n\x1a"  # as PNG's: a transfer that changes line ends is noticed
FORMAT = 1
# what reading raises where the checksum is right, and what it covers makes no sense
MALFORMED_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(ArithmeticError, struct.error),
)
_HEADER = struct.Struct("<8sI32sQ")
_CHECKED = 8 + 4 + 32  # where the part begins that the checksum covers
_LENGTH = struct.Struct("<Q")
_TYPES = {"i": "<i8", "u": "<u8", "f": "<f8"}
_LARGEST = 1 << 62


def pack(about: dict[str, Any], columns: Columns) -> bytes:
    """Return a text and columns as bytes. What is equal gives equal bytes."""
    listed, parts = [], []
    for name, column in columns.items():
        kind = column.dtype.kind
        steps = kind == "i" and len(column) > 1 and bool((column[1:] > column[:-1]).all())
        stored = np.diff(column, prepend=0) if steps else column
        listed.append([name, kind, len(column), steps])
        parts.append(stored.astype(_TYPES[kind]).view(np.uint8).reshape(-1, 8).T.tobytes())
    text = json.dumps(about | {"columns": listed}, separators=(",", ":")).encode()
    body = b"".join([_LENGTH.pack(len(text)), text, *parts])
    small = zlib.compress(body, 1)
    if len(body) > _most(len(small)):  # so that it can be read: hardly anything but zeros
        small = zlib.compress(body, 0)
    rest = _LENGTH.pack(len(body)) + small
    return _HEADER.pack(MAGIC, FORMAT, _checksum(rest), len(body)) + rest[_LENGTH.size :]


def unpack(data: bytes, what: str) -> tuple[dict[str, Any], Columns]:
    """Return what `pack` was given."""
    if not data.startswith(MAGIC):
        raise SavedFileError(_no_magic(data, what))
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy of it.")
    _, version, checksum, whole = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise SavedFileError(
            f"{what} has format {version}, and this version of manyarms reads format {FORMAT}. "
            f"Install the version that wrote it, unless the data are damaged."
        )
    if _checksum(data[_CHECKED:]) != checksum:
        raise SavedFileError(
            f"{what} is damaged: its checksum is wrong. It was cut off or changed; use a copy."
        )
    try:
        return _read_body(_inflated(data[_HEADER.size :], whole))
    except (*MALFORMED_ERRORS, zlib.error) as error:
        raise SavedFileError(f"{what} was not written by manyarms: {error}.") from error


def _most(size: int) -> int:
    """Return the largest size that `size` bytes may inflate to: twice that of real files."""
    return (32 << 20) + 16 * size


def _inflated(small: bytes, whole: int) -> bytes:
    if not 0 < whole <= _most(len(small)):
        raise ValueError(f"{len(small)} bytes would inflate to {whole}")
    inflate = zlib.decompressobj()
    body = inflate.decompress(small, whole + 1)
    if len(body) != whole or not inflate.eof or inflate.unused_data:
        raise ValueError(f"it does not inflate to {whole} bytes")
    return body


def _read_body(body: bytes) -> tuple[dict[str, Any], Columns]:
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    about = json.loads(body[_LENGTH.size : at])
    columns: Columns = {}
    for name, kind, count, steps in about.pop("columns"):
        column = _read_column(body[at : at + 8 * count], count, _TYPES[kind])
        if name in columns or (steps and kind != "i") or count < 1:
            raise ValueError(f"column {shown(name)} cannot be")
        columns[name] = np.cumsum(column) if steps else column
        at += 8 * count
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes are left over")
    return about, columns


def _read_column(stored: bytes, count: int, kind: str) -> NDArray[Any]:
    rows = np.frombuffer(stored, np.uint8).reshape(8, count).T
    numbers = np.ascontiguousarray(rows).view(kind).reshape(count)
    return numbers.astype(numbers.dtype.newbyteorder("="))


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def _no_magic(data: bytes, what: str) -> str:
    if not data:
        return f"{what} is empty. Use a copy of it."
    return f"{what} is no snapshot of manyarms: it begins with {data[:8]!r}."


def taken(columns: Columns, name: str, kind: type[np.generic] = np.int64) -> list[Any]:
    """Remove a column and return it as a list; a missing one is empty."""
    column = columns.pop(name, np.zeros(0, kind))
    if column.dtype != kind:
        raise TypeError(f"{name!r} has numbers of another kind")
    if kind is np.int64 and not bool(((column >= -_LARGEST) & (column <= _LARGEST)).all()):
        raise ValueError(f"{name!r} has numbers that overflow when they are counted on")
    return cast("list[Any]", column.tolist())
