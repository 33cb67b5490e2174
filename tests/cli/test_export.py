"""`manyarms export` writes all that was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.cli.main import main

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("file", ["events.csv", "events.parquet"])
def test_every_reward_is_exported(file: str, tmp_path: Path) -> None:
    """Also observed rewards, and defaults of expired pulls."""
    store, time = tmp_path / "shop.db", [1e9]
    given: Any = {"arms": ["red", "blue"], "seed": 1, "window": 60, "missing": 0.25}
    with ma.Prospector().live(store=store, name="shop", now=lambda: time[0], **given) as live:
        live.observe("blue", [0.5, 1.0])
        live.observe(counts={"red": (9, 4)})
        told, expired, abandoned = live.ask(3)
        live.tell(told, 0.75)
        live.abandon(abandoned)
        time[0] += 61
        live.season()
        events = list(live.events())
        assert live.progress().told == 2
    target = tmp_path / file
    assert main(["export", f"sqlite:///{store}", str(target), "--experiment", "shop"]) == 0
    rows = (pd.read_csv if file.endswith("csv") else pd.read_parquet)(target).to_dict("records")
    assert len(rows) == len(events)
    observed = [row for row in rows if row["kind"] == "observed"]
    assert [row["reward"] for row in observed[:2]] == [0.5, 1.0]
    assert json.loads(observed[2]["detail"]) == {"counts": [[0, 9, 4.0, 4.0]]}
    rewards = {row["pull"]: (row["kind"], row["arm"], row["reward"]) for row in rows}
    assert rewards[told.id] == ("told", told.arm, 0.75)
    assert rewards[expired.id] == ("expired", expired.arm, 0.25)
    assert rewards[abandoned.id][:2] == ("abandoned", abandoned.arm)
    for row, event in zip(rows, events, strict=True):
        assert (row["seq"], row["at"], row["kind"]) == (event.seq, event.at, event.kind)
        assert (row["reward"] == event.reward) or (pd.isna(row["reward"]) and event.reward is None)
