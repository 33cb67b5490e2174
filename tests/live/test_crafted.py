"""Files that manyarms did not write, with a right checksum: whatever they say, no raw error."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.saving import pack, unpack
from manyarms.policies import field
from tests.helpers import label
from tests.inference.games import in_turn
from tests.live.crafted import (
    crafted_bytes,
    crafted_events,
    inflating_bytes,
    journal_of,
    opened_and_played,
    saved,
)
from tests.live.stores import on_shelf


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(), field.UCB1()], ids=label)
def test_every_number_of_a_saved_handle_may_be_wrong(policy: ma.Policy) -> None:
    data = saved(policy)
    assert opened_and_played(data) == "played"
    counts: Counter[str] = Counter()
    for crafted in crafted_bytes(data, one_in=40, seed=len(policy.label)):
        counts[opened_and_played(crafted, seconds=1.0)] += 1
    assert counts["refused"] > 5
    assert counts.total() > 12


def test_every_event_of_a_journal_may_be_wrong() -> None:
    counts: Counter[str] = Counter()
    for seed, policy in enumerate([ma.MOSS(), ma.MOSSPlusPlus(), field.UCB1()]):
        live = ma.Live.from_bytes(saved(policy, moves=False))
        snapshot, log = on_shelf(live)
        in_turn(live, 30)
        chance = random.Random(seed)
        for _ in range(60):
            data = journal_of(snapshot, crafted_events(chance, log))
            counts[opened_and_played(data)] += 1
    assert counts["refused"] > 100
    assert counts["stopped"] == counts["hung"] == 0


def _columns(data: bytes, **changes: Any) -> bytes:
    about, columns = unpack(data, "it")
    for name in columns:
        for ending, change in changes.items():
            if name.endswith(ending.replace("__", "/")):
                columns[name] = change(columns[name].copy())
    return pack(about, columns)


def test_what_shows_only_later_is_refused_then() -> None:
    data = _columns(saved(ma.MOSS(), moves=False), slot__pulls=lambda pulls: pulls * 0 - 1)
    live = ma.Live.from_bytes(data)
    with pytest.raises(ma.SavedFileError, match="`tell_many` ended midway .* Use another"):
        live.tell_many((pull, 1.0) for pull in live.pending)
    with pytest.raises(ma.TurnError, match="`tell_many` ended midway"):
        live.progress()


# What a file inflates to


@pytest.mark.patient
def test_a_small_file_does_not_become_a_large_one() -> None:
    for data in inflating_bytes():
        with pytest.raises(ma.SavedFileError, match="was not written by manyarms: .*inflate to"):
            ma.Live.from_bytes(data)


@pytest.mark.long
@pytest.mark.slow
def test_a_handle_that_is_nearly_all_zeros_can_be_read(tmp_path: Path) -> None:
    live = field.Best(arm=0).live(n_arms=1)
    for _ in range(10):
        live.ask(100_000)
    live.save(tmp_path / "game")
    whole = struct.unpack_from("<Q", live.to_bytes(), 44)[0]
    assert whole > 32 << 20
    assert (tmp_path / "game").stat().st_size > whole / 16
    assert ma.Live.load(tmp_path / "game").pulls == 1_000_000
