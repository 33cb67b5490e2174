-- The tables of the service, beside those of live/databases/tables.sql.
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

-- pictures of arms, and pages about them
CREATE TABLE IF NOT EXISTS links (
    experiment INTEGER NOT NULL,
    key TEXT NOT NULL,
    image_url TEXT,
    url TEXT,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID;

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

-- what the list shows of experiments that are not loaded
CREATE TABLE IF NOT EXISTS summaries (
    experiment INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,
    summary TEXT NOT NULL             -- JSON
);
