"""A backup that is restored: what was given out since then is refused, and does no harm."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from manyarms.live.databases import Batch, Database, LogRow
from manyarms.live.store import EventKind
from tests.serve.machines import InThread, call, in_thread, opened, row_of

PATH = "/v1/experiments/x"


def asked(one: InThread) -> dict[str, Any]:
    pull: dict[str, Any] = call(one.port, "POST", f"{PATH}/asks", {"tickets": True})[1]["pulls"][0]
    return pull


def told(one: InThread, ticket: str) -> dict[str, Any]:
    body = {"tells": [{"ticket": ticket, "reward": 1.0}]}
    result: dict[str, Any] = call(one.port, "POST", f"{PATH}/tells", body)[1]["results"][0]
    return result


@pytest.mark.patient
def test_tickets_of_the_lost_time_are_refused(tmp_path: Path) -> None:
    file, backup = tmp_path / "x.db", tmp_path / "backup.db"
    store = f"sqlite:///{file}"
    with in_thread(store) as one:
        assert call(one.port, "PUT", PATH, {"policy": "prospector", "n_arms": 1000})[0] == 201
        asked(one)
    shutil.copy(file, backup)
    with in_thread(store) as one:
        lost = asked(one)
    shutil.copy(backup, file)
    for rest in tmp_path.glob("x.db-*"):
        rest.unlink()
    with in_thread(store, restored=True) as one:
        again = asked(one)
        assert again["pull"] == lost["pull"], "its number is given out again"
        refused = told(one, lost["ticket"])
        assert (refused["status"], refused["code"]) == (410, "old_ticket")
        assert told(one, again["ticket"])["applied"] is True
    with in_thread(store) as one:  # once is enough: its tickets stay good
        assert "code" not in told(one, again["ticket"])


def test_a_node_of_the_lost_time_is_kept_out(tmp_path: Path) -> None:
    """One that still runs has an epoch and a head that the restored log may reach again."""
    with opened(f"sqlite:///{tmp_path}/x.db") as database:
        database.create("x", "{}", "running", "secret", n_arms=5)
        row = row_of(database, "x")
        stale = Batch(row.id, row.epoch + 1, 1, [LogRow(2, EventKind.ASKED, 1, 0, 0.0, 0.0)])
        database.after_restore()
        assert owned(database, "the new owner") > stale.epoch
        assert database.commit([Batch(row.id, owned(database, "a"), 0, [_event()])]) == [True]
        assert database.commit([stale]) == [False]


def _event() -> LogRow:
    return LogRow(1, EventKind.ASKED, 0, 0, 0.0, 0.0)


def owned(database: Database, who: str) -> int:
    row = row_of(database, "x")
    assert database.acquire("x", who, row.epoch)
    return row.epoch + 1
