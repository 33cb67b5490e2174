"""The tables in SQLite's dialect, which `postgres.py` translates. Times are seconds since 1970.

An experiment without a name is being deleted. Its number is never reused, so that no process writes
to another experiment by mistake. There are no foreign keys, because PostgreSQL would look up the
experiment for every row; commits look it up once.
"""

from __future__ import annotations

FORMAT = 1

TABLES = (
    """
    CREATE TABLE experiments (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT UNIQUE,
        spec TEXT NOT NULL,
        state TEXT NOT NULL,
        created REAL NOT NULL
    )""",
    """
    CREATE TABLE arms (
        experiment INTEGER NOT NULL,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (experiment, number),
        UNIQUE (experiment, digest)
    ) WITHOUT ROWID""",
    """
    CREATE TABLE events (
        experiment INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        pull INTEGER,
        arm INTEGER,
        reward REAL,
        detail TEXT,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (experiment, seq)
    ) WITHOUT ROWID""",
    """
    CREATE TABLE snapshots (
        experiment INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        version TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (experiment, seq)
    )""",
    """
    CREATE TABLE requests (
        experiment INTEGER NOT NULL,
        key TEXT NOT NULL,
        digest TEXT NOT NULL,
        answer TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (experiment, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX requests_by_time ON requests (at)",
    """
    CREATE TABLE tokens (
        name TEXT NOT NULL PRIMARY KEY,
        role TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        expires REAL
    )""",
)

# the column that orders the rows of an experiment, which are deleted in pieces
PIECES = {"requests": "key", "snapshots": "seq", "arms": "number", "events": "seq"}

# the column types of tables into which many rows are inserted at once
TYPES = {
    "arms": ("bigint", "bigint", "text", "bytea"),
    "events": (
        *("bigint", "bigint", "float8", "text", "bigint", "bigint", "float8", "text", "bigint"),
    ),
    "requests": ("bigint", "text", "text", "text", "float8"),
}
