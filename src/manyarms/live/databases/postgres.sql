-- The tables of PostgreSQL; those of SQLite are the same in its words. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL);
INSERT INTO schema_version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM schema_version);

CREATE TABLE IF NOT EXISTS experiments (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,               -- JSON, 'null' where a handle is recorded without the service
    state TEXT NOT NULL,
    epoch BIGINT NOT NULL DEFAULT 0, -- raised with every owner: the fence
    head BIGINT NOT NULL DEFAULT 0,  -- the last event
    owner TEXT NOT NULL DEFAULT '',
    lease_until DOUBLE PRECISION NOT NULL DEFAULT 0,
    engine TEXT NOT NULL DEFAULT '',  -- the code that wrote what lies after the last snapshot
    generation BIGINT NOT NULL DEFAULT 1,
    secret TEXT NOT NULL,             -- signs tickets
    keyed BIGINT NOT NULL DEFAULT 0,
    first_arms BIGINT NOT NULL DEFAULT 0,
    n_arms BIGINT NOT NULL DEFAULT 0, -- arms that ever came; rows of `arms` beyond are no arms yet
    created DOUBLE PRECISION NOT NULL
);

CREATE TABLE IF NOT EXISTS events (
    experiment BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    pull BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    reward DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    more TEXT,                        -- JSON, for what has no column
    PRIMARY KEY (experiment, seq)
);
CREATE UNIQUE INDEX IF NOT EXISTS ended ON events (experiment, pull) WHERE kind IN (2, 3, 7);

CREATE TABLE IF NOT EXISTS ask_keys (
    experiment BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    pull BIGINT NOT NULL,
    k BIGINT NOT NULL,
    again TEXT,                       -- JSON: pulls that were in flight already
    body TEXT NOT NULL,
    worker TEXT,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (experiment, key)
);
CREATE INDEX IF NOT EXISTS ask_keys_at ON ask_keys (experiment, at);

CREATE TABLE IF NOT EXISTS arms (
    experiment BIGINT NOT NULL,
    number BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (experiment, number)
);
CREATE UNIQUE INDEX IF NOT EXISTS arm_keys ON arms (experiment, key);

CREATE TABLE IF NOT EXISTS snapshots (
    experiment BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    engine TEXT NOT NULL,
    state BYTEA NOT NULL,
    more BYTEA NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (experiment, seq)
);

CREATE TABLE IF NOT EXISTS minutes (
    experiment BIGINT NOT NULL,
    minute BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    told BIGINT NOT NULL,
    abandoned BIGINT NOT NULL,
    reward DOUBLE PRECISION NOT NULL,
    fresh BIGINT NOT NULL,
    PRIMARY KEY (experiment, minute)
);

CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    experiment TEXT,
    origins TEXT NOT NULL,
    rate DOUBLE PRECISION,
    expires DOUBLE PRECISION
);

CREATE TABLE IF NOT EXISTS audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    token TEXT NOT NULL,
    experiment TEXT,
    action TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_of ON audit (experiment, id);

CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
