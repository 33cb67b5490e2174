-- The tables of a log, in the words of SQLite; postgres.py has those of PostgreSQL. Times are seconds since 1970.
-- Those that only the service has are in serve/tables.sql.
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM schema_version);

CREATE TABLE IF NOT EXISTS experiments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,               -- JSON, 'null' where a handle is recorded without the service
    state TEXT NOT NULL,
    head INTEGER NOT NULL DEFAULT 0,  -- the last event: whoever commits must know it
    version TEXT NOT NULL DEFAULT '', -- the manyarms that wrote the last events
    secret TEXT NOT NULL,             -- draws the seed, if none is given
    keyed INTEGER NOT NULL DEFAULT 0,
    first_arms INTEGER NOT NULL DEFAULT 0,
    n_arms INTEGER NOT NULL DEFAULT 0, -- arms that ever came; rows of `arms` beyond are no arms yet
    created REAL NOT NULL
);

CREATE TABLE IF NOT EXISTS events (
    experiment INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    pull INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    reward REAL NOT NULL,
    at REAL NOT NULL,
    more TEXT,                        -- JSON, for what has no column
    PRIMARY KEY (experiment, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS ended ON events (experiment, pull) WHERE kind IN (2, 3, 7);

CREATE TABLE IF NOT EXISTS snapshots (
    experiment INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state BLOB NOT NULL,
    more BLOB NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (experiment, seq)
);
