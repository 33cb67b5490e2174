"""Stores while files, sessions and other processes fail."""

from __future__ import annotations

import asyncio

import pytest

from manyarms.serve import tables
from manyarms.serve.stores import PostgresStore
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
