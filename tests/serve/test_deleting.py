"""Experiments go at once, their rows bit by bit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from manyarms.live.databases import Database

from manyarms.serve import tables
from tests.serve.machines import call, in_thread, new_name, opened, row_of

pytestmark = pytest.mark.interpreted
TABLES = ("events", "ask_keys", "arms", "minutes", "snapshots")


@pytest.fixture
def database(store: str) -> Iterator[Database]:
    with opened(store) as one:
        yield one


def rows_of(database: Database, number: int) -> dict[str, int]:
    where = "WHERE experiment = :x"
    return {t: database.run(f"SELECT count(*) FROM {t} {where}", x=number)[0][0] for t in TABLES}


@pytest.mark.patient
def test_rows_are_deleted_bit_by_bit(
    store: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[int] = []
    purge = tables.purge

    def counted(one: Database) -> bool:
        before = sum(rows_of(one, row.id).values())
        more = purge(one)
        gone.append(before - sum(rows_of(one, row.id).values()))
        return more

    name = new_name()
    path = f"/v1/experiments/{name}"
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"policy": "prospector"})[0] == 201
        keys = "".join(f'"{k}"\n' for k in range(3000)).encode()
        kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
        assert call(one.port, "POST", f"{path}/arms", keys, **kind)[0] == 200
        for k in range(3):
            asked: dict[str, Any] = {"Idempotency_Key": f"{k}"}
            assert call(one.port, "POST", f"{path}/asks", {"k": 500}, **asked)[0] == 200
        assert call(one.port, "POST", f"{path}/stop")[0] == 200
        row = row_of(database, name)
        monkeypatch.setattr(tables, "purge", counted)
        assert call(one.port, "DELETE", path)[0] == 200
        assert call(one.port, "GET", path)[0] == 404
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 404
        # the name is free at once, for another experiment
        assert call(one.port, "PUT", path, {"policy": "moss", "n_arms": 5, "horizon": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {"k": 2})[1]["pulls"][1]["pull"] == 1
        new = row_of(database, name)
        assert new.id != row.id
        end = time.monotonic() + 20
        while database.run("SELECT 1 FROM experiments WHERE id = :x", x=row.id):
            assert time.monotonic() < end
            time.sleep(0.02)
    assert sum(rows_of(database, row.id).values()) == 0
    assert max(gone) <= 2000
    assert rows_of(database, new.id)["events"] == 2


def test_keys_of_old_asks_go_some_at_a_time(database: Database) -> None:
    name = new_name()
    assert database.create(name, "{}", "running", "secret", n_arms=1)
    row = row_of(database, name)
    for k in range(8):
        database.run(
            "INSERT INTO ask_keys VALUES (:x, :key, 1, :k, 1, NULL, :at)",
            x=row.id,
            key=f"k{k}",
            k=k,
            at=time.time() - 100 * (k < 5),
        )
    assert tables.drop_old_keys(database, row.id, 50.0, most=3)
    assert rows_of(database, row.id)["ask_keys"] == 5
    assert tables.drop_old_keys(database, row.id, 50.0, most=3)
    assert not tables.drop_old_keys(database, row.id, 50.0, most=3)
    assert {key[0] for key in tables.last_ask_keys(database, row.id, 9)} == {"k5", "k6", "k7"}
