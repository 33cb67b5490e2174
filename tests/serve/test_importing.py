"""Keys are read from CSV wherever its pieces end; what an import leaves goes bit by bit."""

from __future__ import annotations

import asyncio
import csv
import io
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from manyarms.live.databases import Database
from manyarms.serve import cleaning, importing, tables
from manyarms.serve.errors import RefusedError
from manyarms.serve.importing import _csv
from manyarms.serve.links import Beside
from tests.serve.machines import call, in_thread, new_name, row_of

KEYS = ["plain", "two\nlines", '5" pipe', "a,b", "\u00fc\r\nx", "=1+1", "'quoted", "last\n"]


def read(data: bytes, size: int) -> list[str]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    async def main() -> list[str]:
        return [key async for some in _csv(pieces(), Beside()) for key in some]

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


@pytest.mark.patient
@pytest.mark.interpreted
def test_what_an_import_leaves_is_deleted_while_asks_go_on(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[tuple[float, int]] = []
    drop = tables.drop_unpublished

    def slowly(database: Database, experiment: int, begin: int, end: int) -> None:
        drop(database, experiment, begin, end)
        time.sleep(0.02)
        dropped.append((time.monotonic(), end - begin))

    monkeypatch.setattr(tables, "drop_unpublished", slowly)
    for module in (cleaning, importing):
        monkeypatch.setattr(module, "SOME_ARMS", 200)
    name = new_name()
    path = f"/v1/experiments/{name}"
    kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
    keys = "".join(f'"{k}"\n' for k in range(2_000)).encode()
    database = tables.opened(store)
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"policy": "prospector"})[0] == 201
        assert call(one.port, "POST", f"{path}/arms", {"keys": ["a", "b"]})[0] == 200
        status, answer = call(one.port, "POST", f"{path}/arms", keys + b'"a"\n', **kind)
        assert (status, answer["code"]) == (409, "key_exists")
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        asked = time.monotonic()
        status, answer = call(one.port, "POST", f"{path}/arms", keys, **kind)  # waits for the rest
        assert (status, answer["n_arms"]) == (200, 2_002)
        assert max(size for _, size in dropped) <= 200
        assert dropped[-1][0] > asked
    row = row_of(database, name)
    tables.add_arms(database, row.id, [(2_002 + k, f"left {k}") for k in range(2_000)])
    dropped.clear()
    with in_thread(store) as one:  # as after a kill
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        asked = time.monotonic()
        status, answer = call(one.port, "POST", f"{path}/arms", {"keys": ["left 1999"]})
        assert (status, answer["n_arms"]) == (200, 2_003)
        assert dropped[-1][0] > asked
    database.close()
