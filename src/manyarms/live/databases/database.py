"""The log of games in a database: what is the same in SQLite and PostgreSQL.

All statements are written once, with `:names`. A database object has one connection and belongs to
one thread at a time. The tables that only the service has are in `manyarms.serve.tables`.
"""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

from manyarms.errors import StoreError

SCHEMA = 1


class UnreachableError(Exception):
    """The database did not answer: what was being done may have been done, or not."""


class ExperimentRow(NamedTuple):
    """A row of `experiments`."""

    id: int
    name: str
    spec: str
    state: str
    head: int
    version: str
    secret: str
    keyed: int
    first_arms: int
    n_arms: int
    created: float


class LogRow(NamedTuple):
    """A row of `events`, without its experiment."""

    seq: int
    kind: int
    pull: int
    arm: int
    reward: float
    at: float
    more: str | None = None


_COLUMNS = ", ".join(ExperimentRow._fields)


class Database(ABC):
    """One connection to the tables."""

    words: ClassVar[dict[str, str]] = {}  # of tables.sql, and its own, where they differ
    now: ClassVar[str]  # the clock, in SQL

    def __init__(self, url: str) -> None:
        self.url = url
        self.given_up = False  # set by another thread: nobody waits for what is read

    def __str__(self) -> str:
        return self.url

    @abstractmethod
    def open(self) -> None:
        """Connect; make the tables where there are none.

        Raises `UnreachableError` where it may help to try again, and `StoreError` elsewhere.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect. Closed twice is closed."""

    @abstractmethod
    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows. Raises `UnreachableError` if there is no answer."""

    @abstractmethod
    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Do all of it, or nothing."""

    @abstractmethod
    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Do all of it, or nothing, while nobody else makes tables."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""

    @abstractmethod
    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""

    @abstractmethod
    def append(self, experiment: int, head: int, rows: Sequence[LogRow]) -> bool:
        """Commit events, durably, if `head` is still the last one; return whether it was."""

    @abstractmethod
    def lock(self, name: str) -> bool:
        """Keep others out until this connection ends; return False if another has the lock."""

    def first(self, sql: str, **values: Any) -> Any:
        """Run one statement; return its first row, None if there is none."""
        rows = self.run(sql, **values)
        return rows[0] if rows else None

    def find(self, name: str) -> ExperimentRow | None:
        """Return the experiment of this name."""
        row = self.first(f"SELECT {_COLUMNS} FROM experiments WHERE name = :name", name=name)
        return row and ExperimentRow(*row)

    def experiments(self) -> list[ExperimentRow]:
        """Return all experiments, by name."""
        return [
            ExperimentRow(*row)
            for row in self.run(f"SELECT {_COLUMNS} FROM experiments ORDER BY name")
        ]

    def create(self, name: str, spec: str, state: str, secret: str, **columns: int) -> bool:
        """Make an experiment; False if there is one of this name."""
        made = self.first(
            "INSERT INTO experiments (name, spec, state, secret, keyed, first_arms, n_arms, "
            f"created) VALUES (:name, :spec, :state, :secret, :keyed, :arms, :arms, {self.now}) "
            "ON CONFLICT (name) DO NOTHING RETURNING id",
            name=name,
            spec=spec,
            state=state,
            secret=secret,
            keyed=columns.get("keyed", 0),
            arms=columns.get("n_arms", 0),
        )
        return made is not None

    def events(self, experiment: int, after: int, *, most: int = 1 << 60) -> Iterator[LogRow]:
        """Yield the events after a number, in order."""
        if self.given_up:
            raise UnreachableError("nobody waits for this any more")
        rows = self.stream(
            "SELECT seq, kind, pull, arm, reward, at, more FROM events "
            "WHERE experiment = :x AND seq > :after ORDER BY seq LIMIT :most",
            x=experiment,
            after=after,
            most=most,
        )
        return (LogRow(*row) for row in rows)

    def snapshot(
        self, experiment: int, *, before: int = 1 << 60
    ) -> tuple[int, bytes, bytes, float] | None:
        """Return the last snapshot: its event, the state, what else it holds, and its time."""
        row = self.first(
            "SELECT seq, state, more, at FROM snapshots WHERE experiment = :x "
            "AND seq < :before ORDER BY seq DESC LIMIT 1",
            x=experiment,
            before=before,
        )
        if row is None:
            return None
        seq, state, more, at = row
        return seq, bytes(state), bytes(more), at

    def save(self, experiment: int, seq: int, state: bytes, more: bytes) -> bool:
        """Keep a snapshot, if its event is committed, and drop all but the last two.

        One from before the first event stays, too: with it begins the history. Return whether it
        was kept.
        """
        with self.transaction():
            kept = self.run(
                "INSERT INTO snapshots (experiment, seq, state, more, at) "
                f"SELECT id, :seq, :state, :more, {self.now} FROM experiments "
                "WHERE id = :x AND head >= :seq "
                "ON CONFLICT (experiment, seq) DO UPDATE SET "
                "state = excluded.state, more = excluded.more, at = excluded.at RETURNING seq",
                x=experiment,
                seq=seq,
                state=state,
                more=more,
            )
            self.run(
                "DELETE FROM snapshots WHERE experiment = :x AND seq < (SELECT min(seq) FROM ("
                "SELECT seq FROM snapshots WHERE experiment = :x ORDER BY seq DESC LIMIT 2) AS l) "
                "AND seq > 0",
                x=experiment,
            )
        return bool(kept)

    def make_tables(self, package: str) -> None:
        """Make the tables that the file tables.sql of a package describes, where there are none."""
        text = files(package).joinpath("tables.sql").read_text(encoding="utf-8")
        for word, own in self.words.items():
            text = text.replace(word, own)
        lines = [line.partition("--")[0].rstrip() for line in text.splitlines()]
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                self.run(statement)

    def _prepare(self) -> None:
        """Make the tables where there are none; refuse those of another version."""
        if not self.has_table("snapshots"):
            with self.alone():
                self.make_tables(__package__)
        version = int(self.first("SELECT max(version) FROM schema_version")[0])
        if version != SCHEMA:
            raise StoreError(
                f"{self} has tables of version {version}, and this manyarms knows version {SCHEMA} "
                f"only. Install the manyarms that made them."
            )


def packed(event: tuple[Any, ...]) -> str | None:
    """Return the fields of an event that have no column as JSON; None if all are empty."""
    rest = event[4:]
    return json.dumps(rest, separators=(",", ":")) if any(rest) else None
