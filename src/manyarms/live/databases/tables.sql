-- The tables, in the words of SQLite; postgres.py has those of PostgreSQL. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM schema_version);

CREATE TABLE IF NOT EXISTS experiments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,               -- JSON, 'null' where a handle is recorded without the service
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0, -- raised with every owner: the fence
    head INTEGER NOT NULL DEFAULT 0,  -- the last event
    owner TEXT NOT NULL DEFAULT '',
    lease_until REAL NOT NULL DEFAULT 0,
    engine TEXT NOT NULL DEFAULT '',  -- the code that wrote what lies after the last snapshot
    generation INTEGER NOT NULL DEFAULT 1,
    secret TEXT NOT NULL,             -- signs tickets
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

CREATE TABLE IF NOT EXISTS ask_keys (
    experiment INTEGER NOT NULL,
    key TEXT NOT NULL,
    pull INTEGER NOT NULL,
    k INTEGER NOT NULL,
    again TEXT,                       -- JSON: pulls that were in flight already
    body TEXT NOT NULL,
    worker TEXT,
    at REAL NOT NULL,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ask_keys_at ON ask_keys (experiment, at);

CREATE TABLE IF NOT EXISTS arms (
    experiment INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (experiment, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS arm_keys ON arms (experiment, key);

CREATE TABLE IF NOT EXISTS snapshots (
    experiment INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    engine TEXT NOT NULL,
    state BLOB NOT NULL,
    more BLOB NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (experiment, seq)
);

CREATE TABLE IF NOT EXISTS minutes (
    experiment INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    told INTEGER NOT NULL,
    abandoned INTEGER NOT NULL,
    reward REAL NOT NULL,
    fresh INTEGER NOT NULL,
    PRIMARY KEY (experiment, minute)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    experiment TEXT,
    origins TEXT NOT NULL,
    rate REAL,
    expires REAL
);

CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    token TEXT NOT NULL,
    experiment TEXT,
    action TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_of ON audit (experiment, id);

CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
