-- One row of time: the latest instant any process has seen, so that the store's clock never goes back.
CREATE TABLE clock (now REAL NOT NULL);
INSERT INTO clock VALUES (0);

CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,          -- order of arrival
    id           TEXT    NOT NULL UNIQUE,
    task         TEXT    NOT NULL,
    key          TEXT,
    priority     INTEGER NOT NULL,
    created_at   REAL    NOT NULL,
    body         TEXT    NOT NULL,             -- domain.wire: written once, never rewritten
    -- where it stands
    state        TEXT    NOT NULL,
    due_at       REAL    NOT NULL,
    expires_at   REAL,
    fence        INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    losses       INTEGER NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0,
    reason       TEXT,
    note         TEXT,
    error        TEXT,
    finished_at  REAL,
    attempts     TEXT    NOT NULL DEFAULT '[]',
    result       TEXT,
    -- its lease, while running
    worker       TEXT,
    claim_n      INTEGER,                      -- the claim of that worker which took it
    claimed_at   REAL,
    until        REAL,
    offer_at     REAL                          -- lapsed: not offered for rescue before
);

-- The due index: a lane per (task, priority), in the order of being due.
CREATE INDEX runs_due      ON runs (task, priority DESC, due_at, seq) WHERE state = 'queued';
CREATE INDEX runs_expiring ON runs (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_leased   ON runs (until) WHERE state = 'running';
CREATE INDEX runs_claimed  ON runs (worker, claim_n) WHERE state = 'running';
CREATE INDEX runs_asked    ON runs (id) WHERE state = 'running' AND cancel_asked = 1;
CREATE INDEX runs_ended    ON runs (task, finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE workers (
    name    TEXT    PRIMARY KEY,
    n       INTEGER NOT NULL,                  -- its latest claim
    tasks   TEXT    NOT NULL,                  -- JSON array of names
    seen_at REAL    NOT NULL,
    idle    INTEGER NOT NULL,                  -- 1 from a claim that left seats empty until a hint
    wake_at REAL
) WITHOUT ROWID;
