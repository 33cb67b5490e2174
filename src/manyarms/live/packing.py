"""Convert numbers and text to bytes and back: the format of snapshots.

A snapshot is one zlib stream of: the length of the text (uint64, little-endian), the text (JSON),
and the columns. The text is an object that also lists the columns: name, type, count, and whether
differences are stored (they are if the numbers increase). The bytes of a column are transposed: the
lowest bytes of all numbers come first.

The store keeps the version and a checksum of the bytes, and zlib a checksum of the inflated data.
These detect damage, but not a crafted file. So reading executes nothing from the data, checks types
and sizes, and inflates at most `_most` bytes.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import shown
from manyarms.errors import SavedFileError
from manyarms.protocol.state_dump import Columns

# errors of reading data that is malformed although its checksum is right
MALFORMED_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(ArithmeticError, struct.error),
)
_LENGTH = struct.Struct("<Q")
_TYPES = {"i": "<i8", "u": "<u8", "f": "<f8"}
_LARGEST = 1 << 62


def pack(about: dict[str, Any], columns: Columns) -> bytes:
    """Return an object and columns as bytes. Equal arguments give equal bytes."""
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
    if len(body) > _most(len(small)):  # so that it can be read: nearly all zeros
        small = zlib.compress(body, 0)
    return small


def unpack(data: bytes, what: str) -> tuple[dict[str, Any], Columns]:
    """Return the arguments of `pack`; `what` names the store in errors."""
    try:
        return _read_body(_inflated(data))
    except (*MALFORMED_ERRORS, zlib.error) as error:
        raise SavedFileError(
            f"{what} has a snapshot that is damaged or was not written by manyarms: {error}."
        ) from error


def _most(size: int) -> int:
    """Return the largest size that `size` bytes may inflate to, twice that of real files."""
    return (32 << 20) + 16 * size


def _inflated(data: bytes) -> bytes:
    most = _most(len(data))
    inflate = zlib.decompressobj()
    body = inflate.decompress(data, most + 1)
    if len(body) > most:
        raise ValueError(f"{len(data)} bytes inflate to more than {most}")
    if not inflate.eof or inflate.unused_data:
        raise ValueError("it is cut short, or has extra data at the end")
    return body


def _read_body(body: bytes) -> tuple[dict[str, Any], Columns]:
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    about = json.loads(body[_LENGTH.size : at])
    columns: Columns = {}
    for name, kind, count, steps in about.pop("columns"):
        column = _read_column(body[at : at + 8 * count], count, _TYPES[kind])
        if name in columns or (steps and kind != "i") or count < 1:
            raise ValueError(f"column {shown(name)} is invalid")
        columns[name] = np.cumsum(column) if steps else column
        at += 8 * count
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes are left over")
    return about, columns


def _read_column(stored: bytes, count: int, kind: str) -> NDArray[Any]:
    rows = np.frombuffer(stored, np.uint8).reshape(8, count).T
    numbers = np.ascontiguousarray(rows).view(kind).reshape(count)
    return numbers.astype(numbers.dtype.newbyteorder("="))


def taken(columns: Columns, name: str, kind: type[np.generic] = np.int64) -> list[Any]:
    """Remove a column and return it as a list; a missing one is empty."""
    column = columns.pop(name, np.zeros(0, kind))
    if column.dtype != kind:
        raise TypeError(f"{name!r} has numbers of another type")
    if kind is np.int64 and not bool(((column >= -_LARGEST) & (column <= _LARGEST)).all()):
        raise ValueError(f"{name!r} has numbers that are too large")
    return cast("list[Any]", column.tolist())
