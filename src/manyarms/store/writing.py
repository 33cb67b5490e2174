"""Statements that insert rows within a transaction."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from manyarms.errors import DuplicateNameError
from manyarms.store.connection import Connection, UniqueError
from manyarms.store.records import Snapshot, check_name, digest_of

Arms = list[tuple[int, str, bytes]]


def named_arms(names: Iterable[tuple[int, str]]) -> Arms:
    """Check the names of arms, and return them with their digests."""
    arms = list(names)
    for _, name in arms:
        check_name(name)
    return [(number, name, digest_of(name)) for number, name in arms]


def insert_experiment(link: Connection, name: str, spec: str, state: str, created: float) -> int:
    """Insert an experiment within a transaction and return its number."""
    row = link.first(
        "INSERT INTO experiments (name, spec, state, created) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (name) DO NOTHING RETURNING id",
        *(name, spec, state, created),
    )
    if row is None:
        raise DuplicateNameError(
            f"There is an experiment {name!r} already. Continue that one, or choose another name."
        )
    return int(row[0])


def insert_arms(link: Connection, experiment: int, arms: Arms) -> None:
    """Insert arms within a transaction; raise a `DuplicateNameError` if a name exists."""
    seen: set[bytes] = set()
    for _, name, digest in arms:
        if digest in seen:
            raise DuplicateNameError(f"Arms must have different names; {name[:200]!r} is repeated.")
        seen.add(digest)
    try:
        link.insert("arms", [(experiment, *arm) for arm in arms])
    except UniqueError as error:
        raise DuplicateNameError(
            f"An arm of experiment {experiment} has one of these names or numbers already."
        ) from error


def insert_snapshot(link: Connection, experiment: int, one: Snapshot) -> None:
    """Insert a snapshot, or replace the one after the same event."""
    link.run(
        "INSERT INTO snapshots (experiment, seq, version, checksum, data) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (experiment, seq) DO UPDATE SET version = excluded.version, "
        "checksum = excluded.checksum, data = excluded.data",
        *(experiment, one.seq, one.version, zlib.crc32(one.data), one.data),
    )
