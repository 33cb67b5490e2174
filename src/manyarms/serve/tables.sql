-- The tables of the service, beside those of live/databases/tables.sql.
CREATE TABLE IF NOT EXISTS ask_keys (
    experiment INTEGER NOT NULL,
    key TEXT NOT NULL,
    k INTEGER NOT NULL,               -- pulls that were asked for
    pull INTEGER NOT NULL,            -- the first one that was given
    count INTEGER NOT NULL,           -- and how many
    pulls TEXT,                       -- JSON: all of them, where they are not consecutive
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
    expires REAL
);

CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- what the list shows of experiments that are not loaded
CREATE TABLE IF NOT EXISTS summaries (
    experiment INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,
    summary TEXT NOT NULL             -- JSON
);
