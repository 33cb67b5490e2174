"""Stores for tests, and copies of handles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import manyarms as ma
from manyarms.live.arms import ArmNames, ArmNumbers
from manyarms.live.calls import Context
from manyarms.live.snapshots import join_parts, restored, snapshot, split_parts
from tests.store.servers import new_address

__all__ = ["ADDRESSES", "copied", "known", "leave", "shared_postgres"]

shared_postgres = functools.cache(new_address)

ADDRESSES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"{folder}/shop.db",
    "postgres": lambda folder: shared_postgres(),
}


def known(live: ma.Live) -> bytes:
    """Return a handle's state; equal handles give equal bytes, whatever was logged before."""
    _, ledger, search = split_parts(snapshot(live._experiment))
    return join_parts(0, ledger, search)


def copied(live: ma.Live) -> ma.Live:
    """Return a copy of a handle, without a store."""
    ours, arms = live._experiment, live._context.arms
    experiment = restored(
        ours.settings, snapshot(ours), "the copy", policy=ours.policy, now=ours.now
    )
    names = ArmNames(arms.names) if isinstance(arms, ArmNames) else ArmNumbers(arms.count)
    return ma.Live._of(Context(experiment, names))


def leave(live: ma.Live) -> None:
    """Leave the store as after a kill, without a last snapshot."""
    recording = live._recorder._recording
    assert recording is not None
    live._recorder._recording = None
    recording.store.close()
