"""Exports hold little at a time, and are harmless in spreadsheets."""

from __future__ import annotations

import asyncio
import csv
import io
import threading
import time
import tracemalloc
from collections.abc import Iterator

import pyarrow.parquet
import pytest

from manyarms.serve import exporting

COLUMNS = {"number": "int64", "key": "string", "reward": "float64"}


def test_parquet_holds_one_group_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_GROUP", 500)
    rows = ((k, f"{k * 7919 % 10**9:09d}", (k * 0.6180339887) % 1) for k in range(40_000))
    list(exporting._as_parquet(COLUMNS, iter([(0, "a", 0.0)])))  # what is imported now is not later
    tracemalloc.start()
    total = sum(len(piece) for piece in exporting._as_parquet(COLUMNS, rows))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total > 900_000
    assert peak < total / 2


def test_an_export_that_is_cut_short_leaves_nothing_behind() -> None:
    """Not while its next piece is waited for, either: the process must be able to end."""
    closed = threading.Event()
    go_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            yield b"first"
            go_on.wait(5)
            yield b"second"
        finally:
            closed.set()

    async def look() -> None:
        stream = exporting._in_thread(pieces)
        assert await anext(stream) == b"first"
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begun = time.monotonic()
    asyncio.run(look())  # waits for threads that run for the loop
    assert time.monotonic() - begun < 2
    go_on.set()
    assert closed.wait(5)


def test_parquet_can_be_read() -> None:
    rows = [(0, "a", 0.5), (1, None, None), (2, "=c", 1.0)]
    data = b"".join(exporting._as_parquet(COLUMNS, iter(rows)))
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_keys_are_no_formulas_in_spreadsheets() -> None:
    keys = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", "x=1", None]
    rows = [(k, key, -0.5) for k, key in enumerate(keys)]
    text = b"".join(exporting._as_spreadsheet(COLUMNS, iter(rows))).decode("utf-8-sig")
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [row[1] for row in read] == [*(f"'{key}" for key in keys[:7]), "x=1", ""]
    assert {row[2] for row in read} == {"-0.5"}  # a number is one
    plain = b"".join(exporting._as_csv(COLUMNS, iter(rows))).decode()
    read = list(csv.reader(io.StringIO(plain, newline="")))[1:]
    assert [row[1] for row in read] == [*keys[:8], ""]  # for programs, and to import it again
