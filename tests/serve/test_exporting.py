"""Exports hold little at a time, and are harmless in spreadsheets."""

from __future__ import annotations

import contextlib
import csv
import io
import socket
import time
import tracemalloc

import pyarrow.parquet
import pytest

from manyarms.serve import exporting
from tests.serve.machines import TOKEN, InThread, call, in_thread, new_name, opened, row_of

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


@pytest.mark.patient
@pytest.mark.interpreted
def test_few_exports_at_a_time(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody reads holds its place, until its reader goes."""
    monkeypatch.setattr(exporting, "MOST_EXPORTS", 1)
    name = new_name()
    path = f"/v1/experiments/{name}"
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 9})[0] == 201
        _make_long(store, name)
        with contextlib.closing(socket.socket()) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", one.port))
            head = f"GET {path}/export HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}"
            link.sendall(f"{head}\r\n\r\n".encode())
            assert link.recv(15) == b"HTTP/1.1 200 OK"
            status, answer = call(one.port, "GET", f"{path}/export")
            assert (status, answer["code"]) == (503, "unavailable")
        end, status = time.monotonic() + 20, 0
        while status != 200 and time.monotonic() < end:
            status, rows = call(one.port, "GET", f"{path}/export")
        assert rows.count(b"\n") == 100_000


def _make_long(store: str, name: str) -> None:
    with opened(store) as database:
        row = row_of(database, name)
        database.run(
            "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 100000) "
            "INSERT INTO events SELECT :x, k, 6, -1, 0, 0.5, 1.0, NULL FROM n",
            x=row.id,
        )
        database.run("UPDATE experiments SET head = 100000 WHERE id = :x", x=row.id)


@pytest.mark.patient
@pytest.mark.interpreted
def test_an_export_that_cannot_be_made_is_refused(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/v1/experiments/x"
    assert call(served.port, "PUT", path, {"n_arms": 9})[0] == 201
    monkeypatch.setattr(exporting, "STORE", "MANYARMS_ANOTHER")
    status, answer = call(served.port, "GET", f"{path}/export")
    assert (status, answer["code"]) == (503, "unavailable")


def test_parquet_can_be_read() -> None:
    rows = [(0, "a", 0.5), (1, None, None), (2, "=c", 1.0)]
    data = b"".join(exporting._as_parquet(COLUMNS, iter(rows)))
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


@pytest.mark.patient
def test_keys_are_no_formulas_in_spreadsheets() -> None:
    keys = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", "x=1", None]
    wide = {
        "\n=1": "'\n'=1",
        "\uff1d1": "'\uff1d1",
        "\uff20x": "'\uff20x",
        " =1": "' =1",
        "\ufeff=1": "'\ufeff=1",
    }
    split = {
        ";=1": ";'=1",
        "a; +1": "a;' +1",
        "a\n-1": "a\n'-1",
        "a,@x": "a,'@x",
        "a-1; b": "a-1; b",
    }
    for key, shown in (wide | split).items():
        (_, row) = csv.reader(
            io.StringIO(
                b"".join(exporting._as_spreadsheet(COLUMNS, iter([(0, key, 1.0)]))).decode(),
                newline="",
            )
        )
        assert row[1] == shown
    rows = [(k, key, -0.5) for k, key in enumerate(keys)]
    text = b"".join(exporting._as_spreadsheet(COLUMNS, iter(rows))).decode("utf-8-sig")
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [row[1] for row in read] == [*(f"'{key}" for key in keys[:7]), "x=1", ""]
    assert {row[2] for row in read} == {"-0.5"}  # a number is one
    plain = b"".join(exporting._as_csv(COLUMNS, iter(rows))).decode()
    read = list(csv.reader(io.StringIO(plain, newline="")))[1:]
    assert [row[1] for row in read] == [*keys[:8], ""]  # for programs, and to import it again
