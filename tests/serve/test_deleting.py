"""Experiments go at once, their rows bit by bit; nobody but the owner writes arms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from manyarms.serve.scribe import Scribe

from manyarms.live.databases import Batch, Database
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
def test_rows_are_deleted_bit_by_bit(store: str, database: Database) -> None:
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
        assert call(one.port, "DELETE", path)[0] == 200
        assert call(one.port, "GET", path)[0] == 404
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 404
        # the name is free at once, for another experiment
        assert call(one.port, "PUT", path, {"policy": "moss", "n_arms": 5, "horizon": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {"k": 2})[1]["pulls"][1]["pull"] == 1
    new = row_of(database, name)
    assert new.id != row.id
    left = sum(rows_of(database, row.id).values())
    scribe, begun = Scribe(database, "nobody"), time.monotonic()
    while left and time.monotonic() - begun < 20:
        scribe.tick()
        before, left = left, sum(rows_of(database, row.id).values())
        assert before - left <= 2000
    scribe.tick()
    assert database.run("SELECT count(*) FROM experiments WHERE id = :x", x=row.id)[0][0] == 0
    assert rows_of(database, new.id)["events"] == 2


def test_keys_of_old_asks_go_some_at_a_time(database: Database) -> None:
    name = new_name()
    assert database.create(name, "{}", "running", "secret", n_arms=1)
    row = row_of(database, name)
    keys = [(f"k{k}", k, 1, None, "", None, time.time() - 100 * (k < 5)) for k in range(8)]
    assert database.commit([Batch(row.id, row.epoch, 0, keys=keys)]) == [True]
    assert database.drop_old_keys(row.id, 50.0, most=3)
    assert rows_of(database, row.id)["ask_keys"] == 5
    assert database.drop_old_keys(row.id, 50.0, most=3)
    assert not database.drop_old_keys(row.id, 50.0, most=3)
    assert {key[0] for key in database.last_ask_keys(row.id, 9)} == {"k5", "k6", "k7"}


def test_only_the_owner_deletes_and_adds_arms(database: Database) -> None:
    name = new_name()
    assert database.create(name, "{}", "empty", "secret", keyed=1)
    row = row_of(database, name)
    assert database.acquire(name, "node a", row.epoch)
    assert database.add_arms(row.id, row.epoch + 1, [(0, "a")])
    assert database.acquire(name, "node b", row.epoch + 1)
    assert not database.add_arms(row.id, row.epoch + 1, [(1, "b")])  # of a node that woke up
    assert not database.bury(row.id, row.epoch + 1)
    assert rows_of(database, row.id)["arms"] == 1
    # arms that came meanwhile, and were acknowledged
    first = Batch(row.id, row.epoch + 2, 0, columns={"n_arms": 1, "state": "running"})
    assert database.commit([first]) == [True]
    assert not database.bury(row.id, row.epoch + 2)
    stop = Batch(row.id, row.epoch + 2, 0, columns={"state": "stopped"})
    assert database.commit([stop]) == [True]
    assert database.bury(row.id, row.epoch + 2)
    assert not database.add_arms(row.id, row.epoch + 2, [(1, "b")])
    assert database.find(name) is None
