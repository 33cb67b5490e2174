"""Stores in SQLite files: other files, busy files, full disks and removed files."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from manyarms.errors import (
    DuplicateNameError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from manyarms.store import Append, Event, EventStore, check, copy, open_store
from manyarms.store.records import first_checksum, next_checksum, to_json
from manyarms.store.sqlite import SQLiteConnection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[EventStore]:
    with open_store(path, wait=0.05) as one:
        yield one


def event(seq: int) -> Append:
    return Append(1, seq - 1, [Event(seq, 0.5, "asked", seq - 1, 0, None, {"x": "y" * 500})])


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        yield link


def test_another_file_is_refused_and_not_changed(path: Path) -> None:
    with raw(path) as link:
        link.execute("CREATE TABLE events (x)")
    foreign = path.read_bytes()
    for content in (foreign, b"no database, but long enough to be one" * 100):
        path.write_bytes(content)
        for read_only in (False, True):
            with pytest.raises(StoreDamagedError, match="another program|not an SQLite file"):
                open_store(path, read_only=read_only)
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]


def test_another_format_is_refused(path: Path) -> None:
    open_store(path).close()
    with raw(path) as link:
        link.execute("PRAGMA user_version = 2")
    with pytest.raises(StoreDamagedError, match="has format 2, and this version .* format 1"):
        open_store(path)


_ENDLESS = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT k"
CRAFTED = {
    "a view": ["CREATE VIEW more AS SELECT 1"],
    "a view that never ends": [
        "DROP TABLE tokens",
        f"CREATE VIEW tokens AS {_ENDLESS} AS name, 1 AS role, 1 AS hash, 1 AS created, 1 AS "
        "expires FROM n",
    ],
    "a trigger": [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM experiments; END",
    ],
    "a column": ["ALTER TABLE arms ADD COLUMN more"],
    "an index": ["CREATE INDEX i ON events (abs(reward))"],
    "a table": ["CREATE TABLE more (x)"],
    "no index": ["DROP INDEX requests_by_time"],
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_schema_is_refused(path: Path, name: str) -> None:
    open_store(path).close()
    with raw(path) as link:
        for statement in CRAFTED[name]:
            link.execute(statement)
    content = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(StoreDamagedError, match="manyarms did not make|lacks a table"):
            open_store(path, read_only=read_only)
    assert path.read_bytes() == content


def test_statistics_of_sqlite_are_no_damage(store: EventStore, path: Path) -> None:
    store.create("shop", {})
    with raw(path) as link:
        link.execute("ANALYZE")
        link.execute("VACUUM")
    open_store(path).close()


@pytest.mark.parametrize("detail", ["{", "[1]", "NaN", "[" * 100_000, b"\xff\xfe"])
def test_a_detail_that_is_not_an_object_is_damage(path: Path, detail: str | bytes) -> None:
    """Also with a checksum that fits, which whoever can write the file can compute."""
    with open_store(path) as store:
        record = store.create("shop", {})
        spec = to_json({})
        text = detail if isinstance(detail, str) else ""
        columns: tuple[int, float, str, int, int, None] = (1, 0.5, "asked", 0, 0, None)
        checksum = next_checksum(first_checksum(spec), *columns, text)
        with raw(path) as link:
            row = (record.id, *columns, detail, checksum)
            link.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        with pytest.raises(StoreDamagedError, match="event 1 was changed"):
            list(store.events(record.id))


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreDamagedError, match="is empty"):
        open_store(path, read_only=True)
    open_store(path).close()
    open_store(path, read_only=True).close()


@pytest.mark.patient
def test_many_processes_create_the_same_file(tmp_path: Path) -> None:
    """With threads that have their own stores: SQLite distinguishes connections, not processes."""
    for round_ in range(20):
        barrier = threading.Barrier(6)

        def create(path: Path, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            with open_store(path, wait=60) as store:
                try:
                    store.create("shop", {}, ["a"])
                except DuplicateNameError:
                    return False
                return True

        with ThreadPoolExecutor(6) as pool:
            made = list(pool.map(create, [tmp_path / f"{round_}.db"] * 6))
        assert sum(made) == 1


def test_a_new_file_is_private(path: Path) -> None:
    with open_store(path) as store:
        store.create("shop", {})
        assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o600}


def test_another_hard_link_is_refused(store: EventStore, path: Path) -> None:
    (path.parent / "other.db").hardlink_to(path)
    with pytest.raises(StoreError, match="has 2 hard links"):
        open_store(path.parent / "other.db")


def test_a_path_with_special_characters(tmp_path: Path) -> None:
    path, asked = tmp_path / "b#c %41é.db", tmp_path / "a?b.db"
    for address in (f"sqlite:///{path}", str(asked)):
        with open_store(address) as store:
            store.create("shop", {})
    for one in (path, asked):
        assert one.is_file()
        with open_store(one, create=False) as store:
            assert store.find("shop") is not None


def test_durability(path: Path) -> None:
    for durable, expected in (("process", 1), ("power", 2)):
        with open_store(path, durable=durable) as store, store.writing() as link:  # type: ignore[arg-type]
            assert link.run("PRAGMA synchronous") == [(expected,)]
            assert link.run("PRAGMA journal_mode") == [("wal",)]


def test_calls_on_a_busy_file_fail_after_waiting(store: EventStore, path: Path) -> None:
    store.create("shop", {})
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        for call in (
            lambda: store.commit([event(1)]),
            lambda: store.create("x", {}, ["a"]),
            lambda: store.save_snapshot(1, 0, "1", b""),
        ):
            with pytest.raises(StoreUnavailableError, match="locked. Another process is writing"):
                call()
        assert store.last_seq(1) == 0
        with open_store(path, wait=0) as second:  # opening and reading need no lock
            assert second.find("shop") == store.find("shop")
        other.execute("ROLLBACK")
    store.commit([event(1)])


def test_a_commit_waits_until_another_has_ended(path: Path) -> None:
    with open_store(path, wait=60) as store, raw(path) as other:
        store.create("shop", {})
        other.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=store.commit, args=([event(1)],))
        thread.start()
        other.execute("ROLLBACK")
        thread.join(60)
        assert store.last_seq(1) == 1


def _fill(store: EventStore) -> None:
    for seq in itertools.count(1):
        store.commit([event(seq)])
        assert store.last_seq(1) == seq


def test_a_full_disk(store: EventStore) -> None:
    """Commits fail with a clear message, acknowledged events are kept, later commits succeed."""
    store.create("shop", {})
    with store.writing() as link, store.reading() as side:
        (pages,) = link.first("PRAGMA page_count")
        for one in (link, side):
            one.run(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(StoreUnavailableError, match="Free some disk space"):
        _fill(store)
    last = store.last_seq(1)
    assert last > 20
    for call in (
        lambda: store.commit([event(last + 1)]),
        lambda: store.commit(
            [event(last + 1)._replace(names=[(k, f"{k}" * 99) for k in range(999)])]
        ),
        lambda: store.create("x", {}, [f"{k}" * 99 for k in range(999)]),
        lambda: store.save_snapshot(1, last, "1", b"x" * 100_000),
    ):
        with pytest.raises(StoreUnavailableError, match="disk is full"):
            call()
    assert [one.name for one in store.experiments()] == ["shop"]
    assert store.last_seq(1) == last
    with store.writing() as link:
        link.run("PRAGMA max_page_count = 100000")
    store.commit([event(last + 1)])
    assert [(one.events, one.trouble) for one in check(store)] == [(last + 1, "")]


@pytest.mark.parametrize("change", ["removed", "moved", "replaced", "wal removed"])
def test_nothing_is_acknowledged_in_a_removed_file(
    store: EventStore, path: Path, change: str
) -> None:
    store.create("shop", {})
    store.commit([event(1)])
    if change == "removed":
        path.unlink()
    elif change == "moved":
        path.rename(path.with_name("moved.db"))
    elif change == "replaced":
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    else:
        Path(f"{path}-wal").unlink()
    for call in (
        lambda: store.commit([event(2)]),
        lambda: store.commit([event(2)._replace(names=[(0, "a")])]),
        lambda: store.create("x", {}),
    ):
        with pytest.raises(StoreError, match="was removed or replaced while it was open"):
            call()


def test_a_leader_whose_lock_was_removed(store: EventStore, path: Path) -> None:
    assert store.lead()
    store.beat()
    Path(f"{path}.lock").unlink()
    with pytest.raises(StoreError, match="no longer leads: the lock file of .* was removed"):
        store.beat()


def test_a_damaged_page_is_detected(path: Path) -> None:
    with open_store(path) as store:
        store.create("shop", {})
        for seq in range(1, 200):
            store.commit([event(seq)])
    data = bytearray(path.read_bytes())
    places = [k for k in range(len(data)) if data[k : k + 50] == b"y" * 50]
    data[places[-1]] = ord("z")
    path.write_bytes(data)
    with (
        open_store(path) as store,
        pytest.raises(StoreDamagedError, match=r"event \d+ was changed"),
    ):
        list(store.events(1))


@pytest.mark.parametrize(
    "change", ["arm = 'x'", "kind = x'ff'", "at = 'x'", "detail = CAST(x'ff' AS TEXT)"]
)
def test_columns_of_another_type_are_detected(store: EventStore, path: Path, change: str) -> None:
    store.create("shop", {})
    for seq in (1, 2, 3):
        store.commit([event(seq)])
    with raw(path) as link:
        link.execute(f"UPDATE events SET {change} WHERE seq = 2")
    with pytest.raises(StoreError, match="event 2 was changed|Could not decode"):
        list(store.events(1))
    assert [bool(one.trouble) for one in check(store)] == [True]


def test_unreadable_settings(store: EventStore, path: Path) -> None:
    store.create("shop", {})
    with raw(path) as link:
        link.execute("UPDATE experiments SET spec = '{'")
    with pytest.raises(StoreDamagedError, match="The settings of experiment 1 in .* are damaged"):
        store.find("shop")


@pytest.mark.parametrize(
    "change",
    ["spec = '{'", "spec = '[]'", "state = 7", "spec = CAST(x'ff' AS TEXT)",
     "spec = '" + 9999 * "[" + "'", "name = x'ff'", "name = CAST(x'ff' AS TEXT)"],
)  # fmt: skip
def test_a_damaged_row_hides_no_other(
    store: EventStore, path: Path, change: str, tmp_path: Path
) -> None:
    for name in ("a", "shop", "z"):
        store.create(name, {"window": 1})
    with raw(path) as link:
        link.execute(f"UPDATE experiments SET {change} WHERE name = 'shop'")
    rows = {record.name: record for record in store.experiments()}
    assert len(rows) == 3
    assert [rows[name].spec for name in ("a", "z")] == [{"window": 1}] * 2
    (damaged,) = rows.keys() - {"a", "z"}
    assert "damaged" in rows[damaged].damage
    assert [one.name for one in check(store) if one.trouble] == [damaged]
    with open_store(tmp_path / "copy.db") as target:
        assert copy(store, target, ["a"]) == ["a"]
        with pytest.raises(StoreDamagedError, match="Nothing was copied"):
            copy(store, target)
        assert [record.name for record in target.experiments()] == ["a"]


def test_an_interrupt_leaves_no_transaction(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("shop", {})
    insert = SQLiteConnection.insert

    def interrupted(self: SQLiteConnection, table: str, rows: list[tuple[object, ...]]) -> None:
        insert(self, table, rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(SQLiteConnection, "insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.commit([event(1)._replace(names=[(0, "a")])])
    monkeypatch.undo()
    assert store.last_seq(1) == 0
    store.commit([event(1)._replace(names=[(0, "a")])])


def test_readers_do_not_prevent_checkpoints(store: EventStore, path: Path) -> None:
    """A reader that stops in the middle has no open transaction."""
    store.create("shop", {})
    store.commit([Append(1, 0, [Event(k + 1, 0.5, "asked", k, 0) for k in range(6000)])])
    events = store.events(1)
    next(events)
    with raw(path) as link:
        busy, left, moved = link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, left) == (0, moved)
    assert os.stat(f"{path}-wal").st_size == 0  # noqa: PTH116
    assert len(list(events)) == 5999
