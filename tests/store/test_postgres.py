"""Stores in PostgreSQL: lost sessions, locks, and tables of other programs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from manyarms.errors import (
    ParameterError,
    PathNotFoundError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from manyarms.store import Append, Event, EventStore, open_store
from tests.store.servers import new_address

pytestmark = pytest.mark.patient


@pytest.fixture
def address() -> str:
    return new_address()


@pytest.fixture
def store(address: str) -> Iterator[EventStore]:
    with open_store(address, wait=0.05) as one:
        yield one


@contextlib.contextmanager
def raw(address: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as link:
        yield link


def event(seq: int) -> Append:
    return Append(1, seq - 1, [Event(seq, 0.5, "asked", seq - 1, 0)])


def end_session(store: EventStore, address: str, *, main: bool) -> None:
    """End a session of a store, as at a restart of the server."""
    with store.writing() if main else store.reading() as link:
        (number,) = link.first("SELECT pg_backend_pid()")
    with raw(address) as other:
        other.execute("SELECT pg_terminate_backend(%s, 60000)", [number])


def test_tables_of_another_program_are_not_changed(address: str) -> None:
    with raw(address) as link:
        link.execute("CREATE TABLE requests (x int)")
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="has tables of another program"):
            open_store(address)
    with raw(address) as link:
        names = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        assert link.execute(names).fetchall() == [("requests",)]


def test_another_format_is_refused(address: str) -> None:
    open_store(address).close()
    with raw(address) as link:
        link.execute("UPDATE manyarms_store SET format = 7")
    with pytest.raises(StoreDamagedError, match="has format 7, and this version .* format 1"):
        open_store(address)


def test_a_standby_writes_nothing(address: str) -> None:
    with pytest.raises(PathNotFoundError, match="There is no store in postgresql://127.0.0.1"):
        open_store(address, create=False)
    with raw(address) as link:
        names = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        assert link.execute(names).fetchall() == []


def test_addresses_are_shown_without_passwords(address: str) -> None:
    with_password = address.replace("postgres@", "postgres:secret@")
    with open_store(with_password) as store:
        assert "secret" not in str(store)
        assert str(store).startswith("postgresql://127.0.0.1:")
    with pytest.raises(ParameterError, match="`store` must be postgresql://HOST/DATABASE"):
        open_store("postgresql://host/x?nonsense=1")
    with pytest.raises(StoreUnavailableError, match="127.0.0.1:1/x cannot be reached") as caught:
        open_store("postgresql://ann:secret@127.0.0.1:1/x", wait=1)
    assert "secret" not in str(caught.value)


def test_after_a_lost_session_the_store_connects_again(store: EventStore, address: str) -> None:
    store.create("shop", {})
    store.commit([event(1)])
    end_session(store, address, main=True)
    with pytest.raises(StoreUnavailableError, match="did not answer"):
        store.commit([event(2)])
    store.commit([event(2)])
    end_session(store, address, main=False)
    with pytest.raises(StoreUnavailableError, match="did not answer"):
        store.last_seq(1)
    assert store.last_seq(1) == 2


def test_a_leader_that_lost_its_session_cannot_commit(store: EventStore, address: str) -> None:
    store.create("shop", {})
    assert store.lead()
    end_session(store, address, main=False)  # this loses nothing
    with pytest.raises(StoreUnavailableError):
        store.last_seq(1)
    store.commit([event(1)])
    end_session(store, address, main=True)
    with open_store(address) as other:
        assert other.lead()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                store.commit([event(2)])
            with pytest.raises(StoreError, match="did not answer|no longer leads"):
                store.beat()
        store.resign()
        assert not store.lead()
    assert store.lead()
    store.commit([event(2)])


def test_a_leader_commits_while_a_snapshot_takes_long(store: EventStore, address: str) -> None:
    store.create("shop", {})
    assert store.lead()
    store.commit([event(1)])
    errors: list[Exception] = []

    def save() -> None:
        try:
            store.save_snapshot(1, 1, "1", b"state")
        except StoreUnavailableError as error:
            errors.append(error)

    with raw(address) as other, other.transaction():
        other.execute("LOCK TABLE snapshots")
        thread = threading.Thread(target=save)
        thread.start()
        for seq in range(2, 20):
            store.commit([event(seq)])
            store.beat()
        thread.join(60)
    assert len(errors) == 1
    assert "is busy: another process is writing" in str(errors[0])
    store.beat()
    store.save_snapshot(1, 1, "1", b"state")


def test_the_server_ends_only_silent_leaders(store: EventStore) -> None:
    with store.writing() as link:
        assert link.run("SHOW idle_session_timeout") == [("0",)]
        assert store.lead()
        assert link.run("SHOW idle_session_timeout") == [("5min",)]
        assert link.run("SHOW idle_in_transaction_session_timeout") == [("5min",)]
        store.resign()
        assert link.run("SHOW idle_session_timeout") == [("0",)]


def test_leaders_of_two_schemas_do_not_interfere(store: EventStore) -> None:
    with open_store(new_address()) as other:
        assert store.lead()
        assert other.lead()
