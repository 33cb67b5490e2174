"""What an import that failed has left is deleted bit by bit, so that others have their turn."""

from __future__ import annotations

from typing import Any

import pytest
from manyarms.live.databases import Database

from manyarms.serve import cleaning, importing, tables
from tests.serve.machines import call, in_thread, new_name, opened, row_of


@pytest.mark.patient
@pytest.mark.interpreted
def test_what_an_import_leaves_is_deleted_bit_by_bit(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []
    drop = tables.drop_unpublished

    def noted(database: Database, experiment: int, begin: int, end: int) -> None:
        drop(database, experiment, begin, end)
        dropped.append(end - begin)

    monkeypatch.setattr(tables, "drop_unpublished", noted)
    for module in (cleaning, importing):
        monkeypatch.setattr(module, "SOME_ARMS", 200)
    name = new_name()
    path = f"/v1/experiments/{name}"
    kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
    keys = "".join(f'"{k}"\n' for k in range(2_000)).encode()
    with in_thread(store) as one, opened(store) as database:
        assert call(one.port, "PUT", path, {"policy": "prospector"})[0] == 201
        assert call(one.port, "POST", f"{path}/arms", {"names": ["a", "b"]})[0] == 200
        wrong = keys + b" " * 200_000 + b"no JSON\n"  # which comes in several pieces
        status, answer = call(one.port, "POST", f"{path}/arms", wrong, **kind)
        assert (status, answer["code"]) == (422, "invalid")
        status, answer = call(one.port, "POST", f"{path}/arms", keys, **kind)  # waits for the rest
        assert (status, answer["n_arms"]) == (200, 2_002)
        assert dropped == [200] * 10
        row = row_of(database, name)
        tables.add_arms(database, row.id, [(2_002 + k, f"left {k}") for k in range(2_000)])
    dropped.clear()
    with in_thread(store) as one:  # as after a kill
        assert call(one.port, "POST", f"{path}/asks", {})[0] == 200
        status, answer = call(one.port, "POST", f"{path}/arms", {"names": ["left 1999"]})
        assert (status, answer["n_arms"]) == (200, 2_003)
        assert dropped == [200] * 10
