"""What stores and the service ask of a database; the words of each kind are in its own file.

All statements are written once, with `:names`. A database object has one connection and belongs to
one thread at a time.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

from manyarms.errors import StoreError
from manyarms.live.databases.upkeep import Upkeep
from manyarms.live.store import EVENTS_THAT_END

SCHEMA = 1
_ENDS = ", ".join(f"{int(kind)}" for kind in EVENTS_THAT_END)


class UnreachableError(Exception):
    """The database did not answer: what was being done may have been done, or not."""


class ExperimentRow(NamedTuple):
    """A row of `experiments`."""

    id: int
    name: str
    spec: str
    state: str
    epoch: int
    head: int
    owner: str
    lease_left: float  # seconds, by the database's clock
    engine: str
    generation: int
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


@dataclass
class Batch:
    """What one owner commits at a time: all of it, if the fence stands, else nothing."""

    experiment: int
    epoch: int
    old: int  # the head before
    events: list[LogRow] = field(default_factory=list)
    # key, pull, k, again, body, worker, at
    keys: list[tuple[Any, ...]] = field(default_factory=list)
    # minute: asked, told, abandoned, reward, fresh
    minutes: dict[int, list[float]] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)  # others of `experiments` to be set
    unnamed: set[int] = field(default_factory=set)  # arms whose keys are wanted
    names: dict[int, str] = field(default_factory=dict)  # keys that came with the commit, if any

    @property
    def new(self) -> int:
        """The head afterwards."""
        return self.old + len(self.events)


_COLUMNS = (
    "id, name, spec, state, epoch, head, owner, lease_until - {now}, engine, generation, secret, "
    "keyed, first_arms, n_arms, created"
)
SETTABLE = ("state", "engine", "generation", "keyed", "first_arms", "n_arms", "spec")


class Database(Upkeep):
    """One connection to the tables."""

    words: ClassVar[dict[str, str]] = {}  # of tables.sql, and its own, where they differ
    lease: ClassVar[float] = 5.0  # seconds that an owner may be silent

    def __init__(self, url: str) -> None:
        self.url = url

    def __str__(self) -> str:
        return self.url

    # What each kind of database does in its own way

    @abstractmethod
    def open(self) -> None:
        """Connect; make the tables where there are none.

        Raises `UnreachableError` where it may help to try again, and `StoreError` elsewhere.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect. Closed twice is closed."""

    @abstractmethod
    def stream(self, sql: str, **values: Any) -> Iterator[Any]:
        """Run a query of many rows, and yield them bit by bit."""

    @abstractmethod
    def commit(self, batches: Sequence[Batch]) -> list[bool]:
        """Commit batches in one durable transaction; return for each whether its fence stood."""

    @abstractmethod
    def add_arms(self, experiment: int, epoch: int, rows: Iterable[tuple[int, str]]) -> bool:
        """Insert arms, if `epoch` is that of the owner; return whether it is.

        Raises `ValueError` with a key that is there already. They are as durable as the next
        commit, which makes them known.
        """

    @abstractmethod
    def holds_session(self, owner: str) -> bool:
        """Whether the session of another owner still stands, as far as the database can tell."""

    @abstractmethod
    def hold_session(self, owner: str) -> None:
        """Let others see that this session stands."""

    # What is the same everywhere

    def first(self, sql: str, **values: Any) -> Any:
        """Run one statement; return its first row, None if there is none."""
        rows = self.run(sql, **values)
        return rows[0] if rows else None

    def find(self, name: str) -> ExperimentRow | None:
        """Return the experiment of this name."""
        row = self.first(f"SELECT {self._columns} FROM experiments WHERE name = :name", name=name)
        return row and ExperimentRow(*row)

    def experiments(self) -> list[ExperimentRow]:
        """Return all experiments, by name."""
        rows = self.run(f"SELECT {self._columns} FROM experiments ORDER BY name")
        return [ExperimentRow(*row) for row in rows]

    def in_flight(self, experiment: int) -> int:
        """Return how many pulls of an experiment have not ended."""
        (count,) = self.first(
            "SELECT sum(asked) - sum(told) - sum(abandoned) FROM minutes WHERE experiment = :x",
            x=experiment,
        )
        return int(count or 0)

    @property
    def _columns(self) -> str:
        return _COLUMNS.format(now=self.now)

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

    def acquire(self, name: str, owner: str, epoch: int) -> bool:
        """Become the owner, if nobody else did since `epoch` was seen."""
        ours = self.first(
            f"UPDATE experiments SET epoch = epoch + 1, owner = :owner, "
            f"lease_until = {self.now} + :lease WHERE name = :name AND epoch = :epoch RETURNING id",
            name=name,
            owner=owner,
            epoch=epoch,
            lease=self.lease,
        )
        return ours is not None

    def release(self, experiment: int, epoch: int) -> None:
        """Be the owner no longer."""
        self.run(
            "UPDATE experiments SET owner = '', lease_until = 0 WHERE id = :id AND epoch = :epoch",
            id=experiment,
            epoch=epoch,
        )

    def events(self, experiment: int, after: int, *, most: int = 1 << 60) -> Iterator[LogRow]:
        """Yield the events after a number, in order."""
        rows = self.stream(
            "SELECT seq, kind, pull, arm, reward, at, more FROM events "
            "WHERE experiment = :x AND seq > :after ORDER BY seq LIMIT :most",
            x=experiment,
            after=after,
            most=most,
        )
        return (LogRow(*row) for row in rows)

    def heads(self, experiments: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the epoch and the head of each experiment."""
        marks = ", ".join(str(int(number)) for number in experiments)
        rows = self.run(f"SELECT id, epoch, head FROM experiments WHERE id IN ({marks})")
        return {number: (epoch, head) for number, epoch, head in rows}

    def ended(self, experiment: int, pulls: Sequence[int]) -> dict[int, tuple[int, float, int]]:
        """Return how pulls ended, of those that did: the kind of event, the reward, the arm."""
        rows = self._of(
            pulls,
            "SELECT pull, kind, reward, arm FROM events WHERE experiment = :x AND kind IN "
            f"({_ENDS}) AND pull IN",
            experiment,
        )
        return {pull: (kind, reward, arm) for pull, kind, reward, arm in rows}

    def keys_of(self, experiment: int, numbers: Sequence[int]) -> dict[int, str]:
        """Return the keys of arms."""
        sql = "SELECT number, key FROM arms WHERE experiment = :x AND number IN"
        return dict(self._of(numbers, sql, experiment))

    def _of(self, numbers: Sequence[int], sql: str, experiment: int) -> Iterator[Any]:
        """Yield the rows of some numbers, which a query ends with, of some hundreds at a time."""
        for k in range(0, len(numbers), 500):
            marks = ", ".join(str(int(number)) for number in numbers[k : k + 500])
            yield from self.run(f"{sql} ({marks})", x=experiment)

    def number_of(self, experiment: int, key: str, below: int) -> int | None:
        """Return the number of an arm; None if there is none of this key."""
        row: tuple[int] | None = self.first(
            "SELECT number FROM arms WHERE experiment = :x AND key = :key AND number < :below",
            x=experiment,
            key=key,
            below=below,
        )
        return row[0] if row else None

    def taken(self, experiment: int, arms: list[tuple[int, str]]) -> str:
        """Return the first key that is there already, or twice among these."""
        seen: set[str] = set()
        for _, key in arms:
            if key in seen or self.number_of(experiment, key, 1 << 60) is not None:
                return key
            seen.add(key)
        return ""

    def renew(self, experiment: int, epoch: int) -> None:
        """Lengthen a lease, where nothing is committed for long."""
        self.run(
            f"UPDATE experiments SET lease_until = {self.now} + {self.lease} "
            "WHERE id = :id AND epoch = :epoch",
            id=experiment,
            epoch=epoch,
        )

    def ask_key(self, experiment: int, key: str) -> tuple[Any, ...] | None:
        """Return what an ask of this key was given: pull, k, again, body."""
        row: tuple[Any, ...] | None = self.first(
            "SELECT pull, k, again, body FROM ask_keys WHERE experiment = :x AND key = :key",
            x=experiment,
            key=key,
        )
        return row

    def last_ask_keys(self, experiment: int, most: int) -> list[tuple[Any, ...]]:
        """Return the last asks, the latest first: key, pull, k, again, body."""
        return self.run(
            "SELECT key, pull, k, again, body FROM ask_keys WHERE experiment = :x "
            "AND key NOT LIKE '~%' ORDER BY at DESC LIMIT :most",
            x=experiment,
            most=most,
        )

    def note(self, token: str, experiment: str | None, action: str) -> None:
        """Write down who did what."""
        self.run(
            f"INSERT INTO audit (at, token, experiment, action) VALUES ({self.now}, :token, "
            ":experiment, :action)",
            token=token,
            experiment=experiment,
            action=action,
        )

    def snapshot(
        self, experiment: int, *, before: int = 1 << 60
    ) -> tuple[int, str, bytes, bytes, float] | None:
        """Return the last snapshot: its event, engine, state, what else it holds, and its time."""
        row = self.first(
            "SELECT seq, engine, state, more, at FROM snapshots WHERE experiment = :x "
            "AND seq < :before ORDER BY seq DESC LIMIT 1",
            x=experiment,
            before=before,
        )
        if row is None:
            return None
        seq, engine, state, more, at = row
        return seq, engine, bytes(state), bytes(more), at

    def save(
        self,
        experiment: int,
        seq: int,
        engine: str,
        state: bytes,
        more: bytes,
        *,
        epoch: int | None = None,
        keep_first: bool = False,
    ) -> bool:
        """Keep a snapshot, if its event is committed, and drop all but the last two.

        With `epoch` only its owner may. The first one can be kept, too: with it begins the history.
        Return whether it was kept.
        """
        same = "epoch = epoch" if epoch is None else "epoch = :epoch"
        with self.transaction():
            kept = self.run(
                "INSERT INTO snapshots (experiment, seq, engine, state, more, at) "
                f"SELECT id, :seq, :engine, :state, :more, {self.now} FROM experiments "
                f"WHERE id = :x AND head >= :seq AND {same} "
                "ON CONFLICT (experiment, seq) DO UPDATE SET engine = excluded.engine, "
                "state = excluded.state, more = excluded.more, at = excluded.at RETURNING seq",
                x=experiment,
                seq=seq,
                engine=engine,
                state=state,
                more=more,
                **({} if epoch is None else {"epoch": epoch}),
            )
            self.run(
                "DELETE FROM snapshots WHERE experiment = :x AND seq < (SELECT min(seq) FROM ("
                "SELECT seq FROM snapshots WHERE experiment = :x ORDER BY seq DESC LIMIT 2) AS l) "
                "AND (:first = 0 OR seq > (SELECT min(seq) FROM snapshots WHERE experiment = :x))",
                x=experiment,
                first=int(keep_first),
            )
        return bool(kept)

    def setting(self, name: str, fresh: str) -> str:
        """Return a setting that all nodes share: the first value that any of them gave."""
        self.run(
            "INSERT INTO settings (name, value) VALUES (:name, :fresh) ON CONFLICT DO NOTHING",
            name=name,
            fresh=fresh,
        )
        return str(self.first("SELECT value FROM settings WHERE name = :name", name=name)[0])

    def _make_tables(self) -> None:
        text = files(__package__).joinpath("tables.sql").read_text(encoding="utf-8")
        for word, own in self.words.items():
            text = text.replace(word, own)
        lines = [line.partition("--")[0].rstrip() for line in text.splitlines()]
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                self.run(statement)

    def _check_schema(self) -> None:
        (version,) = self.first("SELECT max(version) FROM schema_version")
        if version != SCHEMA:
            raise StoreError(
                f"{self} has tables of version {version}, and this manyarms knows version {SCHEMA}."
                f" Install the manyarms that made them, or a newer one."
            )


def packed(event: tuple[Any, ...]) -> str | None:
    """Return the fields of an event that have no column as JSON; None if all are empty."""
    rest = event[4:]
    return json.dumps(rest, separators=(",", ":")) if any(rest) else None


def next_seconds(pause: float) -> float:
    """Return the pause after this one, while a database is away."""
    return min(1.0, 2 * pause)
