-- Tables, indexes and types. Functions and views are in ../functions: rota replaces them when they have changed.
--
-- The number of a migration is the version that the schema has after it. A migration runs with the store's schema as the
-- search path, so no file names the schema. A migration is never edited once it is released.
--
-- A run moves from table to table: queue (it waits) -> leases (it runs) -> finished (it has ended). Updating an indexed
-- column in one big table would write every index of that table again; a move writes only the indexes of the table that
-- the run goes to. Columns of fixed width come first and long values last, so that reading the first skips the others.
--
-- Instants are Unix seconds. Names are compared as bytes (COLLATE "C"), as the other stores compare them.

-- Which functions this schema has. The number grows with every change of a function: a process with an older number does not
-- replace them.
CREATE TABLE functions (
    number integer NOT NULL,
    digest text    NOT NULL,                       -- the SHA-256 of all functions
    heads  text[]  NOT NULL                        -- each function without its body
);
INSERT INTO functions VALUES (0, '', '{}');

CREATE SEQUENCE arrivals;                          -- the order in which runs arrive: their `seq`

-- The latest time of the store in units of 10 microseconds, so that the store's clock never goes back. See now_of.
CREATE SEQUENCE clock;

-- Events for other processes: see functions/events.sql. Verbs record them until `record_until`, in units of 10
-- microseconds. No event up to `events_from` or `events_gone` is known any more.
CREATE SEQUENCE event_numbers;
CREATE SEQUENCE record_until;
CREATE SEQUENCE events_from;
CREATE SEQUENCE events_gone;
-- Numbers begin at the present time: a reader of a schema that was dropped gets a gap.
SELECT setval('event_numbers', (extract(epoch FROM clock_timestamp()) * 100000)::bigint);

CREATE TABLE events (
    number bigint  PRIMARY KEY,
    at     float8  NOT NULL,
    fence  integer NOT NULL,
    name   text    NOT NULL,
    about  text    NOT NULL,                       -- runs, tasks or schedules
    id     text    NOT NULL,
    task   text    NOT NULL,
    key    text,
    state  text,
    reason text,
    worker text,
    grp    text
);

-- Where looks through an index begin: see functions/floors.sql.
CREATE TABLE floors (
    kind      smallint NOT NULL,
    task      text     COLLATE "C" NOT NULL,       -- of a lane; '' for the other kinds
    queue     text     COLLATE "C" NOT NULL,       -- of a lane, as in the table queue; '' for the other kinds
    priority  smallint NOT NULL,                   -- of a lane; 0 for the other kinds
    version   bigint   NOT NULL,                   -- grows with every change: the latest version is read first
    floor     float8   NOT NULL,
    intended  float8   NOT NULL,                   -- the next floor
    raised_at float8   NOT NULL,
    PRIMARY KEY (kind, task, queue, priority, version)
);

CREATE TABLE queue (
    seq        bigint   NOT NULL DEFAULT nextval('arrivals'),
    priority   smallint NOT NULL,
    hold       smallint NOT NULL DEFAULT 0,        -- see Hold in rota/stores/fields.py; 0: it is in queue_due
    fence      integer  NOT NULL DEFAULT 0,
    failures   integer  NOT NULL DEFAULT 0,
    losses     integer  NOT NULL DEFAULT 0,
    created_at float8   NOT NULL,
    due_at     float8   NOT NULL,
    lane_at    float8,                             -- its place in its lane (lane_place); NULL: its transaction is open
    expires_at float8,
    touched_at float8,                             -- the time of the last put that joined it; NULL: no put has joined it
    touches    integer,                            -- the number of puts: the first and those that joined it; NULL: 1
    writes_mark boolean NOT NULL DEFAULT false,    -- its ending is written into marks
    awaited    boolean  NOT NULL DEFAULT false,    -- a row in waits names its id
    ahead      boolean  NOT NULL DEFAULT false,    -- it was tried, and an equal run waits for its end: see queue_unique
    id         text     COLLATE "C" NOT NULL PRIMARY KEY,
    task       text     COLLATE "C" NOT NULL,
    key        text     COLLATE "C",
    unique_key text     COLLATE "C",               -- NULL: it has no unique key
    queue      text     COLLATE "C" NOT NULL DEFAULT '',  -- '': the default queue
    share      text     COLLATE "C",               -- by what waiting runs of the task take turns; NULL: it has none
    body       bytea    NOT NULL,                  -- domain.codec: the submitter writes it, a worker never does
    needs      text[],                             -- ids of the runs and names that it waits for: see domain.needs
    cooldowns  text,                               -- JSON: the cooldown rules that apply when its last need is met
    attempts   text[],                             -- JSON objects, the last 20
    note       text,
    error      text,                               -- JSON, as is progress; no function reads them
    progress   text,
    saved      bytea                               -- the handler's checkpoint
);

-- queue_due is the due index: it has a lane for each task, queue and priority, in the order of the due times.
CREATE INDEX queue_due      ON queue (task, queue, priority DESC, lane_at, due_at, seq) WHERE hold = 0;
CREATE INDEX queue_parked   ON queue (task, key, queue, priority DESC, due_at, seq) WHERE hold = 1;
CREATE INDEX queue_held     ON queue (task) WHERE hold > 1;
CREATE INDEX queue_shared   ON queue (task, queue, priority, share, due_at, seq) WHERE hold = 0 AND share IS NOT NULL;
CREATE INDEX queue_suspects ON queue (task, priority DESC, due_at, seq) WHERE losses > 0 AND hold = 0;
CREATE INDEX queue_expiring ON queue (expires_at) WHERE expires_at IS NOT NULL AND hold <> 3;
CREATE INDEX queue_seq      ON queue (seq);
CREATE INDEX queue_keyed    ON queue (key, seq) WHERE key IS NOT NULL;
CREATE INDEX queue_uniquely ON queue (unique_key, seq) WHERE unique_key IS NOT NULL AND unique_key IS DISTINCT FROM key;
-- At most one run of a unique key waits, with one exception: a run that was tried and waits for its retry may have one equal
-- run behind it, which waits for its end. The first of these two is `ahead`.
CREATE UNIQUE INDEX queue_unique ON queue (task, unique_key, ahead) WHERE unique_key IS NOT NULL;

-- A run that is put in the transaction of a caller comes into its lane when that transaction commits: see functions/floors.sql.
CREATE FUNCTION place_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER place_at_commit AFTER INSERT OR UPDATE ON queue DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.lane_at IS NULL) EXECUTE FUNCTION place_at_commit();

-- The queues of tasks, except the default one: where a worker of all queues looks for runs. No row is ever removed, because a
-- put that finds its row relies on it. There is no key: two puts may add the same row, and neither waits for the other.
CREATE TABLE task_queues (
    task  text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL
);
CREATE INDEX task_queues_of ON task_queues (task, queue);

CREATE TABLE leases (
    seq          bigint   NOT NULL,
    priority     smallint NOT NULL,
    fence        integer  NOT NULL,
    failures     integer  NOT NULL,
    losses       integer  NOT NULL,
    claim_n      bigint   NOT NULL,                -- the number of the claim of its worker that took it
    created_at   float8   NOT NULL,
    due_at       float8   NOT NULL,
    claimed_at   float8   NOT NULL,
    until        float8   NOT NULL,
    expires_at   float8,
    offer_at     float8,                           -- after it has lapsed: no claim is offered it before this time
    touched_at   float8,
    touches      integer,
    writes_mark  boolean  NOT NULL,
    awaited      boolean  NOT NULL,
    cancel_requested boolean  NOT NULL DEFAULT false,
    pause_requested  boolean  NOT NULL DEFAULT false,
    gated        boolean  NOT NULL DEFAULT false,  -- its task has a limit or a rate: it is counted in running
    id           text     COLLATE "C" NOT NULL PRIMARY KEY,
    task         text     COLLATE "C" NOT NULL,
    key          text     COLLATE "C",
    unique_key   text     COLLATE "C",
    queue        text     COLLATE "C" NOT NULL,
    share        text     COLLATE "C",
    worker       text     COLLATE "C" NOT NULL,
    body         bytea    NOT NULL,
    needs        text[],
    cooldowns    text,
    attempts     text[],
    note         text,
    error        text,
    progress     text,
    saved        bytea,
    limits       text[]                            -- the named limits that it counts against; NULL: none
);

CREATE INDEX leases_until    ON leases (until);
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
    touched_at   float8,
    touches      integer,
    writes_mark  boolean  NOT NULL,
    awaited      boolean  NOT NULL,
    cancel_requested boolean  NOT NULL,
    pause_requested  boolean  NOT NULL,
    id           text     COLLATE "C" NOT NULL PRIMARY KEY,
    task         text     COLLATE "C" NOT NULL,
    key          text     COLLATE "C",
    unique_key   text     COLLATE "C",
    queue        text     COLLATE "C" NOT NULL,
    share        text     COLLATE "C",
    state        text     COLLATE "C" NOT NULL,
    reason       text     COLLATE "C",
    body         bytea    NOT NULL,
    result       bytea,
    needs        text[],
    cooldowns    text,
    attempts     text[],
    note         text,
    error        text,
    progress     text,
    saved        bytea
);
CREATE INDEX finished_seq   ON finished (seq);
CREATE INDEX finished_ended ON finished (task, finished_at, seq);
-- For reads of people. Those who put neither keys nor runs that fail pay for the first one only.
CREATE INDEX finished_of_task  ON finished (task, seq);
CREATE INDEX finished_keyed    ON finished (key, seq) WHERE key IS NOT NULL;
CREATE INDEX finished_uniquely ON finished (unique_key, seq) WHERE unique_key IS NOT NULL AND unique_key IS DISTINCT FROM key;
CREATE INDEX finished_failed   ON finished (seq) WHERE state <> 'succeeded';
CREATE INDEX finished_failed_ended ON finished (task, finished_at, seq) WHERE state <> 'succeeded';

CREATE TABLE waits (
    ended text COLLATE "C" NOT NULL,               -- the id of a run, or a name as in domain.needs
    run   text COLLATE "C" NOT NULL,               -- the run that waits for the end of `ended`
    PRIMARY KEY (ended, run)
);

-- Runs that belong together: a flow, a chain, a plan.
CREATE TABLE grouped (
    run text COLLATE "C" PRIMARY KEY,              -- in any of the three tables; the row goes when the run is swept
    grp text COLLATE "C" NOT NULL
);
CREATE INDEX grouped_by ON grouped (grp, run);

-- The ids that submitters gave to their runs. `state` and `ended_at` are set when retention deletes the run.
CREATE TABLE ids (
    id          text COLLATE "C" PRIMARY KEY,
    fingerprint text NOT NULL,                     -- domain.ids: a digest of the task and the arguments
    state       text,
    ended_at    float8
);
CREATE INDEX ids_ended ON ids (ended_at) WHERE ended_at IS NOT NULL;

-- Runs that are put when `run` ends in `state`; `run` is `awaited` then.
CREATE TABLE callbacks (
    run      text     COLLATE "C" NOT NULL,
    state    text     NOT NULL,
    id       text     NOT NULL,
    task     text     NOT NULL,
    body     bytea    NOT NULL,
    priority smallint NOT NULL,
    queue    text     NOT NULL,
    PRIMARY KEY (run, state)
);

-- How many children of a fan have ended: see functions/fans.sql. The rows die often: they are read by version, the latest first.
CREATE TABLE fans (
    id         text    COLLATE "C" NOT NULL,
    version    bigint  NOT NULL,
    total      integer,                            -- NULL: the list still grows
    allowed    integer,                            -- how many children may end without success; NULL: all
    ended      integer NOT NULL,
    failed     integer NOT NULL,
    created_at float8  NOT NULL,
    PRIMARY KEY (id, version)
);

CREATE TABLE specs (
    name          text    COLLATE "C" PRIMARY KEY,
    spec          text    NOT NULL,                -- domain.spec as JSON, without `paused` and `paused_keys`
    enabled       boolean NOT NULL,
    paused        boolean NOT NULL DEFAULT false,
    gated         boolean NOT NULL,                -- it has a limit, a rate or a paused key: this row is its gate, see lock_gates
    total         integer,
    per_key       integer,
    rate_interval float8,                          -- seconds between two starts at the even pace
    rate_burst    integer,
    rate_per_key  boolean,
    mark_memory   float8,                          -- seconds for which its marks are kept; NULL: the default
    limits        text[]  NOT NULL DEFAULT '{}',   -- its named limits: the names of the rows in specs that have their numbers
    weights       text,                            -- JSON: the weights of its shares; NULL: its runs take no turns
    paused_keys   text[]  NOT NULL DEFAULT '{}'    -- keys of which no run starts
);

-- How many runs of a gated task have leases, and how many leases count against a named limit (its row in specs is the task
-- here). The rows die often: they are read by version, the latest first.
CREATE TABLE running (
    task    text    COLLATE "C" NOT NULL,
    key     text    COLLATE "C" NOT NULL,          -- '=' and the key; '' for all runs of the task
    version bigint  NOT NULL,
    n       integer NOT NULL,
    changed_at float8 NOT NULL,
    PRIMARY KEY (task, key, version)
);

-- Whose turn it is among the shares of a task, queue and priority: see functions/shares.sql.
CREATE TABLE turns (
    task     text     COLLATE "C" NOT NULL,
    queue    text     COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    share    text     COLLATE "C" NOT NULL,
    got      integer  NOT NULL,                    -- how many runs it has got in this turn
    PRIMARY KEY (task, queue, priority)
);

-- One row while the store is frozen: nothing starts.
CREATE TABLE freezes (
    one   boolean PRIMARY KEY CHECK (one),
    since float8  NOT NULL,
    until float8,                                  -- NULL: until somebody thaws it
    note  text,
    by    text
);

-- What people asked for: entries are added, and the oldest are deleted.
CREATE TABLE audit (
    number  bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      text    COLLATE "C" NOT NULL UNIQUE,
    at      float8  NOT NULL,
    changed bigint  NOT NULL,
    entry   text    NOT NULL                       -- store.audit as JSON
);

-- The rows die often: they are read by version, the latest first.
CREATE TABLE rates (
    task     text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,          -- '' for the task's own rate
    version  bigint NOT NULL,
    full_at  float8 NOT NULL,                      -- GCRA: when the bucket would be full again
    opens_at float8,                               -- when parked runs of this key are unparked; NULL: no parked run waits for a token
    PRIMARY KEY (task, key, version)
);
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE marks (
    task         text    COLLATE "C" NOT NULL,
    key          text    COLLATE "C" NOT NULL,
    succeeded_at float8,
    finished_at  float8,
    failures     integer NOT NULL,
    holder       text,                             -- of a row of unique keys: see functions/uniques.sql
    PRIMARY KEY (task, key)
);
CREATE INDEX marks_old ON marks (task, finished_at);

-- The names of the rows of decisions: as schedule_ids for schedules.
CREATE TABLE decision_ids (
    task     text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    reason   text   COLLATE "C" NOT NULL,
    PRIMARY KEY (task, key, reason)
);

-- The rows die often: they are read by version, the latest first.
CREATE TABLE decisions (
    task     text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    reason   text   COLLATE "C" NOT NULL,
    version  bigint NOT NULL,
    count    bigint NOT NULL,
    first_at float8 NOT NULL,
    last_at  float8 NOT NULL,
    run      text,
    note     text,
    by       text,
    PRIMARY KEY (task, key, reason, version)
);
CREATE INDEX decisions_old ON decisions (last_at);

-- What a caller's own transaction did is recorded when it commits: see functions/events.sql.
CREATE FUNCTION record_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER record_at_commit AFTER INSERT OR UPDATE ON decisions DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (current_setting('rota.open', true) <> '') EXECUTE FUNCTION record_at_commit();

-- The ids of the schedules. A row of schedules changes with every tick, and its versions die often: they are read by `change`, the
-- latest first. So the primary key of schedules does not keep an id from being added twice; this table does.
CREATE TABLE schedule_ids (
    id text COLLATE "C" PRIMARY KEY
);

CREATE TABLE schedules (
    id       text    COLLATE "C" NOT NULL,
    task     text    COLLATE "C" NOT NULL,
    key      text    COLLATE "C" NOT NULL,
    owner    text    COLLATE "C" NOT NULL,
    declared text    NOT NULL,                     -- domain.schedule as JSON, only what was declared
    times    text    NOT NULL,                     -- JSON: the part of `declared` that says when it fires
    -- the state of the schedule
    anchor   float8,
    next_at  float8,
    fires_at float8,
    version  integer NOT NULL,
    since    float8  NOT NULL,
    paused   boolean NOT NULL,
    note     text,
    made     integer NOT NULL,                     -- runs that it made, if somebody counts them: see Schedule.left
    recent   text[]  NOT NULL DEFAULT '{}',        -- JSON pairs, the last 30
    last_at  float8,                               -- the nominal time of the last pair
    look_at  float8,                               -- when a claim offers it next; NULL: it is paused, or no tick is left
    change   bigint  NOT NULL,                     -- counts the changes of the row
    PRIMARY KEY (id, change)
);
CREATE INDEX schedules_due  ON schedules (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX schedules_over ON schedules (since) WHERE next_at IS NULL AND owner = '';

CREATE TABLE workers (
    name     text     COLLATE "C" PRIMARY KEY,
    tasks    text[]   NOT NULL,
    queues   text[]   NOT NULL,                    -- the queues that it serves; empty: all queues
    -- what people ask of it: see Orders in rota/store/reports.py
    seats    integer  NOT NULL DEFAULT 0,
    quiet    boolean  NOT NULL DEFAULT false,
    stop     boolean  NOT NULL DEFAULT false
);

-- What changes of a worker with every claim. Its rows die often: they are read by version, the latest first, so that the
-- number of the dead ones does not matter.
CREATE TABLE worker_states (
    name     text     COLLATE "C" NOT NULL,
    version  bigint   NOT NULL,
    n        bigint   NOT NULL,                    -- the number of its latest claim
    seen_at  float8   NOT NULL,
    wake_at  float8,
    idle     smallint NOT NULL,                    -- 0: it has no free seat; 1: its claim left seats free; 2: hinted since
    batch    text[],                               -- the runs that its latest claim took
    report   text     NOT NULL DEFAULT '{}',
    PRIMARY KEY (name, version)
);

-- The rows die often: they are found by version, the latest first. A minute and task may have several rows, which add up.
CREATE TABLE stats (
    minute    bigint NOT NULL,                     -- since 1970; 0: the totals, which are never deleted
    task      text   COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    counts    bigint[] NOT NULL,                   -- ENDINGS of rota/store/reports.py, then waited and ran in microseconds
    waits     bigint[] NOT NULL,                   -- a count for each bucket, from bucket 0 on
    durations bigint[] NOT NULL,
    PRIMARY KEY (minute, task, version)
);

-- Processes that listen for hints. `until` is by the server's clock, not by the store's time. While no process listens, no
-- NOTIFY is sent, because it makes commits wait for each other.
CREATE TABLE listeners (
    id    text        COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL
);

-- A run that is put, with the fields of PUT in rota/stores/fields.py. `put` and `fire` build it by position, `submit` by name
-- from JSON.
CREATE TYPE incoming AS (
    id text, task text, key text, unique_key text, writes_mark boolean, priority smallint, delay float8, at float8,
    expires_after float8, expires_at float8, body bytea, uniqueness text, meeting text, max_wait float8, cooldowns text,
    max_pending integer, needs text, behind boolean, grp text, queue text, fingerprint text, callbacks text, share text,
    unique_row text, within float8, sliding boolean
);

-- A settlement of a claimed run, with the fields of SETTLEMENT in rota/stores/fields.py: see settle.
CREATE TYPE settlement AS (
    id text, fence integer, worker text, state text, reason text, result bytea, delay float8, charge text, error text,
    attempt text, lost boolean, called boolean, mark boolean, progress text, saved bytea, stops text
);

-- The rows of these tables die often. VACUUM comes after 1,000 dead rows and a twentieth of the table, and does not pause.
-- `rota doctor` checks these settings.
DO $$
DECLARE
    busy text;
BEGIN
    FOREACH busy IN ARRAY '{queue,leases,worker_states,floors,running,schedules,marks,rates,decisions,stats,events}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,'
            ' autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 10)', busy);
    END LOOP;
END $$;
