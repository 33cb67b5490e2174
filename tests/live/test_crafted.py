"""Snapshots and logs that manyarms did not write raise only the package's errors."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.packing import pack, unpack
from manyarms.live.snapshots import join_parts, split_parts
from manyarms.policies import field
from manyarms.store import Event
from tests.fixed import Fixed
from tests.helpers import label
from tests.inference.random_events import in_turn
from tests.live.crafted import (
    crafted_bytes,
    crafted_events,
    inflating_bytes,
    opened,
    opened_and_played,
    played,
    replayed,
)
from tests.live.stores import copied, known


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(), field.UCB1()], ids=label)
def test_wrong_numbers_in_a_snapshot(policy: ma.Policy) -> None:
    live = played(policy)
    assert opened_and_played(partial(opened, live, known(live))) == "played"
    counts: Counter[str] = Counter()
    for crafted in crafted_bytes(known(live), one_in=40, seed=len(str(policy))):
        counts[opened_and_played(partial(opened, live, crafted), seconds=1.0)] += 1
    assert counts["refused"] > 5
    assert counts.total() > 12


def test_wrong_events_in_a_log() -> None:
    counts: Counter[str] = Counter()
    for seed, policy in enumerate([ma.MOSS(), ma.MOSSPlusPlus(), field.UCB1()]):
        live = played(policy, moves=False)
        before = copied(live)
        events: list[Event] = []
        live._experiment.log = events
        in_turn(live, 30)
        chance = random.Random(seed)
        for _ in range(60):
            make = partial(replayed, before, crafted_events(chance, events))
            counts[opened_and_played(make)] += 1
    assert counts["refused"] > 100
    assert counts["stopped"] == counts["hung"] == 0


def _columns(data: bytes, **changes: Any) -> bytes:
    ledger, search = split_parts(data)
    about, columns = unpack(search, "it")
    for name in columns:
        for ending, change in changes.items():
            if name.endswith(ending.replace("__", "/")):
                columns[name] = change(columns[name].copy())
    return join_parts(ledger, pack(about, columns))


def test_an_error_that_appears_later_is_refused_then() -> None:
    live = played(ma.MOSS(), moves=False)
    data = _columns(known(live), slot__pulls=lambda pulls: pulls * 0 - 1)
    live = opened(live, data)
    with pytest.raises(ma.SavedFileError, match="`tell_many` was interrupted .* Use another"):
        live.tell_many((pull, 1.0) for pull in live.pending)
    with pytest.raises(ma.TurnError, match="`tell_many` was interrupted"):
        live.progress()


# Snapshots that inflate to a large size


@pytest.mark.patient
def test_a_small_snapshot_does_not_become_a_large_one() -> None:
    live = played(ma.MOSS())
    for data in inflating_bytes():
        with pytest.raises(ma.SavedFileError, match="was not written by manyarms: .*inflate to"):
            opened(live, data)


@pytest.mark.long
@pytest.mark.slow
def test_a_snapshot_that_is_nearly_all_zeros_can_be_read(tmp_path: Path) -> None:
    live = Fixed(arm=0).live(n_arms=1, now=lambda: 0.0)
    for _ in range(10):
        live.ask(100_000)
    data = known(live)
    whole = len(zlib.decompress(data))
    assert whole > 32 << 20
    assert len(data) > whole / 16
    assert opened(live, data).pulls == 1_000_000
