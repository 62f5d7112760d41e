BEGIN TRANSACTION;
CREATE TABLE audit (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    at      REAL NOT NULL,
    changed INTEGER NOT NULL,
    entry   TEXT NOT NULL                      -- store.audit as JSON
);
CREATE TABLE callbacks (
    run   TEXT PRIMARY KEY,
    calls TEXT NOT NULL                        -- domain.run: CallbackRun as JSON, in an array
) WITHOUT ROWID;
CREATE TABLE clock (
    now          REAL    NOT NULL,
    specs        INTEGER NOT NULL,
    record_until REAL    NOT NULL,
    event        INTEGER NOT NULL,
    gone         INTEGER NOT NULL
);
INSERT INTO "clock" VALUES(1794868403.07894,5,0.0,0,0);
CREATE TABLE counted (
    run   TEXT NOT NULL,
    limit_row TEXT NOT NULL,                   -- the name of the row in specs that has the number: see LIMIT_ROW in domain.spec
    PRIMARY KEY (run, limit_row)
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
INSERT INTO "decisions" VALUES('greet','schedule:held','paused',1,1794868403.03662,1794868403.03662,NULL,'too loud','eve');
INSERT INTO "decisions" VALUES('off','','paused',1,1794868402.75119,1794868402.75119,NULL,'until Monday','eve');
INSERT INTO "decisions" VALUES('once','','cancelled',1,1794868402.8473,1794868402.8473,'unwanted','not today',NULL);
INSERT INTO "decisions" VALUES('once','14','already_done',1,1794868402.86035,1794868402.86035,'again',NULL,NULL);
INSERT INTO "decisions" VALUES('resize','','paused',1,1794868402.995,1794868402.995,'paused','wait',NULL);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    event  TEXT NOT NULL,                      -- EventRow of rota/stores/events.py as JSON
    grp    TEXT                                -- the group of its run
);
CREATE TABLE fans (
    id         TEXT PRIMARY KEY,
    total      INTEGER,                        -- NULL: the list still grows
    allowed    INTEGER,                        -- how many children may end without success; NULL: all
    ended      INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    created_at REAL    NOT NULL
) WITHOUT ROWID;
CREATE TABLE freezes (one INTEGER PRIMARY KEY, freeze TEXT NOT NULL);
CREATE TABLE ids (
    id          TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,                 -- domain.ids: a digest of the task and the arguments
    state       TEXT,
    ended_at    REAL
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
INSERT INTO "marks" VALUES('once','14',1794868402.77881,1794868402.77881,0,NULL);
INSERT INTO "marks" VALUES('once','15',NULL,1794868402.82781,1,NULL);
INSERT INTO "marks" VALUES('once','by hand',1000000000.0,1000000000.0,0,NULL);
CREATE TABLE rates (
    task     TEXT NOT NULL,
    key      TEXT NOT NULL,                    -- '' for the task's own rate
    full_at  REAL NOT NULL,                    -- GCRA: when the bucket would be full again
    opens_at REAL,                             -- when parked runs of this key may go on; NULL: none wait for that
    PRIMARY KEY (task, key)
) WITHOUT ROWID;
INSERT INTO "rates" VALUES('mail','',1794868403.51806,NULL);
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
INSERT INTO "runs" VALUES(1,'good','once','14','14',NULL,1,'','',0,1794868402.76181,1,NULL,'succeeded',1794868402.76181,NULL,1,0,0,0,0,0,0,NULL,1794868402.77881,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"fence":1,"worker":"dead","outcome":"succeeded","claimed_at":1794868402.76897,"ended_at":1794868402.77881,"seconds":0.25}]',NULL,NULL,'7','{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(2,'bad','once','15','15',NULL,1,'','',0,1794868402.7894,1,NULL,'failed',1794868402.7894,NULL,1,1,0,0,0,0,0,'failed',1794868402.82781,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"type":"ValueError","message":"boom","traceback":"Traceback ..."}','[{"fence":1,"worker":"dead","outcome":"failed","claimed_at":1794868402.79335,"ended_at":1794868402.82781,"error":{"type":"ValueError","message":"boom","traceback":"Traceback ..."}}]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"}}');
INSERT INTO "runs" VALUES(3,'unwanted','once',NULL,NULL,NULL,0,'','',0,1794868402.84638,1,NULL,'cancelled',1794868402.84638,NULL,0,0,0,0,0,0,0,'cancelled',1794868402.8473,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'not today',NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(4,'running','resize','a.png',NULL,NULL,0,'','',0,1794868402.86203,1,NULL,'running',1794868402.86203,NULL,1,0,0,0,0,0,1,NULL,NULL,'dead',3,1794868402.86844,1794868432.90966,NULL,NULL,NULL,NULL,NULL,'[]','{"share":0.5,"message":"half"}','3',NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(5,'failed once','mail','m',NULL,NULL,0,'','',0,1794868402.91483,1,NULL,'queued',1794869002.95088,NULL,1,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"type":"ValueError","message":"boom","traceback":"Traceback ..."}','[{"fence":1,"worker":"dead","outcome":"failed","claimed_at":1794868402.91806,"ended_at":1794868402.95088,"error":{"type":"ValueError","message":"boom","traceback":"Traceback ..."}}]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(6,'parked','resize','a.png',NULL,NULL,0,'','',0,1794868402.97918,1,NULL,'queued',1794868402.97918,NULL,0,0,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(7,'child','resize',NULL,NULL,NULL,0,'','',0,1794868402.97918,1,NULL,'queued',1794868402.97918,NULL,0,0,0,0,0,2,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'["running"]',NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(8,'queued','resize','b.png','b.png',NULL,0,'','',0,1794868402.97918,1,NULL,'queued',1794868402.97918,4000000000.0,0,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(9,'big','resize',NULL,NULL,NULL,0,'','',0,1794868402.97918,1,NULL,'queued',1794868402.97918,NULL,0,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(10,'later','resize',NULL,NULL,NULL,0,'','',5,1794868402.97918,1,NULL,'queued',4000000000.0,NULL,0,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(11,'paused','resize',NULL,NULL,NULL,0,'','',0,1794868402.97918,1,NULL,'paused',1794868402.97918,NULL,0,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'wait',NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
INSERT INTO "runs" VALUES(12,'off','off',NULL,NULL,NULL,0,'','',0,1794868402.97918,1,NULL,'queued',1794868402.97918,NULL,0,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'{"v":1,"args":{"name":"Ada"},"policy":{"retry":{"limit":1000,"backoff":"fixed","delay":600,"jitter":0},"max_losses":1000}}');
CREATE TABLE schedules (
    id       TEXT PRIMARY KEY,
    task     TEXT NOT NULL,
    schedule TEXT NOT NULL,                    -- domain.schedule as JSON
    look_at  REAL                              -- when it fires or is offered again; NULL: paused, or no tick is left
);
INSERT INTO "schedules" VALUES('report','greet','{"id":"report","trigger":"every 1m","task":"greet","body":"{\"v\":1,\"args\":{\"name\":\"Ada\"},\"policy\":{\"retry\":{\"limit\":1000,\"backoff\":\"fixed\",\"delay\":600,\"jitter\":0},\"max_losses\":1000}}","key":"schedule:report","owner":"app","next_at":1794868462.99795,"fires_at":1794868462.99795,"version":1,"since":1794868402.99831}',1794868462.99795);
INSERT INTO "schedules" VALUES('held','greet','{"id":"held","trigger":"every 1m","task":"greet","body":"{\"v\":1,\"args\":{\"name\":\"Ada\"},\"policy\":{\"retry\":{\"limit\":1000,\"backoff\":\"fixed\",\"delay\":600,\"jitter\":0},\"max_losses\":1000}}","key":"schedule:held","catch_up":"all","owner":"app","next_at":1794868463.00547,"fires_at":1794868463.00547,"version":2,"since":1794868403.01375,"paused":true,"note":"too loud"}',NULL);
CREATE TABLE specs (
    name TEXT PRIMARY KEY,
    spec TEXT NOT NULL                         -- domain.spec as JSON
) WITHOUT ROWID;
INSERT INTO "specs" VALUES('mail','{"name":"mail","rate":{"n":100,"per":60}}');
INSERT INTO "specs" VALUES('off','{"name":"off","paused":true}');
INSERT INTO "specs" VALUES('once','{"name":"once"}');
INSERT INTO "specs" VALUES('resize','{"name":"resize","limit":{"total":2,"per_key":1}}');
CREATE TABLE stats (                          -- minute 0: the totals, which are never deleted
    minute INTEGER NOT NULL,
    task   TEXT    NOT NULL,
    tally  TEXT    NOT NULL,
    PRIMARY KEY (minute, task)
) WITHOUT ROWID;
INSERT INTO "stats" VALUES(0,'resize','{"task":"resize","succeeded":5}');
INSERT INTO "stats" VALUES(29914473,'resize','{"task":"resize","succeeded":5}');
CREATE TABLE turns (
    task     TEXT    NOT NULL,
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    share    TEXT    NOT NULL,
    got      INTEGER NOT NULL,                 -- how many runs it has got in this turn
    PRIMARY KEY (task, queue, priority)
) WITHOUT ROWID;
CREATE TABLE waits (
    ended TEXT NOT NULL,                       -- the id of a run, or a name as in domain.needs
    run   TEXT NOT NULL,                       -- the run that waits for the end of `ended`
    PRIMARY KEY (ended, run)
) WITHOUT ROWID;
INSERT INTO "waits" VALUES('running','child');
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
INSERT INTO "workers" VALUES('dead',4,'["mail"]','[]',1794868402.91806,0,NULL,'{}','[]');
INSERT INTO "workers" VALUES('reporter',1,'["none"]','[]',1794868403.07894,1,1794868462.99795,'{"host":"h","seats":2}','[]');
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
CREATE INDEX runs_of_task  ON runs (task);
CREATE INDEX runs_keyed    ON runs (key) WHERE key IS NOT NULL;
CREATE INDEX runs_uniquely ON runs (unique_key) WHERE unique_key IS NOT NULL AND unique_key IS NOT key;
CREATE INDEX runs_failed   ON runs (state) WHERE state IN ('failed', 'cancelled');
CREATE INDEX runs_failed_ended ON runs (task, finished_at) WHERE state IN ('failed', 'cancelled');
CREATE INDEX ids_ended ON ids (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX counted_limits ON counted (limit_row);
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;
CREATE INDEX decisions_old ON decisions (last_at);
CREATE INDEX schedules_due ON schedules (look_at) WHERE look_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version = 1;
PRAGMA application_id = 1919906913;
