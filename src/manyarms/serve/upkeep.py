"""What an operator does with a database beside serving it: back it up, and check its logs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from manyarms.errors import ParameterError, PathNotFoundError, StoreError
from manyarms.live.databases import Database, ExperimentRow, database_of
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve.game import Game, ReplayError
from manyarms.serve.tables import opened


def back_up(store: str, target: Path) -> int:
    """Copy an SQLite database to a new file while others write to it; return the file's size."""
    database = database_of(store)
    if not isinstance(database, SQLite):
        raise ParameterError(
            f"`store` must be an SQLite database, got {database}. For PostgreSQL use its own tool: "
            f"pg_dump --format=custom --file={target} DATABASE"
        )
    if not database.path.exists():
        raise PathNotFoundError(f"There is no database {database}. Name the service's own.")
    if target.exists():
        raise ParameterError(f"`file` must not exist, got {target}. Choose another name.")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # it has secrets
        database.copy_into(part)
        _sync(part)
        os.link(part, target)  # unlike a rename, it replaces nothing
        _sync(target.parent)
    except OSError as error:
        raise StoreError(f"{database} cannot be copied to {target}: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Checked(NamedTuple):
    """What replaying one experiment's log has shown."""

    name: str
    events: int
    trouble: str  # "" if every arm is the one that was recorded
    skipped: str  # why it was not replayed, or ""


def check_logs(store: str) -> Iterator[Checked]:
    """Play every log again from its first event, and compare each arm with the one recorded.

    Of an SQLite file, a copy is checked, so the file stays as it is.
    """
    database = database_of(store)
    if isinstance(database, SQLite):
        if not database.path.exists():
            raise PathNotFoundError(f"There is no database {database}. Name the service's own.")
        with tempfile.TemporaryDirectory(prefix="manyarms-check-") as folder:
            copy = Path(folder) / "copy.db"
            copy.touch(mode=0o600)
            database.copy_into(copy)
            yield from _check_all(opened(f"sqlite:///{copy}?sync=never"))
    else:
        yield from _check_all(opened(store))


def _check_all(database: Database) -> Iterator[Checked]:
    try:
        for row in database.experiments():
            if row.state != "deleted":
                yield _check(database, row)
    finally:
        database.close()


def _check(database: Database, row: ExperimentRow) -> Checked:
    if row.spec == "null":
        return Checked(row.name, row.head, "", "a handle's game: `recorded` checks it")
    try:
        Game.replayed(database, row)
    except ReplayError as error:
        return Checked(row.name, row.head, str(error), "")
    return Checked(row.name, row.head, "", "")
