"""The event store: experiments, their arms' names, event logs and snapshots."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from manyarms.errors import (
    DuplicateNameError,
    ParameterError,
    StoreDamagedError,
    StoreError,
    WriteConflictError,
)
from manyarms.store import reading, writing
from manyarms.store.connection import Connection, UniqueError
from manyarms.store.records import (
    LONGEST_EXPERIMENT_NAME,
    Append,
    Event,
    ExperimentRecord,
    HistoryRow,
    Request,
    Snapshot,
    Token,
    check_name,
    stored,
    to_json,
)
from manyarms.store.schema import PIECES
from manyarms.store.sessions import Sessions

_MOST = 900_000_000  # bytes of a snapshot: both databases hold a little more in one row
_KEPT = 2  # snapshots
_PIECE = 5000  # rows that one transaction deletes
_logger = logging.getLogger("manyarms.store")


class EventStore(Sessions):
    """A store of experiments and their event logs; `open_store` opens one.

    All methods may be called from any thread. Do not use a store in a forked process; open it again
    there.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect)
        self._tails: dict[int, tuple[int, int]] = {}  # last event and its checksum
        # the connection that wrote them: a server may lose events in a failover
        self._tails_by: Connection | None = None

    # Experiments

    def create(
        self,
        name: str,
        spec: Mapping[str, Any],
        names: Iterable[str] = (),
        *,
        state: Mapping[str, Any] | None = None,
    ) -> ExperimentRecord:
        """Create an experiment whose arms have these names, numbered from 0.

        Raises
        ------
        DuplicateNameError
            If there is an experiment of this name, or two arms have the same name. Nothing is
            changed, and `find` returns the existing experiment.
        """
        check_name(name, LONGEST_EXPERIMENT_NAME, "experiment")
        arms = writing.named_arms(enumerate(names))
        text, created = to_json(spec), time.time()
        with self.writing() as link, link.transaction():
            number = writing.insert_experiment(link, name, text, to_json(state or {}), created)
            writing.insert_arms(link, number, arms)
        return ExperimentRecord(number, name, json.loads(text), dict(state or {}), created)

    def find(self, name: str) -> ExperimentRecord | None:
        """Return the experiment of this name, or raise if it is damaged; None if there is none."""
        with self.reading() as link:
            record = next(iter(reading.experiments(link, "name = ?", name)), None)
        if record is not None and record.damage:
            raise StoreDamagedError(record.damage)
        return record

    def experiments(self) -> list[ExperimentRecord]:
        """Return all experiments, sorted by name; damaged ones say so in `damage`."""
        with self.reading() as link:
            return sorted(reading.experiments(link), key=lambda one: one.name)

    def set_state(self, experiment: int, state: Mapping[str, Any]) -> None:
        """Replace the state of an experiment."""
        with self.writing() as link:
            link.run(
                "UPDATE experiments SET state = ? WHERE id = ?", to_json(state), int(experiment)
            )

    def delete(self, experiment: int) -> None:
        """Mark an experiment as deleted, which frees its name; `purge` deletes its rows."""
        with self.writing() as link:
            link.run("UPDATE experiments SET name = NULL WHERE id = ?", experiment)

    def purge(self) -> bool:
        """Delete some rows of a deleted experiment; return False if no such experiment is left."""
        with self.writing() as link:
            row = link.first("SELECT id FROM experiments WHERE name IS NULL LIMIT 1")
            if row is None:
                return False
            left = _PIECE
            with link.transaction():
                for table, column in PIECES.items():
                    gone = link.run(
                        f"DELETE FROM {table} WHERE experiment = ? AND {column} IN (SELECT "
                        f"{column} FROM {table} WHERE experiment = ? ORDER BY {column} LIMIT ?) "
                        f"RETURNING 1",
                        *(row[0], row[0], left),
                    )
                    left -= len(gone)
                    if left <= 0:
                        return True
                link.run("DELETE FROM experiments WHERE id = ?", row[0])
            return True

    # Events

    def commit(self, appends: Sequence[Append]) -> None:
        """Append events to one or more experiments in one transaction.

        Raises
        ------
        WriteConflictError
            If an experiment has other events after `after_seq`, or was deleted.
        StoreUnavailableError
            If the store is busy, full or unreachable.
        """
        with self._commits:
            link = self._committing()
            if link is not self._tails_by:
                self._tails, self._tails_by = {}, link
            rows: list[tuple[Any, ...]] = []
            tails: dict[int, tuple[int, int]] = {}
            more = False
            try:
                for append in appends:
                    self._chain(link, append, rows, tails)
                    more = more or bool(append.names or append.requests)
                if more:
                    self._commit_all(link, rows, appends, tails)
                elif rows:
                    link.append(rows, tails)
            except UniqueError as error:
                raise self._conflict(link, appends) from error
            finally:
                if link.lost:
                    self._drop_lost(link)
            self._tails.update(tails)

    def _chain(
        self,
        link: Connection,
        append: Append,
        rows: list[tuple[Any, ...]],
        tails: dict[int, tuple[int, int]],
    ) -> None:
        """Add the rows of one experiment's events, with their checksums."""
        experiment, after, events = append[:3]
        seq, check = tails.get(experiment) or self._tails.get(experiment) or (-1, 0)
        if seq != after:
            if experiment in tails:
                raise ParameterError(
                    f"`after_seq` must be {seq}, the last event so far in this commit, got {after}."
                )
            found = reading.checksum_at(link, experiment, after)
            if found is None:
                raise self._conflict(link, [append])
            seq, check = after, found
        for event in events:
            if event.seq != seq + 1:
                raise ParameterError(f"`seq` must be {seq + 1}, the next one, got {event.seq}.")
            row = stored(event, experiment, check)
            seq, check = seq + 1, row[-1]
            rows.append(row)
        tails[experiment] = seq, check

    def _commit_all(
        self,
        link: Connection,
        rows: Sequence[tuple[Any, ...]],
        appends: Sequence[Append],
        experiments: Collection[int],
    ) -> None:
        arms = [(one.experiment, writing.named_arms(one.names)) for one in appends if one.names]
        requests = [(one.experiment, *each) for one in appends for each in one.requests]
        with link.transaction():
            link.keep(experiments)
            link.insert("events", rows)
            for experiment, named in arms:
                writing.insert_arms(link, experiment, named)
            link.insert("requests", requests)

    def _conflict(self, link: Connection, appends: Sequence[Append]) -> WriteConflictError:
        """Return the error that says which experiment another process writes."""
        for experiment, after, *_ in appends:
            self._tails.pop(experiment, None)
            names = link.first("SELECT name FROM experiments WHERE id = ?", experiment)
            if names is None or names[0] is None:
                return WriteConflictError(
                    f"Experiment {experiment} in {self} was deleted. Nothing was written.",
                    experiment,
                )
            last = reading.last_seq(link, experiment)
            if last != after:
                return WriteConflictError(
                    f"Another process is writing experiment {names[0]!r} in {self}: its log ends "
                    f"at event {last}, and this process would have continued after event {after}. "
                    f"Nothing was written. Only one process at a time may write an experiment.",
                    experiment,
                )
        return WriteConflictError(
            f"Another process is writing to {self}, or this request was answered before. Nothing "
            f"was written. Open the experiments again.",
            appends[0].experiment,
        )

    def last_seq(self, experiment: int) -> int:
        """Return the number of the last event; 0 if there is none."""
        with self.reading() as link:
            return reading.last_seq(link, experiment)

    def events(self, experiment: int, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Yield the events after a number, in order, and verify their checksums.

        Raises
        ------
        StoreDamagedError
            At the first event that is missing or was changed outside manyarms.
        """
        with self.reading() as link:
            chain = reading.Chain(str(self), link, experiment, after)
        left = limit
        while left is None or left > 0:
            most = reading.PAGE if left is None else min(left, reading.PAGE)
            with self.reading() as link:
                events = chain.page(link, most)
            yield from events
            if len(events) < most:
                chain.raise_damage()
                return
            left = None if left is None else left - most

    def history(self, experiment: int, after: int = 0) -> Iterator[HistoryRow]:
        """Yield the events after a number with the names of their arms, for exports."""
        while True:
            events = list(self.events(experiment, after, reading.PAGE))
            arms = {event.arm for event in events if event.arm is not None}
            names = self.arm_names(experiment, sorted(arms))
            for seq, at, kind, pull, arm, reward, detail in events:
                shown = None if arm is None else names.get(arm, arm)
                yield HistoryRow(seq, at, kind, pull, shown, reward, detail)
            if len(events) < reading.PAGE:
                return
            after = events[-1].seq

    # Names

    def arm_names(self, experiment: int, numbers: Sequence[int] | None = None) -> dict[int, str]:
        """Return the names of these arms, by number (default: of all arms)."""
        sql = "SELECT number, name FROM arms WHERE experiment = ?"
        with self.reading() as link:
            if numbers is None:
                return dict(link.run(f"{sql} ORDER BY number", experiment))
            return dict(link.rows_of(f"{sql} AND number = ?", experiment, numbers))

    # Snapshots

    def save_snapshot(self, experiment: int, seq: int, version: str, data: bytes) -> None:
        """Store a snapshot of the state after an event; only the newest two are kept.

        The snapshot before the first event is kept, too, because the log begins with it. If this
        raises, the store can still be used, because no event is lost.
        """
        if len(data) > _MOST:
            raise StoreError(f"A snapshot has at most {_MOST:,} bytes, got {len(data):,}.")
        with self.reading() as link, link.transaction():
            if reading.checksum_at(link, experiment, seq) is None:
                raise StoreError(f"There is no event {seq} in experiment {experiment} of {self}.")
            writing.insert_snapshot(link, experiment, Snapshot(seq, version, data))
            link.run(
                "DELETE FROM snapshots WHERE experiment = ? AND seq > 0 AND seq NOT IN (SELECT "
                "seq FROM snapshots WHERE experiment = ? ORDER BY seq DESC LIMIT ?)",
                *(experiment, experiment, _KEPT),
            )

    def snapshots(self, experiment: int) -> Iterator[Snapshot]:
        """Yield the intact snapshots, newest first; each is read when it is needed."""
        with self.reading() as link:
            seqs = reading.snapshot_seqs(link, experiment)
        for seq in seqs:
            with self.reading() as link:
                found = reading.snapshot(link, experiment, seq)
            if isinstance(found, Snapshot):
                yield found
            elif found:
                _logger.warning("%s: %s", self, found)

    # Requests and tokens of the service

    def request(self, experiment: int, key: str) -> Request | None:
        """Return the request that was answered under an idempotency key; None if there is none."""
        with self.reading() as link:
            row = link.first(
                "SELECT key, digest, answer, at FROM requests WHERE experiment = ? AND key = ?",
                *(experiment, key),
            )
        return row and Request(*row)

    def last_requests(self, experiment: int, most: int) -> list[Request]:
        """Return the last requests that were answered, in the order of their answers."""
        with self.reading() as link:
            rows = link.run(
                "SELECT key, digest, answer, at FROM requests WHERE experiment = ? "
                "ORDER BY at DESC LIMIT ?",
                *(experiment, most),
            )
        return [Request(*row) for row in reversed(rows)]

    def prune_requests(self, before: float) -> bool:
        """Delete some of the requests before a time; return whether there were any."""
        with self.writing() as link:
            row = link.first(
                "SELECT max(at) FROM (SELECT at FROM requests WHERE at < ? ORDER BY at LIMIT ?) "
                "AS oldest",
                *(before, _PIECE),
            )
            if row[0] is None:
                return False
            link.run("DELETE FROM requests WHERE at <= ?", row[0])
            return True

    def tokens(self) -> list[Token]:
        """Return all tokens, sorted by name."""
        with self.reading("tokens") as link:
            rows = link.run("SELECT name, role, hash, created, expires FROM tokens")
        return sorted(Token(*row) for row in rows)

    def add_token(self, token: Token) -> None:
        """Store a token; raise a `DuplicateNameError` if there is one of this name."""
        with self.writing() as link:
            row = link.first(
                "INSERT INTO tokens (name, role, hash, created, expires) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING RETURNING name",
                *token,
            )
        if row is None:
            raise DuplicateNameError(
                f"There is a token {token.name!r} already. Choose another name."
            )

    def remove_token(self, name: str) -> bool:
        """Remove a token; return whether there was one of this name."""
        with self.writing() as link:
            return bool(link.run("DELETE FROM tokens WHERE name = ? RETURNING 1", name))
