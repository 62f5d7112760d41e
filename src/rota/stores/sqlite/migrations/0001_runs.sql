-- One row: the latest instant any process has seen, so that the store's clock never goes back, and a number that
-- changes whenever a task's spec does, so that specs need not be read in every transaction.
CREATE TABLE clock (now REAL NOT NULL, specs INTEGER NOT NULL);
INSERT INTO clock VALUES (0, 0);

CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,          -- order of arrival
    id           TEXT    NOT NULL UNIQUE,
    task         TEXT    NOT NULL,
    key          TEXT,
    unique_key   TEXT,                         -- what it may not stand beside; NULL: anything
    marked       INTEGER NOT NULL DEFAULT 0,   -- its ending is remembered in marks
    priority     INTEGER NOT NULL,
    created_at   REAL    NOT NULL,
    body         TEXT    NOT NULL,             -- domain.wire: written by the submitter, never by a worker
    -- where it stands
    state        TEXT    NOT NULL,
    due_at       REAL    NOT NULL,
    expires_at   REAL,
    fence        INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    losses       INTEGER NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0,
    pause_asked  INTEGER NOT NULL DEFAULT 0,
    parked       INTEGER NOT NULL DEFAULT 0,   -- its key is saturated: out of the due index until one of them ends
    reason       TEXT,
    note         TEXT,
    error        TEXT,
    finished_at  REAL,
    attempts     TEXT    NOT NULL DEFAULT '[]',
    progress     TEXT,
    saved        TEXT,                         -- the handler's checkpoint
    result       TEXT,
    -- its lease, while running
    worker       TEXT,
    claim_n      INTEGER,                      -- the claim of that worker which took it
    claimed_at   REAL,
    until        REAL,
    offer_at     REAL                          -- lapsed: not offered for rescue before
);

-- The due index: a lane per (task, priority), in the order of being due.
CREATE INDEX runs_due      ON runs (task, priority DESC, due_at, seq) WHERE state = 'queued' AND parked = 0;
CREATE INDEX runs_parked   ON runs (task, key, priority DESC, due_at, seq) WHERE state = 'queued' AND parked = 1;
CREATE INDEX runs_paused   ON runs (task) WHERE state = 'paused';
CREATE INDEX runs_running  ON runs (task, key) WHERE state = 'running';
CREATE INDEX runs_unique   ON runs (task, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_expiring ON runs (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_leased   ON runs (until) WHERE state = 'running';
CREATE INDEX runs_claimed  ON runs (worker, claim_n) WHERE state = 'running';
CREATE INDEX runs_asked    ON runs (id) WHERE state = 'running' AND (cancel_asked = 1 OR pause_asked = 1);
CREATE INDEX runs_ended    ON runs (task, finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE workers (
    name    TEXT    PRIMARY KEY,
    n       INTEGER NOT NULL,                  -- its latest claim
    tasks   TEXT    NOT NULL,                  -- JSON array of names
    seen_at REAL    NOT NULL,
    idle    INTEGER NOT NULL,                  -- 1 from a claim that left seats empty; 2 once hinted; 0 while busy
    wake_at REAL,
    report  TEXT    NOT NULL DEFAULT '{}'
) WITHOUT ROWID;

CREATE TABLE specs (
    name TEXT PRIMARY KEY,
    spec TEXT NOT NULL                         -- domain.spec as JSON
) WITHOUT ROWID;

CREATE TABLE marks (
    task         TEXT NOT NULL,
    key          TEXT NOT NULL,
    succeeded_at REAL,
    finished_at  REAL,
    failures     INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) WITHOUT ROWID;

CREATE TABLE rates (
    task     TEXT NOT NULL,
    key      TEXT NOT NULL,                    -- '' for the task's own rate
    full_at  REAL NOT NULL,
    opens_at REAL,                             -- when parked runs of this key may go on; NULL: none wait for that
    PRIMARY KEY (task, key)
) WITHOUT ROWID;
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE stats (
    minute INTEGER NOT NULL,
    task   TEXT    NOT NULL,
    tally  TEXT    NOT NULL,
    PRIMARY KEY (minute, task)
) WITHOUT ROWID;
