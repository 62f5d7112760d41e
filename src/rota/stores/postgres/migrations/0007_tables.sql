-- Tables, indexes, views and types; functions are elsewhere. A migration has the number that the schema has after it, runs
-- with the store's schema as the search path (no file names it), and is not edited once it is released. This one makes a
-- new schema: the numbers before it were never released.
--
-- A run moves: queue (waits) -> leases (runs) -> finished (ended). Updating an indexed column in one big table would
-- write every index again; moving writes only those of the table it goes to. Instants are Unix seconds.

CREATE SEQUENCE arrivals;                          -- the order of arrival

-- The latest instant a verb has written down; see now_of.
CREATE TABLE clock (latest float8 NOT NULL) WITH (fillfactor = 50);
INSERT INTO clock VALUES (0);

CREATE TABLE queue (
    seq        bigint   NOT NULL DEFAULT nextval('arrivals'),
    priority   smallint NOT NULL,
    hold       smallint NOT NULL DEFAULT 0,        -- 0 none: in the due index; 1 parked; 2 has needs; 3 paused
    fence      integer  NOT NULL DEFAULT 0,
    failures   integer  NOT NULL DEFAULT 0,
    losses     integer  NOT NULL DEFAULT 0,
    created_at float8   NOT NULL,
    due_at     float8   NOT NULL,
    expires_at float8,
    marked     boolean  NOT NULL DEFAULT false,    -- its ending is remembered in marks
    awaited    boolean  NOT NULL DEFAULT false,    -- some run in waits waits for its end
    called     boolean  NOT NULL DEFAULT true,     -- false: nobody was idle when it was put; see `missed`
    id         text     COLLATE "C" NOT NULL PRIMARY KEY,
    task       text     COLLATE "C" NOT NULL,
    key        text     COLLATE "C",
    unique_key text     COLLATE "C",               -- what it may not stand beside; NULL: anything
    body       bytea    NOT NULL,                  -- domain.wire: written by the submitter, never by a worker
    needs      text[],                             -- what it waits for: the ends of runs, names as in domain.needs
    rest       text,                               -- JSON: rules to be judged again when the last of them has ended
    attempts   text[],                             -- JSON objects, the last 20
    note       text,
    error      text,                               -- JSON, as are progress and the attempts: never read in here
    progress   text,
    saved      bytea                               -- the handler's checkpoint
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 10);

-- The due index: a lane per (task, priority), in the order of being due.
CREATE INDEX queue_due      ON queue (task, priority DESC, due_at, seq) WHERE hold = 0;
CREATE INDEX queue_parked   ON queue (task, key, priority DESC, due_at, seq) WHERE hold = 1;
CREATE INDEX queue_held     ON queue (task) WHERE hold > 1;
CREATE INDEX queue_suspects ON queue (task, priority DESC, due_at, seq) WHERE losses > 0 AND hold = 0;
CREATE INDEX queue_expiring ON queue (expires_at) WHERE expires_at IS NOT NULL AND hold <> 3;
CREATE INDEX queue_seq      ON queue (seq);
CREATE UNIQUE INDEX queue_unique ON queue (task, unique_key) WHERE unique_key IS NOT NULL;

CREATE TABLE leases (
    seq          bigint   NOT NULL,
    priority     smallint NOT NULL,
    fence        integer  NOT NULL,
    failures     integer  NOT NULL,
    losses       integer  NOT NULL,
    claim_n      bigint   NOT NULL,                -- the claim of that worker which took it
    created_at   float8   NOT NULL,
    due_at       float8   NOT NULL,
    claimed_at   float8   NOT NULL,
    until        float8   NOT NULL,
    expires_at   float8,
    offer_at     float8,                           -- lapsed: not offered for rescue before
    marked       boolean  NOT NULL,
    awaited      boolean  NOT NULL,
    cancel_asked boolean  NOT NULL DEFAULT false,
    pause_asked  boolean  NOT NULL DEFAULT false,
    gated        boolean  NOT NULL DEFAULT false,  -- its task has a limit or a rate: counted by (task, key)
    id           text     COLLATE "C" NOT NULL PRIMARY KEY,
    task         text     COLLATE "C" NOT NULL,
    key          text     COLLATE "C",
    unique_key   text     COLLATE "C",
    worker       text     COLLATE "C" NOT NULL,
    body         bytea    NOT NULL,
    needs        text[],
    rest         text,
    attempts     text[],
    note         text,
    error        text,
    progress     text,
    saved        bytea
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX leases_until    ON leases (until);
CREATE INDEX leases_gated    ON leases (task, key) WHERE gated;
CREATE INDEX leases_unique   ON leases (task, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX leases_suspects ON leases (worker) WHERE losses > 0;

CREATE TABLE finished (
    seq          bigint   NOT NULL,
    priority     smallint NOT NULL,
    fence        integer  NOT NULL,
    failures     integer  NOT NULL,
    losses       integer  NOT NULL,
    created_at   float8   NOT NULL,
    due_at       float8   NOT NULL,
    finished_at  float8   NOT NULL,
    expires_at   float8,
    marked       boolean  NOT NULL,
    awaited      boolean  NOT NULL,
    cancel_asked boolean  NOT NULL,
    pause_asked  boolean  NOT NULL,
    id           text     COLLATE "C" NOT NULL PRIMARY KEY,
    task         text     COLLATE "C" NOT NULL,
    key          text     COLLATE "C",
    unique_key   text     COLLATE "C",
    state        text     COLLATE "C" NOT NULL,
    reason       text     COLLATE "C",
    body         bytea    NOT NULL,
    result       bytea,
    needs        text[],
    rest         text,
    attempts     text[],
    note         text,
    error        text,
    progress     text,
    saved        bytea
);
CREATE INDEX finished_seq   ON finished (seq);
CREATE INDEX finished_ended ON finished (task, finished_at, seq);

CREATE TABLE waits (
    ended text COLLATE "C" NOT NULL,               -- the run whose end, or the name of what is done,
    run   text COLLATE "C" NOT NULL,               -- this one waits for
    PRIMARY KEY (ended, run)
);

CREATE TABLE specs (
    name          text    COLLATE "C" PRIMARY KEY,
    spec          text    NOT NULL,                -- domain.spec as JSON, without `paused`
    enabled       boolean NOT NULL,
    paused        boolean NOT NULL DEFAULT false,
    gated         boolean NOT NULL,                -- has a limit or a rate; who takes or gives its seats locks this row
    total         integer,
    per_key       integer,
    rate_interval float8,                          -- seconds between two starts at the even pace
    rate_burst    integer,
    rate_per_key  boolean,
    mark_memory   float8                           -- seconds for which its marks are kept; NULL: the usual
);

CREATE TABLE rates (
    task     text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,          -- '' for the task's own rate
    full_at  float8 NOT NULL,                      -- GCRA: when the bucket would be full again
    opens_at float8,                               -- when parked runs of this key may go on; NULL: none wait for that
    PRIMARY KEY (task, key)
);
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE marks (
    task         text    COLLATE "C" NOT NULL,
    key          text    COLLATE "C" NOT NULL,
    succeeded_at float8,
    finished_at  float8,
    failures     integer NOT NULL,
    PRIMARY KEY (task, key)
);
CREATE INDEX marks_old ON marks (task, finished_at);

CREATE TABLE decisions (
    task     text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    reason   text   COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    first_at float8 NOT NULL,
    last_at  float8 NOT NULL,
    run      text,
    note     text,
    by       text,
    PRIMARY KEY (task, key, reason)
);
CREATE INDEX decisions_old ON decisions (last_at);

CREATE TABLE schedules (
    id       text    COLLATE "C" PRIMARY KEY,
    task     text    COLLATE "C" NOT NULL,
    key      text    COLLATE "C" NOT NULL,
    owner    text    COLLATE "C" NOT NULL,
    declared text    NOT NULL,                     -- domain.schedule as JSON: its upper half, what was declared
    times    text    NOT NULL,                     -- JSON: the part of it that says when it fires
    anchor   float8,                               -- from here on: where it stands
    next_at  float8,
    fires_at float8,
    version  integer NOT NULL,
    since    float8  NOT NULL,
    paused   boolean NOT NULL,
    note     text,
    recent   text[]  NOT NULL DEFAULT '{}',        -- JSON pairs, the last 30
    last_at  float8,                               -- the nominal time of the last of them
    look_at  float8                                -- when it fires, or is offered again; NULL: paused, or no tick left
);
CREATE INDEX schedules_due  ON schedules (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX schedules_over ON schedules (since) WHERE next_at IS NULL AND owner = '';

CREATE TABLE workers (
    name     text     COLLATE "C" PRIMARY KEY,
    n        bigint   NOT NULL,                    -- its latest claim
    batch    text[],                               -- the runs which that claim took
    tasks    text[]   NOT NULL,
    seen_at  float8   NOT NULL,
    idle     smallint NOT NULL,                    -- 1 from a claim that left seats empty; 2 once hinted; 0 while busy
    wake_at  float8,
    report   text     NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

CREATE TABLE stats (
    minute    bigint NOT NULL,
    task      text   COLLATE "C" NOT NULL,
    counts    bigint[] NOT NULL,                   -- succeeded, failed, retried, other
    waits     bigint[] NOT NULL,                   -- by bucket, from bucket 0
    durations bigint[] NOT NULL,
    PRIMARY KEY (minute, task)
);

-- Processes that listen for hints, by the server's own clock. Without one, nothing is sent: NOTIFY serialises commits.
CREATE TABLE listeners (
    id    text        COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL
);

-- A run, from each of the three tables and wherever it is.
CREATE VIEW queue_runs AS
SELECT seq, id, CASE hold WHEN 3 THEN 'paused' ELSE 'queued' END AS state, due_at, expires_at, fence, failures, losses,
       NULL::text AS worker, NULL::float8 AS claimed_at, NULL::float8 AS until, false AS cancel_asked,
       false AS pause_asked, hold = 1 AS parked, NULL::text AS reason, note, error, NULL::float8 AS finished_at,
       attempts, progress, task, key, unique_key, marked, priority, created_at, needs, awaited, rest,
       NULL::bytea AS result, saved, body
FROM queue;

CREATE VIEW lease_runs AS
SELECT seq, id, 'running'::text AS state, due_at, expires_at, fence, failures, losses, worker::text, claimed_at, until,
       cancel_asked, pause_asked, false AS parked, NULL::text AS reason, note, error, NULL::float8 AS finished_at,
       attempts, progress, task, key, unique_key, marked, priority, created_at, needs, awaited, rest,
       NULL::bytea AS result, saved, body
FROM leases;

CREATE VIEW finished_runs AS
SELECT seq, id, state::text, due_at, expires_at, fence, failures, losses, NULL::text AS worker,
       NULL::float8 AS claimed_at, NULL::float8 AS until, cancel_asked, pause_asked, false AS parked, reason::text,
       note, error, finished_at, attempts, progress, task, key, unique_key, marked, priority, created_at, needs,
       awaited, rest, result, saved, body
FROM finished;

CREATE VIEW runs AS
SELECT * FROM queue_runs UNION ALL SELECT * FROM lease_runs UNION ALL SELECT * FROM finished_runs;

-- What a claim answers: a header, and a run or a schedule (its id, and all of it as JSON in its header) per row.
CREATE VIEW claimed AS SELECT NULL::text AS kind, NULL::text AS name, NULL::text AS header, r.* FROM runs r;
