"""Stores while files, sessions and other processes fail."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import pytest
from manyarms.live.databases import Database, database_of
from manyarms.serve.stores import PostgresStore, SQLiteStore

import manyarms as ma
from manyarms.core.files import FileLock
from manyarms.serve import tables
from tests.serve.machines import opened, shared_postgres

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]


# PostgreSQL


def test_a_leader_that_is_frozen_while_it_writes_keeps_nobody_out() -> None:
    url = shared_postgres()

    async def lead() -> str:
        store = PostgresStore(url, "standby")
        try:
            await store.lead(lambda leader: None)
            return await store.write(lambda database: tables.setting(database, "leader", ""))
        finally:
            await store.leave()
            store.close()

    asyncio.run(lead())
    with opened(url) as frozen:
        frozen.run("BEGIN")
        assert frozen.run("SELECT 1 FROM settings WHERE name = 'term' FOR UPDATE")
        assert frozen.run("UPDATE settings SET value = 'frozen' WHERE name = 'leader' RETURNING 1")
        assert asyncio.run(lead()).startswith("standby since ")


# SQLite


def test_who_is_cancelled_keeps_the_connection_until_it_is_free(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    with opened(url):
        pass
    said: list[str] = []

    def slowly(database: Database) -> None:
        said.append("begun")
        time.sleep(0.2)
        said.append("done")

    async def cancel() -> None:
        store = SQLiteStore(url, "leader")
        await store.lead(lambda leader: None)
        first = asyncio.create_task(store.write(slowly))
        while not said:
            await asyncio.sleep(0.01)
        first.cancel()
        await store.commit([])  # in the loop, by the same connection
        said.append("committed")
        assert first.cancelled()
        await store.leave()
        store.close()

    asyncio.run(cancel())
    assert said == ["begun", "done", "committed"]


def test_a_standby_does_not_write_to_the_database(tmp_path: Path) -> None:
    """One that is frozen while it writes would lock the leader out."""
    url = f"sqlite:///{tmp_path}/x.db?sync=never"

    async def wait_for() -> None:
        store = SQLiteStore(url, "host:2")
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        leading = asyncio.create_task(store.lead(waiting.set_result))
        both: set[asyncio.Future[Any]] = {leading, waiting}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        assert waiting.result() == "host:1"
        lock.release()
        leader.run("COMMIT")
        await leading
        await store.leave()
        store.close()

    with opened(url) as leader:
        tables.set_setting(leader, "leader", "host:1 since 1")
        lock = FileLock(tmp_path / "x.db.lock", remove=True)
        leader.run("BEGIN IMMEDIATE")
        asyncio.run(wait_for())


# Both


def test_tables_of_another_version_are_refused(store: str) -> None:
    with opened(store) as database:
        database.run("UPDATE schema_version SET version = 7")
    try:
        with pytest.raises(ma.StoreError, match="version 7, and this manyarms knows version 1"):
            tables.opened(store)
    finally:  # others use the same PostgreSQL
        with contextlib.closing(database_of(store)) as other, pytest.MonkeyPatch.context() as patch:
            patch.setattr(other, "_prepare", lambda: None)
            other.open()
            other.run("UPDATE schema_version SET version = 1")
