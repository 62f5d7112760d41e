-- Tables and indexes. The n-th migration brings the file to version n (PRAGMA user_version), and is never edited once it is
-- released. Instants are Unix seconds.

-- One row: the latest instant that any process has seen, so that the store's clock never goes back, and a number that
-- changes whenever a task's spec does, so that a transaction need not read the specs again.
-- Transactions record events until `record_until`. `event` is the number of the last event, `gone` of the last forgotten one.
CREATE TABLE clock (
    now          REAL    NOT NULL,
    specs        INTEGER NOT NULL,
    record_until REAL    NOT NULL,
    event        INTEGER NOT NULL,
    gone         INTEGER NOT NULL
);
INSERT INTO clock VALUES (0, 0, 0, 0, 0);

-- Long values come last: SQLite reads a row from its beginning, and what does not fit into a page lies in others.
CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,          -- the order in which runs arrive
    id           TEXT    NOT NULL UNIQUE,
    task         TEXT    NOT NULL,
    key          TEXT,
    unique_key   TEXT,                         -- the key by which it is unique; NULL: it need not be
    grp          TEXT,                         -- the flow, chain or plan that it belongs to
    writes_mark  INTEGER NOT NULL DEFAULT 0,   -- its ending is remembered in marks
    queue        TEXT    NOT NULL DEFAULT '',  -- '': the default queue
    share        TEXT    NOT NULL DEFAULT '',  -- by what waiting runs take turns; '': it has none
    priority     INTEGER NOT NULL,
    created_at   REAL    NOT NULL,
    touches      INTEGER NOT NULL DEFAULT 1,   -- number of puts, joins included
    touched_at   REAL,                         -- time of the last put; NULL: created_at
    -- state of the run
    state        TEXT    NOT NULL,
    due_at       REAL    NOT NULL,
    expires_at   REAL,
    fence        INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    losses       INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    pause_requested  INTEGER NOT NULL DEFAULT 0,
    hold         INTEGER NOT NULL DEFAULT 0,   -- what holds a queued run: see Hold in rota/stores/fields.py; 0: in runs_due
    awaited      INTEGER NOT NULL DEFAULT 0,   -- some run in `waits` waits for its end
    reason       TEXT,
    finished_at  REAL,
    -- its lease, while it runs
    worker       TEXT,
    claim_n      INTEGER,                      -- which claim of its worker took it
    claimed_at   REAL,
    until        REAL,
    offer_at     REAL,                         -- no claim offers the lapsed lease before this time
    -- what may be long
    needs        TEXT,                         -- JSON array: the runs whose end it waits for, and names as in domain.needs
    cooldowns    TEXT,                         -- JSON array: the rules that judge it again once all its needs are met
    note         TEXT,
    error        TEXT,
    attempts     TEXT    NOT NULL DEFAULT '[]',
    progress     TEXT,
    saved        TEXT,                         -- the handler's checkpoint
    result       TEXT,
    body         TEXT    NOT NULL              -- domain.codec: the submitter writes it, a worker never does
);

-- The due index: a lane for each task, queue, priority and share, in the order in which its runs are due.
CREATE INDEX runs_due      ON runs (task, queue DESC, priority DESC, share DESC, due_at, seq) WHERE state = 'queued' AND hold = 0;
CREATE INDEX runs_shared   ON runs (task, queue, priority, due_at) WHERE state = 'queued' AND hold = 0 AND share <> '';
CREATE INDEX runs_parked   ON runs (task, key, queue DESC, priority DESC, due_at, seq) WHERE state = 'queued' AND hold = 1;
CREATE INDEX runs_waiting  ON runs (task) WHERE state = 'queued' AND hold = 2;
CREATE INDEX runs_paused   ON runs (task) WHERE state = 'paused';
CREATE INDEX runs_running  ON runs (task, key) WHERE state = 'running';
CREATE INDEX runs_unique   ON runs (task, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_expiring ON runs (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_leased   ON runs (until) WHERE state = 'running';
CREATE INDEX runs_claimed  ON runs (worker, claim_n) WHERE state = 'running';
CREATE INDEX runs_requested ON runs (id) WHERE state = 'running' AND (cancel_requested = 1 OR pause_requested = 1);
CREATE INDEX runs_ended    ON runs (task, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_grouped  ON runs (grp) WHERE grp IS NOT NULL;
-- For reads only. Every index has the rowid, which is `seq`, behind its columns.
CREATE INDEX runs_of_task  ON runs (task);
CREATE INDEX runs_keyed    ON runs (key) WHERE key IS NOT NULL;
CREATE INDEX runs_uniquely ON runs (unique_key) WHERE unique_key IS NOT NULL AND unique_key IS NOT key;
CREATE INDEX runs_failed   ON runs (state) WHERE state IN ('failed', 'cancelled');
CREATE INDEX runs_failed_ended ON runs (task, finished_at) WHERE state IN ('failed', 'cancelled');

CREATE TABLE waits (
    ended TEXT NOT NULL,                       -- the id of a run, or a name as in domain.needs
    run   TEXT NOT NULL,                       -- the run that waits for the end of `ended`
    PRIMARY KEY (ended, run)
) WITHOUT ROWID;

-- The ids that submitters gave to their runs. `state` and `ended_at` are set when retention deletes the run.
CREATE TABLE ids (
    id          TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,                 -- domain.ids: a digest of the task and the arguments
    state       TEXT,
    ended_at    REAL
) WITHOUT ROWID;
CREATE INDEX ids_ended ON ids (ended_at) WHERE ended_at IS NOT NULL;

-- Runs that are put when `run` ends; `run` is `awaited` then.
CREATE TABLE callbacks (
    run   TEXT PRIMARY KEY,
    calls TEXT NOT NULL                        -- domain.run: CallbackRun as JSON, in an array
) WITHOUT ROWID;

CREATE TABLE fans (
    id         TEXT PRIMARY KEY,
    total      INTEGER,                        -- NULL: the list still grows
    allowed    INTEGER,                        -- how many children may end without success; NULL: all
    ended      INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    created_at REAL    NOT NULL
) WITHOUT ROWID;

CREATE TABLE specs (
    name TEXT PRIMARY KEY,
    spec TEXT NOT NULL                         -- domain.spec as JSON
) WITHOUT ROWID;

-- The named limits that the leases count against.
CREATE TABLE counted (
    run   TEXT NOT NULL,
    limit_row TEXT NOT NULL,                   -- the name of the row in specs that has the number: see LIMIT_ROW in domain.spec
    PRIMARY KEY (run, limit_row)
) WITHOUT ROWID;
CREATE INDEX counted_limits ON counted (limit_row);

-- One row while the store is frozen: nothing starts.
CREATE TABLE freezes (one INTEGER PRIMARY KEY, freeze TEXT NOT NULL);

-- What people asked for: entries are added, and the oldest are deleted.
CREATE TABLE audit (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    at      REAL NOT NULL,
    changed INTEGER NOT NULL,
    entry   TEXT NOT NULL                      -- store.audit as JSON
);

CREATE TABLE rates (
    task     TEXT NOT NULL,
    key      TEXT NOT NULL,                    -- '' for the task's own rate
    full_at  REAL NOT NULL,                    -- GCRA: when the bucket would be full again
    opens_at REAL,                             -- when parked runs of this key may go on; NULL: none wait for that
    PRIMARY KEY (task, key)
) WITHOUT ROWID;
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;

-- Whose turn it is: see rota/stores/ledger/shares.py.
CREATE TABLE turns (
    task     TEXT    NOT NULL,
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    share    TEXT    NOT NULL,
    got      INTEGER NOT NULL,                 -- how many runs it has got in this turn
    PRIMARY KEY (task, queue, priority)
) WITHOUT ROWID;

CREATE TABLE marks (
    task         TEXT NOT NULL,
    key          TEXT NOT NULL,
    succeeded_at REAL,
    finished_at  REAL,
    failures     INTEGER NOT NULL,
    holder       TEXT,                         -- of a row of unique keys: see rota/stores/ledger/uniques.py
    PRIMARY KEY (task, key)
) WITHOUT ROWID;

CREATE TABLE decisions (
    task     TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    count    INTEGER NOT NULL,
    first_at REAL    NOT NULL,
    last_at  REAL    NOT NULL,
    run      TEXT,
    note     TEXT,
    by       TEXT,
    PRIMARY KEY (task, key, reason)
) WITHOUT ROWID;
CREATE INDEX decisions_old ON decisions (last_at);

CREATE TABLE schedules (
    id       TEXT PRIMARY KEY,
    task     TEXT NOT NULL,
    schedule TEXT NOT NULL,                    -- domain.schedule as JSON
    look_at  REAL                              -- when it fires or is offered again; NULL: paused, or no tick is left
);
CREATE INDEX schedules_due ON schedules (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE workers (
    name    TEXT    PRIMARY KEY,
    n       INTEGER NOT NULL,                  -- its latest claim
    tasks   TEXT    NOT NULL,                  -- JSON array of names
    queues  TEXT    NOT NULL DEFAULT '[]',     -- JSON array of names; empty: all queues
    seen_at REAL    NOT NULL,
    idle    INTEGER NOT NULL,                  -- 0: busy; 1: its claim left seats empty; 2: it was sent a hint since
    wake_at REAL,
    report  TEXT    NOT NULL DEFAULT '{}',
    orders  TEXT    NOT NULL DEFAULT '[]'      -- store.reports.Orders as JSON: what people ask of it
) WITHOUT ROWID;

CREATE TABLE stats (                          -- minute 0: the totals, which are never deleted
    minute INTEGER NOT NULL,
    task   TEXT    NOT NULL,
    tally  TEXT    NOT NULL,
    PRIMARY KEY (minute, task)
) WITHOUT ROWID;

CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    event  TEXT NOT NULL,                      -- EventRow of rota/stores/events.py as JSON
    grp    TEXT                                -- the group of its run
);
