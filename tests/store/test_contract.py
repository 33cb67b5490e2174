"""The contract of stores, on SQLite and PostgreSQL."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from manyarms.errors import (
    DuplicateNameError,
    ParameterError,
    StoreDamagedError,
    StoreError,
    UnknownNameError,
    WriteConflictError,
)
from manyarms.store import (
    LONGEST_ARM_NAME,
    Append,
    Event,
    EventStore,
    Request,
    Token,
    backup,
    check,
    copy,
    event_store,
    open_store,
    reading,
)
from manyarms.store.schema import PIECES
from tests.store.conftest import Opener


def asked(*seqs: int) -> list[Event]:
    return [Event(seq, 10.0 * seq, "asked", pull=seq - 1, arm=seq % 3) for seq in seqs]


def played(store: EventStore, count: int = 4, name: str = "shop") -> int:
    """Create an experiment with some events, and return its number."""
    number = store.create(name, {"policy": "moss", "seed": 2**60}, ["red", "blue", "green"]).id
    store.commit([Append(number, 0, asked(*range(1, count + 1)))])
    return number


# Events


def test_every_field_is_stored(store: EventStore, opened: Opener) -> None:
    number = store.create("shop", {"policy": "moss"}, ["red"]).id
    events = [
        Event(1, 1.7e9 + 0.1, "asked", 0, 0),
        Event(2, 1.7e9, "told", 0, 0, 0.1 + 0.2),
        Event(3, 0.0, "told", 2**62, 2**40, -0.0, {"é\0\ud800": [None, 1e-300, "語"]}),
        Event(4, 5.0, "observed", None, 0, float("inf"), {}),
        Event(5, 5, "observed", None, 0, 1),
    ]
    store.commit([Append(number, 0, events)])
    for one in (store, opened()):
        assert list(one.events(number)) == events
        assert list(one.events(number, after=3)) == events[3:]
        for end in (len(events), len(events) + 1, 10**6):
            assert list(one.events(number, after=end)) == []
            assert list(one.history(number, after=end)) == []
        assert list(one.events(number, after=1, limit=2)) == events[1:3]
        assert one.last_seq(number) == 5


def test_pages_of_events(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    number = played(store, 25)
    monkeypatch.setattr(reading, "PAGE", 10)
    for limit in (None, 0, 9, 10, 11, 20, 25, 99):
        assert list(store.events(number, limit=limit)) == asked(*range(1, 26))[:limit]
    assert [row.seq for row in store.history(number)] == list(range(1, 26))


def test_a_commit_of_several_experiments_is_atomic(store: EventStore, opened: Opener) -> None:
    first, second = played(store, 3, "first"), played(store, 3, "second")
    store.commit([Append(first, 3, asked(4)), Append(second, 3, asked(4, 5))])
    opened().commit([Append(second, 5, asked(6))])
    with pytest.raises(WriteConflictError, match="Another process is writing experiment 'second'"):
        store.commit([Append(first, 4, asked(5)), Append(second, 5, asked(6))])
    assert (store.last_seq(first), store.last_seq(second)) == (4, 6)
    store.commit([Append(first, 4, asked(5)), Append(second, 6, asked(7))])
    assert [len(list(store.events(number))) for number in (first, second)] == [5, 7]


def test_one_experiment_several_times_in_a_commit(store: EventStore) -> None:
    number = played(store, 1)
    store.commit(
        [
            Append(number, 1, asked(2)),
            Append(number, 2, [], names=[(3, "black")]),
            Append(number, 2, asked(3, 4), names=[(4, "white")]),
        ]
    )
    assert list(store.events(number)) == asked(1, 2, 3, 4)
    assert store.arm_names(number, [3, 4]) == {3: "black", 4: "white"}
    with pytest.raises(ParameterError, match="`after_seq` must be 5"):
        store.commit([Append(number, 4, asked(5)), Append(number, 4, asked(5))])
    assert store.last_seq(number) == 4


def test_a_second_writer_is_refused_and_can_continue(store: EventStore, opened: Opener) -> None:
    number = played(store, 2)
    other = opened()
    other.commit([Append(number, 2, asked(3))])
    for _ in range(2):
        with pytest.raises(WriteConflictError, match="its log ends at event 3.*after event 2"):
            store.commit([Append(number, 2, [Event(3, 0.0, "told", 0, 1, 1.0)])])
    with pytest.raises(WriteConflictError, match="ends at event 3.*after event 7"):
        store.commit([Append(number, 7, asked(8))])
    store.commit([Append(number, 3, asked(4))])
    assert list(other.events(number)) == asked(1, 2, 3, 4)


def test_two_writers_at_once_never_overwrite(store: EventStore, opened: Opener) -> None:
    number = played(store, 0)
    won: list[tuple[int, int]] = []

    def write(writer: int, one: EventStore) -> None:
        while (last := one.last_seq(number)) < 60:
            event = Event(last + 1, 0.0, "told", writer, writer, float(writer))
            try:
                one.commit([Append(number, last, [event])])
            except WriteConflictError:
                continue
            won.append((last + 1, writer))

    threads = [threading.Thread(target=write, args=(k, opened())) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [(event.seq, event.arm) for event in store.events(number)]


@pytest.mark.parametrize("seqs", [(1,), (2,), (4,), (3, 5), (3, 3)])
def test_events_are_numbered_without_gaps(store: EventStore, seqs: tuple[int, ...]) -> None:
    number = played(store, 2)
    with pytest.raises(ParameterError, match="`seq` must be"):
        store.commit([Append(number, 2, asked(*seqs))])
    assert store.last_seq(number) == 2


def test_history_has_names_and_all_rewards(store: EventStore) -> None:
    number = store.create("shop", {}, ["red", "blue"]).id
    events = [
        Event(1, 1.0, "observed", None, 1, 0.25),
        Event(2, 2.0, "asked", 0, 1),
        Event(3, 3.0, "answered", 0, 1, 0.25),
        Event(4, 4.0, "asked", 1, 7),
        Event(5, 5.0, "told", 1, 7, 1.0, {"late": True}),
    ]
    store.commit([Append(number, 0, events)])
    assert [tuple(row) for row in store.history(number)] == [
        (1, 1.0, "observed", None, "blue", 0.25, None),
        (2, 2.0, "asked", 0, "blue", None, None),
        (3, 3.0, "answered", 0, "blue", 0.25, None),
        (4, 4.0, "asked", 1, 7, None, None),
        (5, 5.0, "told", 1, 7, 1.0, {"late": True}),
    ]
    assert [row.seq for row in store.history(number, after=3)] == [4, 5]


# Experiments


def test_experiments(store: EventStore, opened: Opener) -> None:
    b = store.create("b", {"x": 1.5, "y": [None]}, state={"paused": True})
    a = store.create("a", {})
    assert opened().experiments() == [a, b]
    assert store.find("b") == b
    assert store.find("c") is None
    store.set_state(b.id, {"paused": False})
    assert store.find("b") == b._replace(state={"paused": False})


def test_one_of_several_processes_creates_an_experiment(address: str) -> None:
    """The processes also create the tables at the same time."""
    barrier, made, errors = threading.Barrier(4), [], []

    def create(writer: int) -> None:
        barrier.wait()
        with open_store(address, wait=60) as store:
            try:
                made.append(store.create("shop", {"writer": writer}, [f"arm of {writer}"]))
            except DuplicateNameError as error:
                errors.append(str(error))
            found = store.find("shop")
            assert found is not None
            assert store.arm_names(found.id) == {0: f"arm of {found.spec['writer']}"}

    threads = [threading.Thread(target=create, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert errors == ["There is an experiment 'shop' already. Continue that one, or choose "
                      "another name."] * 3  # fmt: skip
    with open_store(address) as store:
        assert store.experiments() == made


def test_the_writer_of_a_deleted_experiment_is_refused(store: EventStore, opened: Opener) -> None:
    number, other = played(store), played(store, 2, "other")
    store.commit([Append(number, 4, [], requests=[Request("k", "d", "a", 1.0)])])
    store.save_snapshot(number, 4, "1", b"state")
    writer = opened()
    writer.commit([Append(number, 4, asked(5))])
    store.delete(number)
    assert [one.name for one in store.experiments()] == ["other"]
    for _ in range(2):
        with pytest.raises(WriteConflictError, match=f"Experiment {number} in .* was deleted"):
            writer.commit([Append(number, 5, asked(6))])
    for append in (Append(number, 0, asked(1, 2)), Append(number, 0, [], [(9, "x")])):
        with pytest.raises(WriteConflictError, match="was deleted"):
            writer.commit([Append(other, 2, asked(3)), append])
    assert store.last_seq(other) == 2
    while store.purge():
        pass
    with store.reading() as link:
        for table in PIECES:
            assert not link.run(f"SELECT 1 FROM {table} WHERE experiment = ?", number)
    again = store.create("shop", {})
    assert again.id > other > number
    assert list(store.events(again.id)) == []
    store.delete(number)  # deleting it again is allowed


def test_deleting_continues_after_a_kill(
    store: EventStore, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, writer = played(store, 10), opened()
    writer.commit([Append(number, 10, asked(11))])
    monkeypatch.setattr(event_store, "_PIECE", 4)
    monkeypatch.setattr(store, "purge", lambda: False)
    store.delete(number)
    assert store.find("shop") is None
    assert store.experiments() == []
    pieces = 0
    while opened().purge():
        with pytest.raises(WriteConflictError, match="was deleted"):
            writer.commit([Append(number, 11, asked(12))])
        pieces += 1
    assert pieces == 4  # 3 arms and 11 events
    with store.reading() as link:
        assert link.run("SELECT 1 FROM experiments") == []


# Names


def test_names_of_arms(store: EventStore, opened: Opener) -> None:
    names = ["a", "A", "é", "語" * LONGEST_ARM_NAME, "%s ? :x '", " ", "7"]
    number = store.create("shop", {}, names).id
    more = [(100, "b"), (7, "語" * (LONGEST_ARM_NAME - 1))]
    store.commit([Append(number, 0, asked(1), names=more)])
    for one in (store, opened()):
        assert one.arm_names(number) == {**dict(enumerate(names)), **dict(more)}
        assert one.arm_names(number, [3, 100, 55]) == {3: names[3], 100: "b"}
        assert one.arm_names(number, []) == {}
    assert store.arm_names(played(store, 1, "other")) == {0: "red", 1: "blue", 2: "green"}


@pytest.mark.parametrize("name", ["", "x" * (LONGEST_ARM_NAME + 1), "a\0b", "\ud800", 3, None])
def test_bad_names_of_arms(store: EventStore, name: Any) -> None:
    number = played(store)
    with pytest.raises(ParameterError, match="The name of an arm must be a text of 1 to 20,000"):
        store.commit([Append(number, 4, asked(5), names=[(3, name)])])
    with pytest.raises(ParameterError, match="The name of an arm"):
        store.create("other", {}, [name])
    assert store.last_seq(number) == 4
    assert store.find("other") is None


def test_names_are_unique(store: EventStore) -> None:
    number = played(store)
    with pytest.raises(DuplicateNameError, match="'x' is repeated"):
        store.create("other", {}, ["x", "y", "x"])
    for arms in ([(3, "x"), (4, "x")], [(3, "x"), (4, "blue")], [(3, "x"), (1, "y")]):
        with pytest.raises(DuplicateNameError, match="is repeated|has one of these names"):
            store.commit([Append(number, 4, asked(5), names=arms)])
    assert store.last_seq(number) == 4
    assert len(store.arm_names(number)) == 3
    store.commit([Append(number, 4, asked(5), names=[(3, "x")])])


def test_many_names_in_one_commit(store: EventStore) -> None:
    names = [f"arm {k}" for k in range(45_000)]
    number = store.create("shop", {}, names).id
    assert store.arm_names(number) == dict(enumerate(names))


# Snapshots


def test_two_snapshots_are_kept_and_the_first_state(store: EventStore, opened: Opener) -> None:
    number = store.create("shop", {}).id
    store.save_snapshot(number, 0, "1", b"first")
    store.commit([Append(number, 0, asked(1, 2, 3, 4))])
    for seq in (1, 2, 4):
        store.save_snapshot(number, seq, f"version {seq}", bytes([seq, 0, 255]) * seq)
    store.save_snapshot(number, 4, "again", b"")
    for one in (store, opened()):
        assert list(one.snapshots(number)) == [
            (4, "again", b""),
            (2, "version 2", b"\x02\0\xff" * 2),
            (0, "1", b"first"),
        ]


def test_a_damaged_snapshot_is_skipped(store: EventStore) -> None:
    number = played(store)
    for seq in (2, 3):
        store.save_snapshot(number, seq, "1", b"state")
    with store.writing() as link:
        link.run("UPDATE snapshots SET data = ? WHERE seq = 3", b"stale")
    assert [one.seq for one in store.snapshots(number)] == [2]
    (found,) = check(store)
    assert "Events are intact; the snapshot of experiment" in found.trouble


def test_a_snapshot_of_missing_events(store: EventStore) -> None:
    number = played(store)
    with pytest.raises(StoreError, match=f"There is no event 5 in experiment {number}"):
        store.save_snapshot(number, 5, "1", b"")
    with pytest.raises(StoreError, match="There is no event 0 in experiment 999"):
        store.save_snapshot(999, 0, "1", b"")
    store.save_snapshot(number, 4, "1", b"")
    with store.writing() as link:
        link.run("DELETE FROM events WHERE seq = 4")
    assert list(store.snapshots(number)) == []


def test_a_failed_snapshot_does_not_stop_commits(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = played(store)
    monkeypatch.setattr(event_store, "_MOST", 10)
    with pytest.raises(StoreError, match="A snapshot has at most 10 bytes, got 11"):
        store.save_snapshot(number, 4, "1", b"x" * 11)
    with pytest.raises(StoreError):
        store.save_snapshot(number, 4, object(), b"")  # type: ignore[arg-type]
    store.commit([Append(number, 4, asked(5))])
    store.save_snapshot(number, 5, "1", b"x")
    assert [one.seq for one in store.snapshots(number)] == [5]


# Requests and tokens


def test_requests_are_committed_with_their_events(store: EventStore, opened: Opener) -> None:
    number, other = played(store), played(store, 0, "other")
    one, two = Request("k", "digest", '{"pull":4}', 50.0), Request("l", "", "", 60.0)
    store.commit([Append(number, 4, asked(5), requests=[one]), Append(other, 0, (), (), [two])])
    again = opened()
    assert again.request(number, "k") == one
    assert again.request(other, "k") is None
    for requests in ([two, one], [two, two]):
        with pytest.raises(WriteConflictError, match="this request was answered before"):
            store.commit([Append(number, 5, asked(6), requests=requests)])
    assert store.last_seq(number) == 5
    assert again.request(number, "l") is None
    assert store.prune_requests(55.0)
    assert not store.prune_requests(55.0)
    assert store.request(number, "k") is None
    assert store.request(other, "l") == two


def test_requests_are_pruned_in_batches(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    number = played(store, 0)
    requests = [Request(f"k{k}", "", "", float(k)) for k in range(10)]
    store.commit([Append(number, 0, [], requests=requests)])
    monkeypatch.setattr(event_store, "_PIECE", 4)
    assert [store.prune_requests(9.0) for _ in range(4)] == [True, True, True, False]
    assert store.request(number, "k9") is not None


def test_tokens(store: EventStore, opened: Opener) -> None:
    ann, bob = Token("ann", "admin", "hash 1", 1.0), Token("bob", "viewer", "hash 2", 2.0, 3.0)
    store.add_token(bob)
    store.add_token(ann)
    assert opened().tokens() == [ann, bob]
    with pytest.raises(DuplicateNameError, match="There is a token 'ann' already"):
        store.add_token(ann._replace(hash="hash 3"))
    assert store.remove_token("ann")
    assert not store.remove_token("ann")
    assert store.tokens() == [bob]


# Damage


@pytest.mark.parametrize(
    "change",
    [
        "at = at + 1e-6",
        "kind = 'aske_'",
        "pull = pull + 1",
        "pull = NULL",
        "arm = arm + 1",
        "reward = 0",
        "detail = '{}'",
        "checksum = checksum + 1",
    ],
)
def test_the_first_damaged_event_is_named(store: EventStore, change: str) -> None:
    number, intact = played(store, 9), played(store, 2, "intact")
    with store.writing() as link:
        link.run(f"UPDATE events SET {change} WHERE experiment = ? AND seq IN (6, 8)", number)
    found: list[Event] = []
    with pytest.raises(StoreDamagedError, match="event 6 was changed after.*Restore a backup"):
        found.extend(store.events(number))
    assert found == asked(1, 2, 3, 4, 5)
    assert [(one.name, one.events, bool(one.trouble)) for one in check(store)] == [
        ("intact", 2, False),
        ("shop", 5, True),
    ]
    assert store.last_seq(intact) == 2


def test_missing_and_reordered_events_are_detected(store: EventStore) -> None:
    number = played(store, 9)
    with store.writing() as link:
        link.run("UPDATE events SET seq = 100 WHERE seq = 4")
    with pytest.raises(StoreDamagedError, match="event 4 is missing"):
        list(store.events(number))
    with pytest.raises(StoreDamagedError, match="event 4 is missing"):
        list(store.events(number, after=4))
    with pytest.raises(StoreDamagedError, match="the experiment is missing"):
        list(store.events(999))
    with store.writing() as link:
        link.run("UPDATE events SET seq = 4 WHERE seq = 5")
    with pytest.raises(StoreDamagedError, match="event 4 was changed"):
        list(store.events(number))


def test_changed_settings_and_names_are_detected(store: EventStore) -> None:
    number, other = played(store), played(store, 1, "other")
    with store.writing() as link:
        link.run("UPDATE experiments SET spec = '{}' WHERE id = ?", number)
        link.run("UPDATE arms SET name = 'rad' WHERE number = 0 AND experiment = ?", other)
    with pytest.raises(StoreDamagedError, match="event 1 was changed"):
        list(store.events(number))
    assert next(one.trouble for one in check(store)) == (
        "The name of arm 0 was changed after it was written."
    )


# Copies and backups


def filled(store: EventStore) -> dict[str, Any]:
    """Fill a store, and return its contents."""
    number = played(store, 9)
    store.commit(
        [
            Append(
                number,
                9,
                [Event(10, 3.0, "added"), Event(11, 4.0, "retired", None, 1, None, {"x": "é"})],
                [(3, "语" * 5000)],
                [Request("k", "d", "answer", 5.0)],
            )
        ]
    )
    store.set_state(number, {"control": 2})
    store.save_snapshot(number, 9, "1", b"older")
    store.save_snapshot(number, 11, "2", b"\0newer")
    store.add_token(Token("ann", "admin", "hash", 1.0))
    played(store, 0, "empty")
    return contents(store)


def contents(store: EventStore) -> dict[str, Any]:
    return {
        one.name: (
            one[2:],
            list(store.events(one.id)),
            store.arm_names(one.id),
            list(store.snapshots(one.id)),
            store.request(one.id, "k"),
        )
        for one in store.experiments()
    } | {"tokens": store.tokens()}


def test_copies_are_complete(
    store: EventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite to SQLite, PostgreSQL to SQLite, and back to another experiment number."""
    known = filled(store)
    monkeypatch.setattr(reading, "PAGE", 4)
    monkeypatch.setattr("manyarms.store.upkeep._PAGE", 3)
    with open_store(tmp_path / "copy.db") as target:
        played(target, 1, "own")
        assert copy(store, target) == ["empty", "shop"]
        own = contents(target)
        own.pop("own")
        assert own == known
        assert all(not one.trouble for one in check(target))
        for one in store.experiments():
            store.delete(one.id)
        assert copy(target, store, ["shop"]) == ["shop"]
        assert contents(store) == {name: known[name] for name in ("shop", "tokens")}
        shop = store.find("shop")
        assert shop is not None
        store.commit([Append(shop.id, 11, asked(12))])


def test_a_copy_does_not_overwrite(store: EventStore, tmp_path: Path) -> None:
    filled(store)
    with open_store(tmp_path / "copy.db") as target:
        played(target, 2)
        known = contents(target)
        with pytest.raises(DuplicateNameError, match="has an experiment 'shop' already"):
            copy(store, target)
        with pytest.raises(UnknownNameError, match="Unknown experiment 'shap'. Did you mean"):
            copy(store, target, ["empty", "shap"])
        assert contents(target) == known


def test_a_damaged_experiment_is_not_copied(store: EventStore, tmp_path: Path) -> None:
    filled(store)
    with store.writing() as link:
        link.run("UPDATE events SET arm = 5 WHERE seq = 8")
    with open_store(tmp_path / "copy.db") as target:
        with pytest.raises(StoreDamagedError, match="event 8 was changed"):
            copy(store, target, ["shop"])
        assert target.experiments() == []


def test_backups(store: EventStore, tmp_path: Path) -> None:
    known = filled(store)
    path = tmp_path / "backup.db"
    with open_store(tmp_path / "old.db") as old:
        old.create("old", {})
        shutil.copy(f"{old}-wal".removeprefix("sqlite:///"), f"{path}-wal")  # as after a kill
    assert backup(store, path) == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    with open_store(path, create=False) as copied:
        assert contents(copied) == known
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="`path` must not exist"):
        backup(store, path)
    with pytest.raises(StoreError, match="cannot be copied"):
        backup(store, tmp_path / "nowhere" / "backup.db")
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.glob("*backup*")} == {"backup.db"}


# Opening and closing


def test_a_reader_writes_nothing(store: EventStore, address: str) -> None:
    number = played(store)
    with open_store(address, read_only=True) as reader:
        assert list(reader.events(number)) == asked(1, 2, 3, 4)
        for call in (
            lambda: reader.commit([Append(number, 4, asked(5))]),
            lambda: reader.create("x", {}),
            lambda: reader.save_snapshot(number, 4, "1", b""),
        ):
            with pytest.raises(StoreError, match="read-?only"):
                call()
    store.commit([Append(number, 4, asked(5))])


def test_a_closed_store(store: EventStore) -> None:
    number = played(store)
    store.close()
    store.close()
    for call in (lambda: store.commit([Append(number, 4, asked(5))]), store.experiments):
        with pytest.raises(StoreError, match="is closed. Open it again"):
            call()


@pytest.mark.parametrize("given", ["mysql://x:secret@host/y", "", ":memory:",
                                   ])  # fmt: skip
def test_invalid_addresses(given: str) -> None:
    with pytest.raises(ParameterError, match="`store` must be a path, sqlite:///PATH") as caught:
        open_store(given)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("options", ["?experiment=a/b", "?mode=ro&x=y", "?"])
def test_sqlite_addresses_take_no_options(options: str, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/shop.db{options}"
    with pytest.raises(ParameterError, match="SQLite addresses take none. Leave out") as caught:
        open_store(address)
    assert repr(address) in str(caught.value)
    assert repr(options) in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    open_store(tmp_path / "what?.db").close()
    assert (tmp_path / "what?.db").is_file()
