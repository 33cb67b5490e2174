"""A backup that is restored: what was given out since then is refused, and does no harm."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from manyarms.serve import tables
from tests.serve.machines import InThread, call, in_thread, new_name, opened

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


def test_a_leader_of_the_lost_time_is_kept_out(store: str) -> None:
    """One that still runs has a head that the restored log may reach again: it loads anew."""
    path = f"/v1/experiments/{new_name()}"
    with in_thread(store) as one:
        assert call(one.port, "PUT", path, {"n_arms": 50})[0] == 201
        first = call(one.port, "POST", f"{path}/asks", {"tickets": True})[1]["pulls"][0]
        with opened(store) as database:
            tables.after_restore(database)
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["code"]) == (503, "unknown")
        one.wait_until_ready()
        status, answer = call(one.port, "POST", f"{path}/asks", {}, Idempotency_Key="k")
        assert (status, answer["pulls"][0]["pull"]) == (200, 1)
        tell = {"tells": [{"ticket": first["ticket"], "reward": 1.0}]}
        refused = call(one.port, "POST", f"{path}/tells", tell)[1]["results"][0]
        assert (refused["status"], refused["code"]) == (410, "old_ticket")
