"""Keys are read from CSV wherever its pieces end."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator

import pytest

from manyarms.serve.errors import RefusedError
from manyarms.serve.importing import _csv

KEYS = ["plain", "two\nlines", '5" pipe', "a,b", "\u00fc\r\nx", "=1+1", "'quoted", "last\n"]


def read(data: bytes, size: int) -> list[str]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    async def main() -> list[str]:
        return [key async for some in _csv(pieces()) for key in some]

    return asyncio.run(main())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_may_end_anywhere(size: int) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([("note", "key"), *(("x\ny", key) for key in KEYS)])
    stray = 'z,5" pipe\r\n'  # a quote within a field that has none around it
    data = b"\xef\xbb\xbf" + text.getvalue().encode() + stray.encode() + b"z,end"
    assert read(data, size) == [*KEYS, '5" pipe', "end"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'key\na\n"open\n', "After line 2: unexpected end of data"),
        (b'key\na\n"b"c\n', "After line 2: ',' expected"),
        (b'key\n"a\nb"\n\n' + b"x" * 1001, "Line 5: a key must be"),
        (b"", "must name a column `key`"),
        (b"key\n" + b'"x\n",' * 400_000, "Line 2: a row has too many bytes"),
    ],
)
def test_what_is_no_csv(data: bytes, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        read(data, 65536)
