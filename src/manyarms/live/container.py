"""The file format of saved handles: a header, and a compressed body that a checksum covers.

    magic     8 bytes
    version   uint32, little-endian as all that follows
    checksum  32 bytes, blake2b of everything after it
    whole     uint64, the length of the body before compression
    body      zlib: the length of the text (uint64), the text (JSON), the columns

The text describes the handle and lists the columns: name, type, count, and whether differences
are stored, which is done where numbers increase. Columns are stored byte by byte: first the
lowest bytes of all numbers. Reading runs nothing from the file.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import SavedFileError
from manyarms.protocol.state_dump import Columns

__all__ = ["JOURNAL_MAGIC", "MAGIC", "NONSENSE", "VERSION", "pack", "unpack"]

MAGIC = b"\x89arms\r\n\x1a"  # as PNG's: a transfer that changes line ends is noticed
JOURNAL_MAGIC = b"\x89armj\r\n\x1a"
VERSION = 1
# what reading raises where the checksum is right, and what it covers makes no sense
NONSENSE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
_HEADER = struct.Struct("<8sI32sQ")
_CHECKED = 8 + 4 + 32  # where the part begins that the checksum covers
_LENGTH = struct.Struct("<Q")
_TYPES = {"i": "<i8", "u": "<u8", "f": "<f8"}


def pack(about: dict[str, Any], columns: Columns) -> bytes:
    """Return the bytes of a file."""
    listed, parts = [], []
    for name, column in columns.items():
        kind = column.dtype.kind
        steps = kind == "i" and len(column) > 1 and bool((column[1:] > column[:-1]).all())
        stored = np.diff(column, prepend=0) if steps else column
        listed.append([name, kind, len(column), steps])
        parts.append(stored.astype(_TYPES[kind]).view(np.uint8).reshape(-1, 8).T.tobytes())
    text = json.dumps(about | {"columns": listed}, separators=(",", ":")).encode()
    body = b"".join([_LENGTH.pack(len(text)), text, *parts])
    rest = _LENGTH.pack(len(body)) + zlib.compress(body, 1)
    return _HEADER.pack(MAGIC, VERSION, _checksum(rest), len(body)) + rest[_LENGTH.size :]


def unpack(data: bytes, what: str) -> tuple[dict[str, Any], Columns]:
    """Return what `pack` was given; `what` names the file in errors."""
    if not data.startswith(MAGIC):
        raise SavedFileError(_no_magic(data, what))
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy of it.")
    _, version, checksum, whole = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SavedFileError(
            f"{what} has format {version}, and this manyarms reads format {VERSION}. Install a "
            f"newer manyarms, unless the file is damaged."
        )
    if _checksum(data[_CHECKED:]) != checksum:
        raise SavedFileError(
            f"{what} is damaged: its checksum is wrong. It was cut off or changed; use a copy."
        )
    try:
        return _read_body(zlib.decompressobj().decompress(data[_HEADER.size :], whole))
    except (*NONSENSE, struct.error, zlib.error) as error:
        raise SavedFileError(f"{what} was not written by manyarms: {error}.") from error


def _read_body(body: bytes) -> tuple[dict[str, Any], Columns]:
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    about = json.loads(body[_LENGTH.size : at])
    columns: Columns = {}
    for name, kind, count, steps in about.pop("columns"):
        column = _read_column(body[at : at + 8 * count], count, _TYPES[kind])
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
    if data.startswith(JOURNAL_MAGIC):
        return f"{what} is a journal. Open it with Journal(path)."
    return (
        f"{what} is no handle that manyarms saved: it begins with {data[:8]!r}. Pass a file that "
        f"save() wrote."
    )
