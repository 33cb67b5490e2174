"""What the service asks of its tables, beside the log: asks, arms, minutes, settings.

Every function is given a `Database` and belongs to the thread that has it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from itertools import chain
from typing import Any

from manyarms.live.databases import Database, UnreachableError, database_of
from manyarms.live.databases.postgres import PostgreSQL
from manyarms.live.databases.sqlite import SQLite

_AT_ONCE = 2000  # rows that are deleted
_MOST_ROWS = 256  # of one statement
_COPIED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# what belongs to an experiment, and the column that numbers it there
_TABLES = {
    "events": "seq",
    "ask_keys": "key",
    "arms": "number",
    "minutes": "minute",
    "snapshots": "seq",
    "summaries": "experiment",
}


def opened(url: str, *, create: bool = True) -> Database:
    """Return the database of a service, open, with all of its tables.

    Whoever has used it before does not create it: a file that is missing was removed.
    """
    database = database_of(url)
    if not create and isinstance(database, SQLite) and not database.path.exists():
        raise UnreachableError(f"{database.path} was removed. Put it back")
    database.open()
    if not database.has_table("summaries"):  # the last one made
        with database.alone():
            database.make_tables(__package__)
    return database


# Asks and arms


def ended(
    database: Database, experiment: int, pulls: Sequence[int]
) -> dict[int, tuple[int, float, int]]:
    """Return how pulls ended, of those that did: the kind of event, the reward, the arm."""
    rows = _of(
        database,
        pulls,
        "SELECT pull, kind, reward, arm FROM events WHERE experiment = :x AND kind IN "
        "(2, 3, 7) AND pull",
        experiment,
    )
    return {pull: (kind, reward, arm) for pull, kind, reward, arm in rows}


def keys_of(database: Database, experiment: int, numbers: Sequence[int]) -> dict[int, str]:
    """Return the keys of arms."""
    sql = "SELECT number, key FROM arms WHERE experiment = :x AND number"
    return dict(_of(database, numbers, sql, experiment))


def _of(database: Database, numbers: Sequence[int], sql: str, experiment: int) -> list[Any]:
    """Return the rows of some numbers, which a query ends with."""
    if isinstance(database, SQLite):
        among, given = "IN (SELECT value FROM json_each(:numbers))", json.dumps(list(numbers))
        return database.run(f"{sql} {among}", x=experiment, numbers=given)
    return database.run(f"{sql} = ANY(:numbers)", x=experiment, numbers=list(numbers))


def number_of(database: Database, experiment: int, key: str, below: int = 1 << 60) -> int | None:
    """Return the number of an arm; None if there is none of this key."""
    row: tuple[int] | None = database.first(
        "SELECT number FROM arms WHERE experiment = :x AND key = :key AND number < :below",
        x=experiment,
        key=key,
        below=below,
    )
    return row[0] if row else None


def ask_key(database: Database, experiment: int, key: str) -> tuple[Any, ...] | None:
    """Return what an ask of this key was given: k, pull, count, pulls."""
    row: tuple[Any, ...] | None = database.first(
        "SELECT k, pull, count, pulls FROM ask_keys WHERE experiment = :x AND key = :key",
        x=experiment,
        key=key,
    )
    return row


def last_ask_keys(database: Database, experiment: int, most: int) -> list[tuple[Any, ...]]:
    """Return the last asks, the latest first: key, k, pull, count, pulls."""
    return database.run(
        "SELECT key, k, pull, count, pulls FROM ask_keys WHERE experiment = :x "
        "ORDER BY at DESC LIMIT :most",
        x=experiment,
        most=most,
    )


def add_arms(database: Database, experiment: int, arms: list[tuple[int, str]]) -> None:
    """Insert new arms beyond those that are known. The commit that publishes makes them durable."""
    with database.transaction():
        if isinstance(database, PostgreSQL):
            lines = [f"{experiment}\t{number}\t{key.translate(_COPIED)}\n" for number, key in arms]
            database.run("SET LOCAL synchronous_commit = off")
            database.copy("COPY arms (experiment, number, key) FROM STDIN", "".join(lines))
        elif isinstance(database, SQLite):
            for at in range(0, len(arms), _MOST_ROWS):  # few statements: each wants the interpreter
                some = arms[at : at + _MOST_ROWS]
                marks = ", ".join([f"({int(experiment)}, ?, ?)"] * len(some))
                database.run_many(f"INSERT INTO arms VALUES {marks}", [[*chain(*some)]])


def numbers_of(database: Database, experiment: int, keys: list[str]) -> dict[str, int]:
    """Return the numbers of the arms that are there, by their keys."""
    among = "= ANY(:keys)"
    values: Any = keys
    if isinstance(database, SQLite):
        among, values = "IN (SELECT value FROM json_each(:keys))", json.dumps(keys)
    sql = f"SELECT key, number FROM arms WHERE experiment = :x AND key {among}"
    return dict(database.run(sql, x=experiment, keys=values))


def end_of_arms(database: Database, experiment: int) -> int:
    """Return the number after the last arm, those of imports that did not end among them."""
    (last,) = database.first("SELECT max(number) FROM arms WHERE experiment = :x", x=experiment)
    return 0 if last is None else int(last) + 1


def drop_unpublished(database: Database, experiment: int, begin: int, end: int) -> None:
    """Delete some arms that an import which did not end has left."""
    database.run(
        "DELETE FROM arms WHERE experiment = :x AND number >= :begin AND number < :end AND "
        "EXISTS (SELECT 1 FROM experiments WHERE id = :x AND n_arms <= :begin)",
        x=experiment,
        begin=begin,
        end=end,
    )


# Seasons


def hidden(database: Database, keyed: bool) -> int:
    """Make an experiment that nobody sees; return its number."""
    secret = secrets.token_hex(32)
    name = f"~season {secret[:16]}"
    database.create(name, "null", "making", secret, keyed=int(keyed))
    row = database.find(name)
    assert row is not None
    return row.id


def copy_arms(old: int, new: int, begin: int, end: int, database: Database) -> None:
    """Copy some arms of an experiment to another."""
    database.run(
        "INSERT INTO arms (experiment, number, key) SELECT :new, number, key FROM arms "
        "WHERE experiment = :old AND number >= :begin AND number < :end AND EXISTS "
        "(SELECT 1 FROM experiments WHERE id = :new AND state = 'making')",  # not given up since
        old=old,
        new=new,
        begin=begin,
        end=end,
    )


def count_arms(database: Database, experiment: int) -> int:
    """Return how many arms have keys."""
    (count,) = database.first("SELECT count(*) FROM arms WHERE experiment = :x", x=experiment)
    return int(count)


def begin_with(
    database: Database,
    experiment: int,
    name: str,
    columns: dict[str, Any],
    saved: tuple[bytes, bytes],
    minute: tuple[int, int, int, int, float, int] | None,
) -> bool:
    """Let a hidden experiment begin with a snapshot; False if there is one of this name."""
    with database.transaction():
        given = "".join(f", {column} = :{column}" for column in columns)
        named = database.run(
            f"UPDATE experiments SET name = :name{given} WHERE id = :x AND state = 'making' AND "
            "NOT EXISTS (SELECT 1 FROM experiments WHERE name = :name) RETURNING id",
            x=experiment,
            name=name,
            **columns,
        )
        if not named:
            return False
        database.run(
            "INSERT INTO snapshots (experiment, seq, state, more, at) "
            f"VALUES (:x, 0, :state, :more, {database.now})",
            x=experiment,
            state=saved[0],
            more=saved[1],
        )
        if minute is not None:
            names = ("minute", "asked", "told", "abandoned", "reward", "fresh")
            database.run(
                "INSERT INTO minutes (experiment, minute, asked, told, abandoned, reward, fresh) "
                "VALUES (:x, :minute, :asked, :told, :abandoned, :reward, :fresh)",
                x=experiment,
                **dict(zip(names, minute, strict=True)),
            )
    return True


def bury_hidden(database: Database) -> None:
    """Let seasons be deleted that an earlier leader did not finish."""
    database.run("UPDATE experiments SET state = 'deleted' WHERE state = 'making'")


# Settings, and what the list shows


def setting(database: Database, name: str, fresh: str) -> str:
    """Return a setting that all processes share: the first value that any of them gave."""
    database.run(
        "INSERT INTO settings (name, value) VALUES (:name, :fresh) ON CONFLICT DO NOTHING",
        name=name,
        fresh=fresh,
    )
    return str(database.first("SELECT value FROM settings WHERE name = :name", name=name)[0])


def set_setting(database: Database, name: str, value: str) -> None:
    """Give a setting a new value."""
    database.run(
        "INSERT INTO settings (name, value) VALUES (:name, :value) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name=name,
        value=value,
    )


def keep_summary(database: Database, experiment: int, head: int, summary: str) -> None:
    """Keep what the list shows of an experiment that is not loaded."""
    database.run(
        "INSERT INTO summaries (experiment, head, summary) VALUES (:x, :head, :summary) "
        "ON CONFLICT (experiment) DO UPDATE SET head = excluded.head, summary = excluded.summary",
        x=experiment,
        head=head,
        summary=summary,
    )


def with_windows(database: Database) -> list[str]:
    """Return the experiments that have a window, and pulls in flight."""
    rows = database.run(
        "SELECT e.name FROM experiments e JOIN minutes m ON m.experiment = e.id "
        "WHERE e.spec <> 'null' AND e.spec NOT LIKE :none AND e.spec LIKE :some "
        "GROUP BY e.name HAVING sum(m.asked) > sum(m.told) + sum(m.abandoned)",
        none='%"window":null%',
        some='%"window":%',
    )
    return [name for (name,) in rows]


# What goes


def bury(database: Database, experiment: int) -> bool:
    """Take an experiment out of sight: its name is free at once, and no commit fits its head.

    What it has is deleted by `purge`, bit by bit.
    """
    gone = database.run(
        "UPDATE experiments SET name = '~' || id || ' ' || name, spec = 'null', "
        "state = 'deleted', head = -1 WHERE id = :x RETURNING id",
        x=experiment,
    )
    return bool(gone)


def purge(database: Database) -> bool:
    """Delete some rows of a buried experiment, the experiment with the last; False if none is."""
    row = database.first("SELECT id FROM experiments WHERE state = 'deleted' LIMIT 1")
    if row is None:
        return False
    left, x = _AT_ONCE, row[0]
    with database.transaction():
        for table, column in _TABLES.items():
            gone = database.run(
                f"DELETE FROM {table} WHERE experiment = :x AND {column} IN (SELECT {column} "
                f"FROM {table} WHERE experiment = :x LIMIT :left) RETURNING 1",
                x=x,
                left=left,
            )
            left -= len(gone)
            if left <= 0:
                return True
        database.run("DELETE FROM experiments WHERE id = :x AND state = 'deleted'", x=x)
    return True


def drop_old_keys(
    database: Database, experiment: int, seconds: float, *, most: int = _AT_ONCE
) -> bool:
    """Forget asks that are older, some at a time; return whether there were any."""
    gone = database.run(
        "DELETE FROM ask_keys WHERE experiment = :x AND key IN (SELECT key FROM ask_keys "
        f"WHERE experiment = :x AND at < {database.now} - :seconds ORDER BY at LIMIT :most) "
        "RETURNING 1",
        x=experiment,
        seconds=seconds,
        most=most,
    )
    return bool(gone)
