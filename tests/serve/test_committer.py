"""A database that does not answer: nothing is done twice, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.committer import Answers, Committer, Forming
from manyarms.serve.owned import Owned

from manyarms.live.databases import Batch, LogRow, UnreachableError, database_of
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve import committer as module
from manyarms.serve import node
from manyarms.serve.game import Game
from tests.serve.machines import (
    InThread,
    call,
    in_thread,
    new_name,
    opened,
    row_of,
    shared_postgres,
)

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]
PATH = "/v1/experiments/x"


def test_a_server_without_a_free_connection_is_waited_for() -> None:
    base = shared_postgres()
    database = database_of(base)
    database.open()
    database.run("CREATE ROLE narrow LOGIN CONNECTION LIMIT 0")
    try:
        with pytest.raises(UnreachableError, match="too many connections"):
            database_of(base.replace("//postgres@", "//narrow@")).open()
    finally:
        database.run("DROP ROLE narrow")
        database.close()


def test_opening_a_file_once_more_takes_no_locks_away(tmp_path: Path) -> None:
    """Or another process, when it closes the file, would delete the log that is in use here."""
    first, second = (SQLite(tmp_path / "x.db") for _ in range(2))
    first.open()
    second.open()
    words = f"import sqlite3; sqlite3.connect({str(first.path)!r}).execute('SELECT * FROM tokens')"
    subprocess.run([sys.executable, "-c", words], check=True)
    assert (tmp_path / "x.db-wal").exists()
    first.close()
    second.close()


class Faults:
    """What goes wrong with the next commits that hold events."""

    def __init__(self) -> None:
        self.next: list[str] = []
        self.away = False

    def wrap(self, commit: Callable[..., list[bool]]) -> Callable[..., list[bool]]:
        def faulty(database: SQLite, batches: Sequence[Batch]) -> list[bool]:
            if self.away:
                raise UnreachableError("away")
            what = self.next.pop(0) if self.next and any(b.events for b in batches) else ""
            if what == "mistake":
                raise ZeroDivisionError
            if what == "refused":
                raise UnreachableError("refused")
            stood = commit(database, batches)
            if what == "answer lost":
                raise UnreachableError("lost")
            return stood

        return faulty


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    one = Faults()
    monkeypatch.setattr(SQLite, "commit", one.wrap(SQLite.commit))
    return one


@pytest.fixture
def served(faults: Faults, tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/x.db?sync=never") as one:
        assert call(one.port, "PUT", PATH, {"n_arms": 50})[0] == 201
        yield one


def ask(served: InThread, **headers: Any) -> tuple[int, Any]:
    return call(served.port, "POST", f"{PATH}/asks", {}, **headers)


@pytest.mark.parametrize("fault", ["refused", "answer lost"])
def test_a_group_is_sent_again_and_counts_once(
    served: InThread, faults: Faults, fault: str
) -> None:
    for turn in range(3):
        faults.next = [fault, fault]
        status, answer = ask(served)
        assert status == 200
        assert answer["pulls"][0]["pull"] == turn
    assert call(served.port, "GET", PATH)[1]["head"] == 3


def test_a_mistake_of_ours_ends_nothing(served: InThread, faults: Faults) -> None:
    assert ask(served)[0] == 200
    faults.next = ["mistake"]
    status, answer = ask(served, Idempotency_Key="k")  # it is loaded anew, and tried again
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_while_the_database_is_away(
    served: InThread, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNKNOWN_AFTER", 0.4)
    assert ask(served)[0] == 200
    faults.away = True
    heard: list[tuple[int, Any]] = []
    waiting = threading.Thread(target=lambda: heard.append(ask(served, Idempotency_Key="k")))
    begun = time.monotonic()
    waiting.start()
    time.sleep(0.2)
    status, answer = ask(served)  # at once: nothing was done
    assert (status, answer["code"]) == (503, "unavailable")
    assert call(served.port, "GET", "/readyz", token=None)[0] == 503
    assert call(served.port, "GET", "/healthz", token=None)[0] == 200
    waiting.join(20)
    assert time.monotonic() - begun < 10
    assert (heard[0][0], heard[0][1]["code"]) == (503, "unknown")
    faults.away = False
    end = time.monotonic() + 20
    while call(served.port, "GET", "/readyz", token=None)[0] != 200 and time.monotonic() < end:
        time.sleep(0.05)
    status, answer = ask(served, Idempotency_Key="k")  # what was unknown is settled by a retry
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)
    assert call(served.port, "GET", PATH)[1]["pulls"] == 2


def test_a_node_that_ends_while_the_database_is_away(
    served: InThread, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNKNOWN_AFTER", 0.2)
    monkeypatch.setattr(node, "_ENDING", 0.2)
    assert ask(served)[0] == 200
    faults.away = True
    assert ask(served)[0] == 503
    begun = time.monotonic()
    served.stop()
    assert time.monotonic() - begun < 25


def test_a_policy_that_fails_midway(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handle is half changed: it is loaded anew, and what was acknowledged is there."""
    from manyarms.live.game import LiveGame

    assert ask(served)[0] == 200
    asked = LiveGame.ask

    def fails(game: LiveGame) -> Any:
        asked(game)
        raise ZeroDivisionError

    monkeypatch.setattr(LiveGame, "ask", fails)
    status, answer = ask(served)
    assert (status, answer["code"]) == (500, "policy")
    monkeypatch.setattr(LiveGame, "ask", asked)
    status, answer = ask(served)
    assert (status, answer["pulls"][0]["pull"]) == (200, 1)


def test_a_window_that_ends_while_the_node_does(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last snapshot holds what was committed, and nothing that came later."""
    path = "/v1/experiments/timed"
    assert call(served.port, "PUT", path, {"n_arms": 50, "window": 1.5})[0] == 201
    assert call(served.port, "POST", f"{path}/asks", {})[0] == 200
    ends = time.monotonic() + 1.5
    snapshot = Owned.snapshot

    def slow(owned: Owned) -> tuple[bytes, bytes]:
        time.sleep(max(0.0, ends + 0.3 - time.monotonic()))
        return snapshot(owned)

    monkeypatch.setattr(Owned, "snapshot", slow)
    served.stop()
    with opened(served.store) as database:
        row = row_of(database, "timed")
        game = Game.load(database, row)
        assert game.live is not None
        assert (row.head, list(game.waiting), list(game.live.flight)) == (1, [0], [0])

        # a snapshot that does not fit the log is passed over
        state, more = game.snapshot()
        database.run(
            "UPDATE snapshots SET more = :more WHERE experiment = :x",
            more=more.replace(b"waiting", b"wanting"),
            x=row.id,
        )
        assert Game.load(database, row).snapshot() == (state, more)


def test_a_batch_that_cannot_be_committed_takes_no_other_with_it(store: str) -> None:
    committer = Committer(store, lambda owned: None)
    database = committer.database
    database.open()
    batches = []
    for keys in ([], [("k", 0, 1, None, "", None, 0.0)] * 2):  # one key cannot be there twice
        name = new_name()
        database.create(name, "{}", "running", "secret", n_arms=9)
        row = row_of(database, name)
        batches.append(Batch(row.id, 0, 0, [LogRow(1, 1, 0, 0, 0.0, 0.0)], keys))
    assert committer._stood(batches) == [True, False]
    heads = database.heads([batch.experiment for batch in batches])
    assert [heads[batch.experiment][1] for batch in batches] == [1, 0]
    database.close()


def test_a_key_is_known_as_long_as_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/x.db?sync=never"
    keys = [f"k{k}" for k in range(5)]
    with in_thread(url) as one:
        assert call(one.port, "PUT", PATH, {})[0] == 201
        arms = {"keys": [f"arm {k}" for k in range(50)]}
        assert call(one.port, "POST", f"{PATH}/arms", arms)[0] == 200
        given = [ask(one, Idempotency_Key=key) for key in keys]
        assert [status for status, _ in given] == [200] * 5
        told = {"tells": [{"pull": k, "reward": 1.0} for k in (0, 4)]}  # whose arms are named, too
        assert call(one.port, "POST", f"{PATH}/tells", told)[0] == 200
        assert call(one.port, "POST", f"{PATH}/asks", {"worker": "a\0b"})[0] == 422
    with opened(url) as database:
        database.run("UPDATE ask_keys SET at = at - 30 * 3600")
    monkeypatch.setattr(node, "_FIRST_KEYS", 2)  # the others are found, and then recalled
    recalled = threading.Event()
    recall = Owned.recall

    def noted(owned: Owned, older: Any) -> None:
        assert (len(owned.keys), owned.all_keys, len(older)) == (2, False, 5)
        recall(owned, older)
        assert (list(owned.keys), owned.all_keys) == (keys, True)
        recalled.set()

    monkeypatch.setattr(Owned, "recall", noted)
    with in_thread(url) as one:
        assert [ask(one, Idempotency_Key=key) for key in keys] == given
        assert recalled.wait(20)
        assert [ask(one, Idempotency_Key=key) for key in keys] == given
        assert ask(one)[1]["pulls"][0]["pull"] == 5


def test_keys_of_arms_come_with_the_commit(store: str) -> None:
    committer = Committer(store, lambda owned: None)
    database = committer.database
    database.open()
    name = new_name()
    database.create(name, "{}", "running", "secret", keyed=1, n_arms=9)
    row = row_of(database, name)
    keys = {0: 'a"\\', 5: "\U0001f600\u2028", 7: "plain"}
    database.add_arms(row.id, 0, keys.items())

    async def answered() -> Answers:
        batch = Batch(row.id, 0, 0, [LogRow(1, 1, 0, 0, 0.0, 0.0)], unnamed={0, 5, 7})
        assert committer._stood([batch]) == [True]
        forming = Forming(batch, asyncio.get_running_loop().create_future())
        return committer._answer(forming)

    assert asyncio.run(answered()).names == keys
    database.close()


def test_what_cannot_be_audited_is_done_all_the_same(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away between the commit and the audit: sent again, arms would double."""

    def away(*arguments: Any) -> None:
        raise UnreachableError("away")

    monkeypatch.setattr(SQLite, "note", away)
    assert call(served.port, "POST", f"{PATH}/arms", {"count": 5}) == (
        200,
        {"added": 5, "n_arms": 55},
    )
    for method, path in (
        ("DELETE", "/arms/7"),
        ("POST", "/pause"),
        ("POST", "/stop"),
        ("DELETE", ""),
    ):
        assert call(served.port, method, f"{PATH}{path}")[0] == 200, path
