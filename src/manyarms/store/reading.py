"""Queries of a store that verify what they read."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from manyarms.errors import StoreDamagedError, StoreError, StoreUnavailableError
from manyarms.store.connection import Connection
from manyarms.store.records import (
    Event,
    ExperimentRecord,
    Snapshot,
    first_checksum,
    next_checksum,
)

PAGE = 5000  # events that one query reads


_COLUMNS = "SELECT id, name, spec, state, created FROM experiments WHERE"


def experiments(
    link: Connection, where: str = "name IS NOT NULL", *values: Any
) -> list[ExperimentRecord]:
    """Return experiments that are not being deleted, damaged ones included."""
    try:
        return [_record(link, *row) for row in link.run(f"{_COLUMNS} {where}", *values)]
    except StoreUnavailableError:
        raise
    except StoreError:  # a column that cannot be decoded; the other rows can be read
        numbers = link.run(f"SELECT id FROM experiments WHERE {where}", *values)
    records = []
    for (number,) in numbers:
        try:
            records.append(_record(link, *link.first(f"{_COLUMNS} id = ?", number)))
        except (StoreDamagedError, StoreUnavailableError):
            raise  # this concerns the whole store
        except StoreError as error:
            damage = f"Experiment {number} in {link} is damaged: {error}"
            records.append(ExperimentRecord(number, _name(link, number), {}, {}, 0.0, damage))
    return records


def _record(
    link: Connection, number: int, name: Any, spec: Any, state: Any, created: float
) -> ExperimentRecord:
    try:
        parsed = json.loads(spec), json.loads(state)
        if not all(isinstance(part, dict) for part in parsed) or not isinstance(name, str):
            raise TypeError("a column has another type")
        return ExperimentRecord(number, name, *parsed, created)
    except (TypeError, ValueError, RecursionError) as error:
        damage = (
            f"The settings of experiment {number} in {link} are damaged: {error}. Restore a backup."
        )
        shown = name if isinstance(name, str) else f"(experiment {number})"
        return ExperimentRecord(number, shown, {}, {}, created, damage)


def _name(link: Connection, number: int) -> str:
    try:
        (name,) = link.first("SELECT name FROM experiments WHERE id = ?", number)
    except StoreError:
        name = None
    return name if isinstance(name, str) else f"(experiment {number})"


def last_seq(link: Connection, experiment: int) -> int:
    """Return the number of the last event; 0 if there is none."""
    (last,) = link.first("SELECT max(seq) FROM events WHERE experiment = ?", experiment)
    return last or 0


def checksum_at(link: Connection, experiment: int, seq: int) -> int | None:
    """Return the checksum of an event, for 0 that of the settings; None if it is missing."""
    if seq == 0:
        row = link.first("SELECT spec FROM experiments WHERE id = ?", experiment)
        return row and first_checksum(row[0])
    row = link.first(
        "SELECT checksum FROM events WHERE experiment = ? AND seq = ?", experiment, seq
    )
    return row and int(row[0])


class Chain:
    """A reader that returns a log in pages and verifies its checksums.

    It returns the events before the first damaged one. Then `raise_damage` raises.
    """

    def __init__(self, place: str, link: Connection, experiment: int, after: int) -> None:
        self._place, self._experiment, self.seq = place, experiment, after
        self._damage = ""
        found = checksum_at(link, experiment, after)
        self._past_the_end = found is None and after > last_seq(link, experiment)
        if found is None and not self._past_the_end:
            what = f"event {after}" if after else "the experiment"
            self._damage = f"{what} is missing"
        self._check = found or 0

    def page(self, link: Connection, most: int = PAGE) -> list[Event]:
        """Return the next events, up to the first damaged one."""
        if self._damage or self._past_the_end:
            return []
        rows = link.run(
            "SELECT seq, at, kind, pull, arm, reward, detail, checksum FROM events "
            "WHERE experiment = ? AND seq > ? ORDER BY seq LIMIT ?",
            *(self._experiment, self.seq, most),
        )
        return list(self._verified(rows))

    def _verified(self, rows: list[Any]) -> Iterator[Event]:
        for *columns, found in rows:
            seq, at, kind, pull, arm, reward, detail = columns
            if seq != self.seq + 1:
                self._damage = f"event {self.seq + 1} is missing"
                return
            try:
                check = next_checksum(self._check, *columns)
                more = None if detail is None else json.loads(detail)
            except (struct.error, AttributeError, TypeError, ValueError, RecursionError):
                check, more = -1, None  # a column of another type, or a detail that is not JSON
            if check != found or not isinstance(more, dict | None):
                self._damage = f"event {seq} was changed after it was written"
                return
            self.seq, self._check = seq, check
            yield Event(seq, at, kind, pull, arm, reward, more)

    def raise_damage(self) -> None:
        """Raise if the log was found damaged."""
        if self._damage:
            raise StoreDamagedError(
                f"The log of experiment {self._experiment} in {self._place} is damaged: "
                f"{self._damage}. Restore a backup."
            )


def snapshot_seqs(link: Connection, experiment: int) -> list[int]:
    """Return the numbers of the events that have a snapshot, newest first."""
    rows = link.run(
        "SELECT seq FROM snapshots WHERE experiment = ? AND seq <= ? ORDER BY seq DESC",
        *(experiment, last_seq(link, experiment)),
    )
    return [seq for (seq,) in rows]


def snapshot(link: Connection, experiment: int, seq: int) -> Snapshot | str:
    """Return a snapshot, or a text that says what is wrong; empty if it was removed meanwhile."""
    row = link.first(
        "SELECT version, checksum, data FROM snapshots WHERE experiment = ? AND seq = ?",
        *(experiment, seq),
    )
    if row is None:
        return ""
    version, check, data = row
    if zlib.crc32(data) != check:
        return f"the snapshot of experiment {experiment} after event {seq} is damaged"
    return Snapshot(seq, version, bytes(data))
