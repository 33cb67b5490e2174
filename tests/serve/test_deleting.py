"""Experiments are deleted at once, and their rows in batches."""

from __future__ import annotations

from typing import Any

import pytest

from manyarms.store.schema import PIECES
from tests.serve.machines import call, in_thread, new_name, opened, path_of, row_of, wait

pytestmark = pytest.mark.interpreted


@pytest.mark.patient
def test_rows_are_deleted_in_batches(store: str) -> None:
    name = new_name()
    path = path_of(name)
    with in_thread(store) as one, opened(store) as other:
        assert call(one.port, "PUT", path, {"policy": "prospector"})[0] == 201
        names = "".join(f'"{k}"\n' for k in range(6000)).encode()
        kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
        assert call(one.port, "POST", f"{path}/arms", names, **kind)[0] == 200
        for k in range(3):
            asked: dict[str, Any] = {"Idempotency_Key": f"{k}"}
            assert call(one.port, "POST", f"{path}/asks", {"k": 500}, **asked)[0] == 200
        assert call(one.port, "DELETE", path)[1]["code"] == "not_stopped"
        assert call(one.port, "POST", f"{path}/stop")[0] == 200
        old = row_of(other, name).id
        assert call(one.port, "DELETE", path)[0] == 200
        assert call(one.port, "GET", path)[0] == 404
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 404
        # the name can be used again at once
        assert call(one.port, "PUT", path, {"policy": "moss", "n_arms": 5, "horizon": 9})[0] == 201
        assert call(one.port, "POST", f"{path}/asks", {"k": 2})[1]["pulls"][1]["pull"] == 1
        assert row_of(other, name).id != old

        def rows(table: str) -> int:
            with other.reading() as link:
                sql = f"SELECT count(*) FROM {table} WHERE experiment = ?"
                return int(link.first(sql, old)[0])

        wait(lambda: sum(map(rows, PIECES)) == 0)
        assert other.last_seq(row_of(other, name).id) == 2
