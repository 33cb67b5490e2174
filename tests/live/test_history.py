"""What happened: event by event, as a table, and from files that were compacted or crafted."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.live.databases import store_of
from manyarms.live.journal_file import read_file
from manyarms.live.store import Contents, Event, EventKind, Events
from tests.inference.games import new
from tests.live.crafted import crafted_events, journal_of
from tests.live.test_going_on import play_on
from tests.serve.machines import shared_postgres


def _shown(live: ma.Live) -> list[tuple[Any, ...]]:
    return [event[1:4] for event in live.events()]


def _stores(folder: Path) -> list[Any]:
    return [
        ma.InMemory(),
        ma.Journal(folder / "a", sync="never", history=True),
        ma.Journal(folder / "b", sync="never", history=True, compact_every=40),
        store_of(f"sqlite:///{folder}/c.db?sync=never"),
        store_of(f"{shared_postgres()}?experiment={folder.name}"),
    ]


@pytest.mark.patient
@pytest.mark.parametrize("named", [True, False])
def test_all_stores_tell_the_same_story(named: bool, tmp_path: Path) -> None:
    arms: Any = {"arms": [f"item {k}" for k in range(30)]} if named else {"n_arms": 30}
    stories, tables = [], []
    for store in _stores(tmp_path):
        live = ma.recorded(store, ma.MOSS().live(horizon=900, seed=4, **arms))
        begun = time.time()
        play_on(live, 100)
        live.compact()
        if named:
            live.retire("item 3")
            live.sync_arms(f"item {k}" for k in (0, 3, *range(5, 40)))  # all in one call
        play_on(live, 100)
        history = live.events()
        assert history.complete
        stories.append(_shown(live))
        assert {"added", "retired"} <= {row[0] for row in stories[-1]}
        table = history.table()
        known = table["asked"]
        assert ((known > begun - 0.01) & (known < time.time() + 0.01)).all()
        assert (np.diff(known) >= -0.002).all()
        told = dict(zip(table["pull"].tolist(), table["end"].tolist(), strict=True))
        assert [pull.id for pull in live.pending] == [p for p, e in told.items() if e == "pending"]
        tables.append({name: table[name].tolist() for name in ("pull", "arm", "end")})
        assert np.nansum(table["reward"]) == live.progress().reward
        live.close()
    assert all(story == stories[0] for story in stories)
    assert all(table == tables[0] for table in tables)
    assert len(list(tmp_path.glob("b.0*"))) > 2
    for name in ("a", "b"):  # from the file alone
        assert [row[1:4] for row in ma.Journal(tmp_path / name).events()] == stories[0]


def test_a_journal_without_history_knows_what_came_since_it_was_compacted(tmp_path: Path) -> None:
    with ma.recorded(tmp_path / "game", new()) as live:
        first = live.ask()
        live.compact()
        second = live.ask()
        live.tell(first, 1.0)
        history = live.events()
    assert not history.complete
    assert repr(history) == "<GameHistory of 2 events, from pull 1 on>"
    assert [row[1:4] for row in history] == [("asked", 1, second.arm), ("told", 0, first.arm)]
    table = history.table()
    assert table["pull"].tolist() == [0, 1]
    assert np.isnan(table["asked"]).all()
    assert table["reward"].tolist()[0] == 1.0
    with pytest.raises(ma.TurnError, match="Cannot list events: this handle keeps none"):
        new().events()
    with pytest.raises(ma.PathNotFoundError):
        ma.Journal(tmp_path / "none").events()


def test_a_kill_within_a_compaction_tells_nothing_twice(tmp_path: Path) -> None:
    journal = ma.Journal(tmp_path / "game", history=True)
    with ma.recorded(journal, new()) as live:
        play_on(live, 30)
        story = _shown(live)
    (tmp_path / "game.000001").hardlink_to(tmp_path / "game")  # and then it was killed
    with ma.recorded(journal) as live:
        assert _shown(live) == story
        live.compact()
        live.ask()
        assert len(_shown(live)) == len(story) + 1
    assert (tmp_path / "game.000001").exists()


def test_what_was_dropped_once_is_not_bridged(tmp_path: Path) -> None:
    """A journal with history of which somebody has removed a part."""
    live = ma.recorded(ma.Journal(tmp_path / "game", history=True, compact_every=5), new())
    live.ask(40)
    for pull in live.pending[:39]:
        live.tell(pull, 1.0)
    live.close()
    *_, last = sorted(tmp_path.glob("game.0*"))
    last.unlink()
    with ma.recorded(ma.Journal(tmp_path / "game", history=True)) as live:
        told = live.pending[0]
        live.tell(told, 1.0)
        history = live.events()
        assert not history.complete
        assert [row[1:3] for row in history][-1:] == [("told", told.id)]
        assert len(history) < 5


def test_tables_for_others(tmp_path: Path) -> None:
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("polars")
    live = ma.recorded(ma.InMemory(), ma.MOSS().live(arms=["a", 7], horizon=9, seed=1))
    first, second, third = live.ask(3)
    live.tell(second, 0.5)
    live.abandon(third)
    history = live.events()
    frame = history.to_dataframe()
    assert frame.columns.tolist() == ["pull", "arm", "asked", "reward", "told", "end"]
    assert abs(frame["asked"][0].timestamp() - time.time()) < 60
    assert frame["asked"][0].tzinfo is not None
    assert pandas.isna(frame["told"][0])
    other = history.to_dataframe(library="polars")
    assert other["asked"][0] == frame["asked"][0]
    assert other["told"][0] is None
    history.to_parquet(tmp_path / "log.parquet")
    read = parquet.read_table(tmp_path / "log.parquet").to_pydict()
    assert read["arm"] == [str(pull.arm) for pull in (first, second, third)]
    assert read["reward"] == [None, 0.5, None]
    assert read["told"][0] is None
    assert read["asked"][0].tzinfo is not None
    assert read["end"] == ["pending", "told", "abandoned"]


def test_crafted_histories_are_refused_or_read(tmp_path: Path) -> None:
    store = ma.Journal(tmp_path / "game", sync="never", history=True)
    with ma.recorded(store, new(n_arms=40)) as live:
        saved = live.to_bytes()
        play_on(live, 120)
    held, _, _ = read_file((tmp_path / "game").read_bytes(), "it")
    log = [Event(*row) for row in zip(*(c.tolist() for c in held.events[:4]), strict=True)]
    refused = 0
    for seed in range(150):
        events = crafted_events(random.Random(seed), log)
        (tmp_path / "crafted").write_bytes(journal_of(held.snapshot, events))
        try:
            history = ma.Journal(tmp_path / "crafted").events()
        except ma.SavedFileError:
            refused += 1
            continue
        assert len(list(history)) == len(events)
        assert set(history.table()) == {"pull", "arm", "asked", "reward", "told", "end"}
        assert sum(map(len, history.rewards().values())) >= 0
    assert 30 < refused < 150
    for event in (
        Event(EventKind.OBSERVED, -1, 99, 1.0),
        Event(EventKind.TOLD, 5, 0, 1.0),
        Event(EventKind.ASKED, 0, -1),
    ):
        with pytest.raises(ma.SavedFileError, match="contradicts itself"):
            ma.GameHistory([Contents(saved, Events.of([event]))])


def test_a_journal_with_a_history_keeps_it_whoever_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "game"
    with ma.recorded(ma.Journal(path, history=True), ma.MOSS().live(n_arms=9, horizon=99)) as live:
        live.tell(live.ask(), 1.0)
    with ma.recorded(path, ma.MOSS().live(n_arms=9, horizon=99)) as live:
        live.tell(live.ask(), 0.0)
        live.compact()
    events = ma.Journal(path).events()
    assert [event.what for event in events] == ["asked", "told", "asked", "told"]
