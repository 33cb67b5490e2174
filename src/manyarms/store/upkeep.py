"""Backups, checks, and copies from one store to another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from manyarms.errors import (
    DuplicateNameError,
    ParameterError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
    UnknownNameError,
)
from manyarms.store import reading, writing
from manyarms.store.connection import Connection, Options
from manyarms.store.event_store import EventStore
from manyarms.store.records import ExperimentRecord, Snapshot, Token, digest_of, stored
from manyarms.store.sqlite import SQLiteConnection, make_replaceable

_PAGE = 20_000  # rows that one query reads


class Checked(NamedTuple):
    """The result of checking one experiment; `trouble` is empty if everything is intact."""

    name: str
    events: int
    trouble: str


def check(store: EventStore) -> Iterator[Checked]:
    """Verify the checksums of every experiment's events, names and snapshots."""
    for record in store.experiments():
        events, trouble = 0, record.damage
        if trouble:
            yield Checked(record.name, 0, trouble)
            continue
        try:
            for _ in store.events(record.id):
                events += 1
            trouble = _check_rest(store, record.id)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            trouble = str(error)
        yield Checked(record.name, events, trouble)


def _check_rest(store: EventStore, experiment: int) -> str:
    """Return what is wrong with names or snapshots; empty if nothing is."""
    with store.reading() as link:
        for rows in _pages(link, "arms", "number", "name, digest", experiment):
            for number, name, digest in rows:
                if digest_of(name) != digest:
                    return f"The name of arm {number} was changed after it was written."
        for seq in reading.snapshot_seqs(link, experiment):
            found = reading.snapshot(link, experiment, seq)
            if isinstance(found, str) and found:
                return f"Events are intact; {found}. It is not used."
    return ""


def _pages(
    link: Connection, table: str, column: str, others: str, experiment: int
) -> Iterator[list[Any]]:
    """Yield the rows of an experiment in pages, sorted by a column."""
    rows = link.run(
        f"SELECT {column}, {others} FROM {table} WHERE experiment = ? ORDER BY {column} LIMIT ?",
        *(experiment, _PAGE),
    )
    while rows:
        yield rows
        rows = link.run(
            f"SELECT {column}, {others} FROM {table} WHERE experiment = ? AND {column} > ? "
            f"ORDER BY {column} LIMIT ?",
            *(experiment, rows[-1][0], _PAGE),
        )


def copy(source: EventStore, target: EventStore, names: Sequence[str] | None = None) -> list[str]:
    """Copy experiments with their arms, events, snapshots and answered requests.

    Each experiment is copied as a whole or not at all. Events that are written during the copy are
    not copied, so stop all writers first.

    Parameters
    ----------
    source, target
        The stores.
    names
        The experiments (default: all of them, and the tokens of the service).

    Returns
    -------
    list of str
        The names of the experiments that were copied.
    """
    with source.reading() as link, link.unchanging():
        found = {one.name: one for one in reading.experiments(link)}
        for name in names or ():
            if name not in found:
                raise UnknownNameError("experiment", name, found)
        wanted = sorted(found) if names is None else list(dict.fromkeys(names))
        for name in wanted:
            if found[name].damage:
                raise StoreDamagedError(f"{found[name].damage} Nothing was copied.")
        for name in wanted:
            if target.find(name) is not None:
                raise DuplicateNameError(
                    f"{target} has an experiment {name!r} already. Delete it there, or leave it "
                    f"out. Nothing was copied."
                )
        for name in wanted:
            _copy_experiment(str(source), link, target, found[name])
        if names is None:
            _copy_tokens(link, target)
    return wanted


def _copy_experiment(
    place: str, source: Connection, target: EventStore, record: ExperimentRecord
) -> None:
    old = record.id
    (spec, state) = source.first("SELECT spec, state FROM experiments WHERE id = ?", old)
    with target.writing() as link, link.transaction():
        new = writing.insert_experiment(link, record.name, spec, state, record.created)
        for rows in _pages(source, "arms", "number", "name, digest", old):
            link.insert("arms", [(new, *row) for row in rows])
        chain = reading.Chain(place, source, old, 0)
        check = reading.checksum_at(source, old, 0) or 0
        while events := chain.page(source):
            rows = []
            for event in events:
                row = stored(event, new, check)
                check = row[-1]
                rows.append(row)
            link.insert("events", rows)
        chain.raise_damage()
        for seq in reading.snapshot_seqs(source, old):
            found = reading.snapshot(source, old, seq)
            if isinstance(found, Snapshot):
                writing.insert_snapshot(link, new, found)
        for rows in _pages(source, "requests", "key", "digest, answer, at", old):
            link.insert("requests", [(new, *row) for row in rows])


def _copy_tokens(source: Connection, target: EventStore) -> None:
    for row in source.run("SELECT name, role, hash, created, expires FROM tokens"):
        with contextlib.suppress(DuplicateNameError):  # the target's own token stays
            target.add_token(Token(*row))


def backup(store: EventStore, path: str | os.PathLike[str]) -> int:
    """Write everything that is committed to a new SQLite file; return its size (bytes).

    Other processes may write meanwhile. An existing file is not replaced.
    """
    target = Path(path)
    if target.exists():
        raise ParameterError(f"`path` must not exist, got {target}. Choose another name.")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # hashes of tokens
        with store.reading() as link:
            if isinstance(link, SQLiteConnection):
                link.vacuum_into(part)
            else:
                options = Options(durable=False, wait=5.0, create=True, read_only=False)
                with EventStore(lambda: SQLiteConnection(part, options)) as copied:
                    copy(store, copied)
        _sync(part)
        make_replaceable(target)  # an earlier file of this name may have left a log
        os.link(part, target)  # unlike a rename, this replaces nothing
        _sync(target.parent)
    except OSError as error:
        raise StoreError(f"{store} cannot be copied to {target}: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
