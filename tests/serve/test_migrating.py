"""Tables of an earlier version are made new: all of it, or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.live.databases import Database, database, database_of
from manyarms.serve import tables
from manyarms.serve.game import Game
from tests.museum.test_museum import _restored, _unpack
from tests.serve.machines import call, in_thread, path_of, row_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]
OLD = {"epoch", "owner", "lease_until", "engine"}
OTHER_POLICY = "numbered"  # Prospector has changed since: tests/museum says what happens to it


@pytest.fixture(params=["killed.db", "killed.sql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of version 1, of a service that was killed under load."""
    path, _ = _unpack("4", "services", request.param, tmp_path)
    return f"sqlite:///{path}" if path.suffix == ".db" else _restored(path)


@contextlib.contextmanager
def plain(url: str) -> Iterator[Database]:
    """A connection that changes nothing."""
    one = database_of(url)
    one._prepare = lambda: None  # type: ignore[method-assign]
    one.open()
    try:
        yield one
    finally:
        one.close()


def columns(one: Database) -> set[str]:
    if one.url.startswith("sqlite"):
        return {row[1] for row in one.run("PRAGMA table_info(experiments)")}
    sql = "SELECT column_name FROM information_schema.columns WHERE table_name = 'experiments'"
    return {name for (name,) in one.run(sql)}


def test_a_migration_that_is_cut_off(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with plain(old) as one:
        assert columns(one) >= OLD
    statements = database._MIGRATIONS[1]
    broken = {1: (*statements[:3], "SELECT * FROM nothing")}
    monkeypatch.setattr(database, "_MIGRATIONS", broken)
    with pytest.raises(ma.StoreError, match="nothing"):
        tables.opened(old)
    with plain(old) as one:
        assert columns(one) >= OLD
        assert one._version() == 1
    monkeypatch.undo()
    for _ in range(2):  # the second time there is nothing to do
        with contextlib.closing(tables.opened(old)) as one:
            assert columns(one).isdisjoint(OLD)
            assert one._version() == database.SCHEMA
            for row in one.experiments():
                if row.name == OTHER_POLICY:
                    continue
                assert Game.load(one, row).head == row.head > 0


def test_a_killed_service_goes_on_with_another_version(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arms are compared, and nothing else: not the text of the code, nor of a library."""
    with in_thread(old) as one:
        names = [x["name"] for x in call(one.port, "GET", "/v1/experiments")[1]["experiments"]]
        names.remove(OTHER_POLICY)
        for name in names:
            assert call(one.port, "POST", f"{path_of(name)}/asks", {})[0] == 200
    with contextlib.closing(tables.opened(old)) as database:
        for name in names:
            assert row_of(database, name).version == ma.__version__


def test_newer_tables_are_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with contextlib.closing(tables.opened(url)) as one:
        one.run("UPDATE schema_version SET version = 99")
    with pytest.raises(ma.StoreError, match="has tables of version 99"):
        tables.opened(url)
